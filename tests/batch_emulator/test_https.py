"""The emulator as a program of its own, over https."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from azure.batch import models
from azure.core import MatchConditions
from azure.core.credentials import AccessToken, AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError, ServiceResponseError

from local.batch import ACCOUNT_KEY
from local.certificates import Certificates
from tests.batch_emulator.emulator_process import PROJECT, Emulator, running
from tests.batch_emulator.process_support import add_task, finished, read, until
from tests.batch_emulator.support import POOL, act, make_job, refusal, states


class _Tokens:
    def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        return AccessToken("token", int(datetime.now(UTC).timestamp()) + 3600)


@pytest.fixture
def emulator(tmp_path: Path, certificates: Certificates) -> Iterator[Emulator]:
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "taskSlotsPerNode": 4, "start_seconds": 0}
    with running(tmp_path, certificates, {"pools": [pool], "page_size": 2}) as one:
        yield one


def test_a_day_in_the_life(emulator: Emulator) -> None:
    assert emulator.line == f"batch emulator listening on {emulator.endpoint}"
    assert emulator.endpoint.startswith("https://127.0.0.1:")
    with emulator.client() as client, emulator.client(_Tokens()) as other:
        assert other.pool_exists(POOL)
        with pytest.raises(ResourceNotFoundError):
            client.pool_exists("none")
        make_job(client, priority=5)
        for number in range(5):
            add_task(client, f"t{number}", commandLine=f'/bin/bash -c \'mkdir "a b" && echo {number} > "a b/n+1"\'')
        for number in range(5):
            assert finished(client, f"t{number}").exit_code == 0
        assert read(other, "wd/a b/n+1", "t3") == "3\n"
        properties = client.get_task_file_properties("job", "t3", "wd/a b/n+1")
        assert properties.content_length == 2
        part = client.download_task_file("job", "t3", "wd/a b/n+1", ocp_range="bytes=0-0")
        assert b"".join(part) == b"3"
        assert [task.id for task in client.list_tasks("job", filter="state eq 'completed'")] == [
            f"t{number}" for number in range(5)
        ]
        client.delete_task_file("job", "t3", "wd/a b/n+1")
        client.delete_task("job", "t0")
        job = client.get_job("job")
        client.update_job(
            "job",
            models.BatchJobUpdateOptions(priority=6),
            etag=job.etag,
            match_condition=MatchConditions.IfNotModified,
        )
        with pytest.raises(HttpResponseError) as stale:
            client.update_job(
                "job",
                models.BatchJobUpdateOptions(priority=7),
                etag=job.etag,
                match_condition=MatchConditions.IfNotModified,
            )
        assert refusal(stale.value) == (412, "ConditionNotMet")
        act(client, "/jobs/job/terminate", {"terminateReason": "done"})
        until(lambda: client.get_job("job").state == models.BatchJobState.COMPLETED)
    with pytest.raises(HttpResponseError) as refused:
        emulator.client(AzureNamedKeyCredential("localbatch", "d3Jvbmc=")).get_pool(POOL)
    assert refusal(refused.value) == (403, "AuthenticationFailed")


def test_faults_over_the_wire(emulator: Emulator) -> None:
    with emulator.client() as client:
        make_job(client)
        emulator.admin(
            "POST", "/faults", {"operation": "create_task", "drop_connection": True, "when": "after", "times": 1}
        )
        with pytest.raises(ServiceResponseError):
            add_task(client, commandLine="true")
        assert finished(client).exit_code == 0

        emulator.admin(
            "POST", "/faults", {"operation": "get_job", "code": "TooManyRequests", "retry_after": 3, "times": 1}
        )
        with pytest.raises(HttpResponseError) as refused:
            client.get_job("job")
        response: Any = refused.value.response
        assert (response.status_code, response.headers["Retry-After"]) == (429, "3")


def test_preemption_and_a_clean_stop(emulator: Emulator) -> None:
    with emulator.client() as client:
        make_job(client)
        add_task(client, commandLine="/bin/bash -c 'echo $$ > pid; sleep 600'")
        until(lambda: states(client)["task"] == "running")

        node = emulator.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 0.2})["node"]
        until(lambda: emulator.admin("GET", "/world")["nodes"][0]["boot"] == 2)
        until(lambda: states(client)["task"] == "running")
        until(lambda: any(f.name == "wd/pid" for f in client.list_task_files("job", "task", recursive=True)))
        until(lambda: read(client, "wd/pid").strip())
        pid = int(read(client, "wd/pid"))
        started = [event["node"] for event in emulator.admin("GET", "/events") if event["event"] == "task_started"]
        assert started == [node, node]

    assert Path(f"/proc/{pid}").exists()
    assert emulator.stop() == 0
    until(lambda: not Path(f"/proc/{pid}").exists() or "\tZ" in Path(f"/proc/{pid}/status").read_text())


def test_time_goes_on_without_requests(tmp_path: Path, certificates: Certificates) -> None:
    log = tmp_path / "events.jsonl"
    pool = {"id": POOL, "targetDedicatedNodes": 1, "start_seconds": 0.2}
    with running(tmp_path, certificates, {"pools": [pool], "event_log": str(log)}):
        until(lambda: log.exists() and '"state": "idle"' in log.read_text())


@pytest.mark.parametrize("text", ["{", '{"colour": 1}'])
def test_a_wrong_world_file_is_named(tmp_path: Path, text: str) -> None:
    world = tmp_path / "world.json"
    world.write_text(text)

    outcome = subprocess.run(
        [sys.executable, "-m", "local.batch", "--world", str(world)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ.copy(),
        timeout=60,
    )

    assert outcome.returncode == 2
    assert outcome.stderr.startswith("the world file cannot be used:")


@pytest.mark.parametrize("options", [["--manual"], ["--speed", "20000"]])
def test_a_server_s_time_need_not_be_the_computer_s(
    tmp_path: Path, certificates: Certificates, options: list[str]
) -> None:
    pool = {"id": POOL, "targetDedicatedNodes": 1, "start_seconds": 7200}
    with running(tmp_path, certificates, {"pools": [pool]}, *options) as emulator:
        client = emulator.client()
        if options == ["--manual"]:
            assert next(iter(client.list_nodes(POOL))).state == "creating"
            emulator.admin("POST", "/advance", {"seconds": 7200})
            assert next(iter(client.list_nodes(POOL))).state == "idle"
        else:
            until(lambda: next(iter(client.list_nodes(POOL))).state == "idle")


def test_options_that_make_no_sense_are_refused() -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "local.batch", "--speed", "0"], cwd=PROJECT, capture_output=True, text=True, check=False
    )

    assert refused.returncode == 2
    assert "--speed" in refused.stderr


def test_the_account_is_the_one_of_the_command_line(tmp_path: Path, certificates: Certificates) -> None:
    key, other = (base64.b64encode(text).decode() for text in (b"a key", b"another key"))
    world = {"account": {"name": "of-the-file", "key": other}, "pools": [{"id": POOL}]}
    from_environment = {"BATCH_EMULATOR_KEY": key}
    with running(tmp_path, certificates, world, "--account", "mine", variables=from_environment) as emulator:
        assert emulator.client(AzureNamedKeyCredential("mine", key)).get_pool(POOL).id == POOL
        for name, wrong in (("of-the-file", other), ("mine", other), ("of-the-file", key), ("localbatch", ACCOUNT_KEY)):
            with pytest.raises(HttpResponseError) as refused:
                emulator.client(AzureNamedKeyCredential(name, wrong)).get_pool(POOL)
            assert refusal(refused.value) == (403, "AuthenticationFailed")


def test_an_account_key_that_is_given_wins_over_the_environment(tmp_path: Path, certificates: Certificates) -> None:
    key, other = (base64.b64encode(text).decode() for text in (b"a key", b"another key"))
    world = {"account": {"name": "of-the-file"}, "pools": [{"id": POOL}]}
    from_environment = {"BATCH_EMULATOR_KEY": other}
    with running(tmp_path, certificates, world, "--account-key", key, variables=from_environment) as emulator:
        assert emulator.client(AzureNamedKeyCredential("of-the-file", key)).get_pool(POOL).id == POOL


@pytest.mark.parametrize("where", ["option", "environment"])
def test_a_key_that_is_no_key_is_refused_and_not_shown(where: str) -> None:
    options = ["--account-key", "no key!"] if where == "option" else []
    variables = {"BATCH_EMULATOR_KEY": "no key!"} if where == "environment" else {}
    refused = subprocess.run(
        [sys.executable, "-m", "local.batch", *options],
        cwd=PROJECT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert refused.returncode == 2
    assert "base64" in refused.stderr
    assert "no key!" not in refused.stderr
