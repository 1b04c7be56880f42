"""What the Batch emulator takes: `python -m bench.batch_emulator [TASKS]`.

A day of manual service time for ten auto-scaled pools under load and preemptions, then requests of one client through
the real SDK, and a list of ten thousand tasks, once in this process and once over http to a process of its own.
"""

# ruff: noqa: T201 - it is there to print
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from azure.batch import BatchClient, models
from azure.core.credentials import AzureNamedKeyCredential

from local.batch import ACCOUNT_KEY, InProcessTransport, ScriptedRunner, World, control
from local.batch.config import Account
from local.stack.environment import no_proxy

_POOLS = 10
_TASKS = 200
_HOURS = 24
_LISTED = 10_000
_REQUESTS = 1_000
_TASK_SECONDS = 1_800.0
_QUERY = {"api-version": "2025-06-01"}
_BEARER = {"authorization": "Bearer bench"}
_FORMULA = """
window = 5 * TimeInterval_Minute;
seen = $PendingTasks.GetSamplePercent(window);
newest = seen < 1 ? 0 : max(0, $PendingTasks.GetSample(1));
tasks = seen < 60 ? newest : max(newest, avg($PendingTasks.GetSample(window)));
$TargetLowPriorityNodes = seen < 1 ? $TargetLowPriorityNodes : min(20, tasks + $PreemptedNodeCount);
$NodeDeallocationOption = taskcompletion;
"""


def main(arguments: list[str]) -> int:
    tasks = int(arguments[0]) if arguments else _TASKS
    world = _busy_world()
    seconds = _timed(lambda: _live_a_day(world, tasks))
    completed = len(world.events.select("task_completed"))
    preempted = len(world.events.select("node_state", state="preempted"))
    evaluated = len(world.events.select("autoscale"))
    print(
        f"{tasks} tasks x {_POOLS} pools x {_HOURS} h: {seconds:.2f} s ({completed} tasks completed, "
        f"{preempted} nodes preempted, {evaluated} formulas evaluated, {len(world.events.entries)} events)"
    )
    world = _busy_world()
    with _client("https://batch.local", InProcessTransport(world)) as client:
        _print_rates("in one process", client)
    bare = _timed(lambda: _expect(_listed(world)))
    print(f"in one process: {_LISTED} tasks listed in {bare:.2f} s without the SDK's models")
    with _served() as endpoint, _client(endpoint) as client:
        _print_rates("over http     ", client)
    return 0


def _print_rates(where: str, client: BatchClient) -> None:
    """One client's requests, one after the other, to an account that ends with so many tasks in one job."""
    client.create_job(models.BatchJobCreateOptions(id="job", pool_info=models.BatchPoolInfo(pool_id="pool-0")))
    print(f"{where}: {_rate(_creations(client)):.0f} task creations per second")
    print(f"{where}: {_rate(_readings(client)):.0f} task readings per second")
    _fill(client, _LISTED - _REQUESTS)
    whole = _timed(lambda: _expect(sum(1 for _ in client.list_tasks("job"))))
    parts = _timed(lambda: _expect(sum(1 for _ in client.list_tasks("job", select=["id", "state"]))))
    print(f"{where}: {_LISTED} tasks listed in {whole:.2f} s, in {parts:.2f} s with ids and states alone")


@contextmanager
def _served() -> Iterator[str]:
    """The emulator in a process of its own; its pool has no nodes, so that nothing else happens there."""
    os.environ.update(no_proxy(os.environ))
    with TemporaryDirectory() as folder:
        world = Path(folder) / "world.json"
        world.write_text(json.dumps({"root": folder, "pools": [{"id": "pool-0"}]}))
        command = [sys.executable, "-m", "local.batch", "--world", str(world)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                yield process.stdout.readline().split()[-1]
            finally:
                process.terminate()


def _busy_world() -> World:
    pools: list[dict[str, Any]] = [
        {
            "id": f"pool-{number}",
            "vmSize": "standard_nc4as_t4_v3",
            "start_seconds": 120,
            "autoscale": {"formula": _FORMULA, "interval_seconds": 300},
        }
        for number in range(_POOLS)
    ]
    return World.from_json({"pools": pools}, runner=ScriptedRunner(finish_after_seconds=_TASK_SECONDS))


def _live_a_day(world: World, tasks: int) -> None:
    """Tasks come all day long, each in a job of its own, and with every twentieth a node is lost."""
    pause = _HOURS * 3600 / tasks
    for number in range(tasks):
        pool = f"pool-{number % _POOLS}"
        job = {"id": f"job-{number}", "poolInfo": {"poolId": pool}}
        _post(world, "/jobs", job)
        _post(world, f"/jobs/job-{number}/tasks", {"id": "task", "commandLine": "program"})
        _request(world, "PATCH", f"/jobs/job-{number}", {"onAllTasksComplete": "terminatejob"})
        world.advance(pause)
        running = [node for node in world.pool(pool).nodes.values() if node.state == "running"]
        if running and number % 20 == 0:
            control.preempt_node(world, pool)


def _post(world: World, path: str, body: dict[str, Any]) -> None:
    _request(world, "POST", path, body)


def _request(world: World, method: str, path: str, body: dict[str, Any]) -> None:
    response = world.handle(method, path, _QUERY, _BEARER, json.dumps(body).encode())
    assert response.status < 300, response.body


def _client(endpoint: str, transport: InProcessTransport | None = None) -> BatchClient:
    options = {"transport": transport} if transport else {}
    credential = AzureNamedKeyCredential(Account().name, ACCOUNT_KEY)
    return BatchClient(endpoint, credential, retry_total=0, **options)


def _creations(client: BatchClient) -> Iterator[None]:
    for number in range(_REQUESTS):
        client.create_task("job", models.BatchTaskCreateOptions(id=f"task-{number}", command_line="program"))
        yield


def _readings(client: BatchClient) -> Iterator[None]:
    for number in range(_REQUESTS):
        client.get_task("job", f"task-{number}")
        yield


def _fill(client: BatchClient, tasks: int) -> None:
    for first in range(0, tasks, 100):
        new = [
            models.BatchTaskCreateOptions(id=f"more-{number}", command_line="program")
            for number in range(first, first + 100)
        ]
        client.create_task_collection("job", models.BatchTaskGroup(task_values=new))


def _listed(world: World) -> int:
    """List all tasks page by page, each read as plain JSON."""
    listed, query = 0, dict(_QUERY)
    while True:
        page = world.handle("GET", "/jobs/job/tasks", query, _BEARER).json()
        listed += len(page["value"])
        if "odata.nextLink" not in page:
            return listed
        query = dict(parse_qsl(urlsplit(page["odata.nextLink"]).query))


def _expect(listed: int) -> None:
    assert listed == _LISTED


def _rate(requests: Iterator[None]) -> float:
    started = time.perf_counter()
    number = sum(1 for _ in requests)
    return number / (time.perf_counter() - started)


def _timed(do: Callable[[], None]) -> float:
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
