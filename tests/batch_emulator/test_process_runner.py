"""Tasks as real processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.batch import BatchClient
from azure.core.exceptions import ResourceNotFoundError

from local.batch import ManualClock, World, control
from tests.batch_emulator.process_support import add_task, finished, process_world, read, until
from tests.batch_emulator.support import POOL, act, make_client, make_job, states

_IMAGE = "registry.example/training:2.0.0"
_ENTRYPOINT = '#!/bin/bash\nset -eu\necho "started with $# argument(s)"\n/bin/bash -c "$*"\n'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    image = tmp_path / "image"
    image.mkdir()
    (image / "entrypoint").write_text(_ENTRYPOINT)
    (image / "entrypoint").chmod(0o755)
    world = process_world(
        tmp_path / "nodes",
        images={_IMAGE: str(image), "broken": str(tmp_path)},
        task_environment={"KNOB": "world", "SPEED": "fast"},
    )
    yield world
    world.close()


@pytest.fixture
def client(world: World) -> BatchClient:
    client = make_client(world)
    act(
        client,
        "/jobs",
        {"id": "job", "poolInfo": {"poolId": POOL}, "commonEnvironmentSettings": [{"name": "KNOB", "value": "job"}]},
    )
    return client


def _python(code: str) -> str:
    return f"{sys.executable} -c '{code}'"


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_program_runs_in_its_directory_with_its_environment(
    client: BatchClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCOUNT_SECRET", "not for tasks")
    program = 'import os, sys; print(os.getcwd()); print(sorted(os.environ.items())); print("oops", file=sys.stderr)'
    add_task(client, commandLine=_python(program), environmentSettings=[{"name": "MINE", "value": "$HOME 1"}])

    info = finished(client)

    assert (info.exit_code, info.failure_info) == (0, None)
    folder, environment = read(client, "stdout.txt").splitlines()
    assert folder.endswith("/workitems/job/job-1/task/wd")
    shown = dict(eval(environment))
    assert shown["AZ_BATCH_TASK_WORKING_DIR"] == folder
    assert shown["AZ_BATCH_TASK_DIR"] == folder.removesuffix("/wd")
    assert (shown["AZ_BATCH_JOB_ID"], shown["AZ_BATCH_TASK_ID"]) == ("job", "task")
    assert (shown["AZ_BATCH_POOL_ID"], shown["AZ_BATCH_ACCOUNT_NAME"]) == (POOL, "localbatch")
    assert shown["AZ_BATCH_NODE_ID"] == next(iter(world.pool(POOL).nodes))
    assert shown["AZ_BATCH_NODE_IS_DEDICATED"] == "false"
    assert Path(shown["AZ_BATCH_NODE_SHARED_DIR"]).is_dir()
    assert (shown["KNOB"], shown["SPEED"], shown["MINE"]) == ("job", "fast", "$HOME 1")
    assert "ACCOUNT_SECRET" not in shown
    assert read(client, "stderr.txt") == "oops\n"


def test_a_container_task_is_one_argument_that_its_entrypoint_expands(client: BatchClient, tmp_path: Path) -> None:
    command = '"mkdir -p out && echo $AZ_BATCH_TASK_WORKING_DIR > out/where && echo \\"quoted text\\" && pwd"'
    add_task(client, commandLine=command, containerSettings={"imageName": _IMAGE, "containerRunOptions": "--rm"})

    assert finished(client).exit_code == 0
    first, quoted, folder = read(client, "stdout.txt").splitlines()
    assert (first, quoted) == ("started with 1 argument(s)", "quoted text")
    assert read(client, "wd/out/where").strip() == folder


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"containerSettings": {"imageName": "unknown:1"}, "commandLine": "x"}, "ContainerInvalidImage"),
        ({"containerSettings": {"imageName": "broken"}, "commandLine": "x"}, "ContainerInvalidImage"),
        ({"commandLine": "no-such-program"}, "CommandProgramNotFound"),
        ({"commandLine": "/etc/passwd"}, "CommandLaunchFailed"),
        ({"commandLine": "echo 'open"}, "CommandLaunchFailed"),
        ({"commandLine": "echo a\0b"}, "CommandLaunchFailed"),
    ],
)
def test_what_cannot_be_started(client: BatchClient, body: dict[str, Any], code: str) -> None:
    add_task(client, **body)

    info = finished(client)

    assert (info.failure_info.code, info.failure_info.category, info.exit_code) == (code, "usererror", None)


@pytest.mark.parametrize(
    ("program", "code"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 15)", 143)]
)
def test_exit_codes(client: BatchClient, program: str, code: int) -> None:
    add_task(client, commandLine=_python(program))

    info = finished(client)

    assert (info.exit_code, info.failure_info.code) == (code, "FailureExitCode")


def _family(client: BatchClient, task_id: str = "task") -> list[int]:
    """Start a task with a child process; their process ids, once both run."""
    add_task(client, task_id, commandLine="/bin/bash -c 'sleep 600 & echo $! $$ > pids; wait'")
    until(lambda: states(client)[task_id] == "running")
    until(lambda: any(file.name == "wd/pids" for file in client.list_task_files("job", task_id, recursive=True)))
    until(lambda: len(read(client, "wd/pids", task_id).split()) == 2)
    return [int(pid) for pid in read(client, "wd/pids", task_id).split()]


def test_terminating_kills_the_whole_family(client: BatchClient) -> None:
    pids = _family(client)
    assert all(map(_alive, pids))

    client.terminate_task("job", "task")

    info = finished(client)
    assert (info.failure_info.code, info.exit_code) == ("TaskEnded", 137)
    until(lambda: not any(map(_alive, pids)))


def test_children_left_behind_are_killed_with_the_end_of_the_program(client: BatchClient) -> None:
    add_task(client, commandLine="/bin/bash -c 'sleep 600 & echo $! > pid'")

    assert finished(client).exit_code == 0
    until(lambda: not _alive(int(read(client, "wd/pid"))))


def test_preemption_kills_wipes_the_disk_and_runs_anew(client: BatchClient, world: World, tmp_path: Path) -> None:
    pids = _family(client)

    node = control.preempt_task(world, "job", "task", return_after_seconds=None)

    until(lambda: not any(map(_alive, pids)))
    assert states(client) == {"task": "active"}
    assert not (tmp_path / "nodes" / node).exists()
    control.bring_back(world, POOL, node)
    until(lambda: states(client)["task"] == "running")
    until(lambda: any(file.name == "wd/pids" for file in client.list_task_files("job", "task", recursive=True)))
    assert world.events.select("task_completed") == []


def test_the_wall_clock_kills(client: BatchClient) -> None:
    add_task(client, commandLine="sleep 600", constraints={"maxWallClockTime": "PT0.5S"})

    info = finished(client)

    assert (info.failure_info.code, info.failure_info.category) == ("TaskEnded", "servererror")
    assert info.end_time - info.start_time < timedelta(seconds=60)


def test_deleting_a_running_task_removes_its_directory(client: BatchClient, world: World, tmp_path: Path) -> None:
    pids = _family(client)
    node = next(iter(world.pool(POOL).nodes))
    folder = tmp_path / "nodes" / node / "workitems" / "job" / "job-1" / "task"
    assert folder.exists()

    client.delete_task("job", "task")

    until(lambda: not any(map(_alive, pids)))
    until(lambda: not folder.exists())


def test_directories_go_after_the_retention_time(tmp_path: Path) -> None:
    world = process_world(tmp_path / "nodes", ManualClock())
    client = make_client(world)
    make_job(client)
    add_task(client, commandLine="echo hello", constraints={"retentionTime": "PT1H"})
    finished(client)
    (folder,) = (tmp_path / "nodes").glob("*/workitems/job/job-1/task")
    assert (folder / "stdout.txt").read_text() == "hello\n"

    world.advance(3600)

    assert not folder.exists()


def test_a_retry_starts_in_an_empty_directory(client: BatchClient) -> None:
    program = 'import os; print(os.listdir()); open("left", "w").close(); raise SystemExit(1)'
    add_task(client, commandLine=_python(program), constraints={"maxTaskRetryCount": 1})

    assert finished(client).retry_count == 1
    assert read(client, "stdout.txt") == "[]\n"


def test_files_outside_of_the_task_s_directory_are_not_shown(client: BatchClient) -> None:
    add_task(client, commandLine="ln -s /etc/passwd link")
    finished(client)

    with pytest.raises(ResourceNotFoundError):
        read(client, "wd/link")
    with pytest.raises(ResourceNotFoundError):
        read(client, "../../../../../../etc/passwd")


def test_closing_the_world_kills_its_tasks(client: BatchClient, world: World) -> None:
    pids = _family(client)

    world.close()

    until(lambda: not any(map(_alive, pids)))
    assert os.getpid() not in pids
