"""Whatever clients, nodes and clocks do: no task runs twice at once or after its end, no node holds more than it may,
no quota is exceeded, and the counts add up.

Runs are judged from the event log alone. BATCH_EMULATOR_EXAMPLES is how many histories are tried.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.batch import RunEnd, ScriptedRunner, World, control
from local.batch.errors import BatchError
from local.batch.events import Event
from tests.batch_emulator.support import BEARER, POOL, VERSION

_EXAMPLES = int(os.environ.get("BATCH_EMULATOR_EXAMPLES", "200"))
_SLOTS = 3
_CORES_PER_NODE = 4
_ACTIVE_JOBS, _LOW_PRIORITY_CORES, _FAMILY_CORES = 2, 12, 4
_QUOTAS = {
    "active_jobs": _ACTIVE_JOBS,
    "low_priority_cores": _LOW_PRIORITY_CORES,
    "dedicated_cores": 8,
    "family_cores": {"standardDSv3Family": _FAMILY_CORES},
}
_FORMULA = "$TargetLowPriorityNodes = min(3, $CurrentLowPriorityNodes + rand() * 2); $NodeDeallocationOption = requeue;"
_JOBS = ["a", "b"]
_TASKS = ["t1", "t2", "t3"]
_JOB, _TASK = st.sampled_from(_JOBS), st.sampled_from(_TASKS)
_BOOL = st.booleans()
_SECONDS = st.sampled_from([0.0, 0.5, 1.0, 3.0, 20.0, 100.0])
_PAUSE = st.one_of(st.none(), _SECONDS)

Step = Callable[[World], None]


def _request(method: str, path: str, body: object = None) -> Step:
    content = b"" if body is None else json.dumps(body).encode()

    def step(world: World) -> None:
        assert world.handle(method, path, VERSION, BEARER, content).status != 500

    return step


def _create(job: str, task: str, slots: int, retries: int, limit: str | None) -> Step:
    constraints = {"maxTaskRetryCount": retries, "maxWallClockTime": limit}
    return _request(
        "POST",
        f"/jobs/{job}/tasks",
        {"id": task, "commandLine": "x", "requiredSlots": slots, "constraints": constraints},
    )


def _finish(index: int, code: int, by_kill: bool) -> Step:
    def step(world: World) -> None:
        runner = world.runner
        assert isinstance(runner, ScriptedRunner)
        running = runner.running()
        if not running:
            return
        job, task = running[index % len(running)]
        if by_kill:
            try:
                runner.finish_kill(job, task)
            except KeyError:
                return
        else:
            runner.finish(job, task, RunEnd(exit_code=code))

    return step


def _preempt(via: float | None, requeue: float, back: float | None) -> Step:
    def step(world: World) -> None:
        try:
            control.preempt_node(
                world, POOL, via_unusable_seconds=via, requeue_after_seconds=requeue, return_after_seconds=back
            )
        except BatchError as error:
            assert error.code == "NodeNotFound"

    return step


def _bring_back(world: World) -> None:
    for node in list(world.pool(POOL).nodes):
        control.bring_back(world, POOL, node)


def _on_some_node(index: int, action: str, option: str) -> Step:
    """A request about one of the nodes that exist; `removenodes` is one about its pool."""
    names = {"reboot": "nodeRebootOption", "reimage": "nodeReimageOption", "deallocate": "nodeDeallocateOption"}

    def step(world: World) -> None:
        nodes = list(world.pool(POOL).nodes)
        if not nodes:
            return
        node = nodes[index % len(nodes)]
        if action == "removenodes":
            body: object = {"nodeList": [node], "nodeDeallocationOption": option}
            _request("POST", f"/pools/{POOL}/removenodes", body)(world)
        else:
            body = {names[action]: option} if action in names else None
            _request("POST", f"/pools/{POOL}/nodes/{node}/{action}", body)(world)

    return step


def _advance(seconds: float) -> Step:
    return lambda world: world.advance(seconds)


def _on_some_task(index: int, method: str, action: str) -> Step:
    """A request about one of the tasks that exist."""

    def step(world: World) -> None:
        tasks = [(job.id, task.id) for job in world.jobs.values() for task in job.tasks.values()]
        if tasks:
            job, task = tasks[index % len(tasks)]
            _request(method, f"/jobs/{job}/tasks/{task}{action}")(world)

    return step


def _allocate_badly(outcome: str, nodes: int) -> Step:
    return lambda world: control.script_allocations(world, POOL, [{"outcome": outcome, "nodes": nodes}])


def _capacity(machines: int | None) -> Step:
    return lambda world: control.set_low_priority_available(world, POOL, machines)


_INDEX = st.integers(0, 20)
_OPTION = st.sampled_from(["requeue", "terminate", "taskcompletion"])
_TASK_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(_create, _JOB, _TASK, st.integers(1, _SLOTS), st.integers(0, 1), st.sampled_from([None, None, "PT1M"])),
    st.builds(_finish, _INDEX, st.sampled_from([0, 0, 1]), _BOOL),
    st.builds(_on_some_task, _INDEX, st.just("POST"), st.sampled_from(["/terminate", "/reactivate"])),
    st.builds(_on_some_task, _INDEX, st.just("DELETE"), st.just("")),
)
_JOB_STEPS: st.SearchStrategy[Step] = st.sampled_from(
    [
        _request("POST", "/jobs", {"id": "b", "poolInfo": {"poolId": POOL}, "priority": 5}),
        *(_request("POST", "/jobs/a/disable", {"disableTasks": how}) for how in ("requeue", "terminate", "wait")),
        _request("POST", "/jobs/a/enable"),
        _request("POST", "/jobs/a/enable"),
        _request("POST", "/jobs/b/terminate"),
        _request("DELETE", "/jobs/b"),
        _request("PUT", "/jobs/a", {"poolInfo": {"poolId": POOL}, "maxParallelTasks": 2}),
        _request("PUT", "/jobs/a/tasks/t1", {"constraints": {"maxWallClockTime": "PT2M"}}),
    ]
)
_POOL_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda low_priority, dedicated, how: _request(
            "POST",
            f"/pools/{POOL}/resize",
            {
                "targetLowPriorityNodes": low_priority,
                "targetDedicatedNodes": dedicated,
                "nodeDeallocationOption": how,
            },
        ),
        st.integers(1, 5),
        st.integers(0, 3),
        _OPTION,
    ),
    st.just(_request("POST", f"/pools/{POOL}/stopresize")),
    st.builds(
        _on_some_node, _INDEX, st.sampled_from(["reboot", "reimage", "deallocate", "start", "removenodes"]), _OPTION
    ),
    st.just(_request("POST", f"/pools/{POOL}/enableautoscale", {"autoScaleFormula": _FORMULA})),
    st.just(_request("POST", f"/pools/{POOL}/disableautoscale")),
    st.builds(_allocate_badly, st.sampled_from(["fail", "timeout"]), st.integers(0, 2)),
    st.builds(_capacity, st.none() | st.integers(0, 3)),
    st.builds(_preempt, _PAUSE, _SECONDS, _PAUSE),
    st.just(_bring_back),
)
_STEPS = st.one_of(_TASK_STEPS, _TASK_STEPS, st.builds(_advance, _SECONDS), _JOB_STEPS, _POOL_STEPS)


@settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_STEPS, min_size=20, max_size=80), _BOOL, _BOOL)
def test_random_histories(steps: list[Step], holds_kills: bool, lost_wins: bool) -> None:
    assumptions = {"task_lost_while_terminating": "active" if lost_wins else "completed"}
    pool = {
        "id": POOL,
        "vmSize": "standard_d4s_v3",
        "targetLowPriorityNodes": 2,
        "taskSlotsPerNode": _SLOTS,
        "start_seconds": 0,
    }
    world = World.from_json(
        {"pools": [pool], "assumptions": assumptions, "quotas": _QUOTAS}, runner=ScriptedRunner(holds_kills=holds_kills)
    )
    for job in _JOBS:
        _request("POST", "/jobs", {"id": job, "poolInfo": {"poolId": POOL}})(world)
    for step in steps:
        step(world)
        _check_counts(world)
    _check_log(world.events.entries)


def _check_log(entries: list[Event]) -> None:
    """Replay the log. An id whose task was deleted may be used again, also while the old task's process still dies."""
    running: dict[tuple[str, str], int] = {}
    dying: dict[tuple[str, str], int] = {}
    node_slots: Counter[str] = Counter()
    slots_of_run: dict[int, int] = {}
    status: dict[tuple[str, str], str] = defaultdict(str)
    for entry in entries:
        event, key = entry["event"], (entry.get("job", ""), entry.get("task", ""))
        if event == "task_created":
            status[key] = "waiting"
        elif event in ("task_requeued", "task_reactivated"):
            assert key not in running, f"{key} waits although it runs: {entry}"
            assert status[key] != ("completed" if event == "task_requeued" else "running")
            status[key] = "waiting"
        elif event == "task_started":
            assert key not in running and key not in dying, f"{key} runs twice: {entry}"
            assert status[key] == "waiting", f"{key} starts while it is {status[key]}: {entry}"
            status[key] = "running"
            running[key] = entry["run"]
            slots_of_run[entry["run"]] = entry["slots"]
            node_slots[entry["node"]] += entry["slots"]
            assert node_slots[entry["node"]] <= _SLOTS
        elif event in ("run_ended", "run_lost"):
            assert (dying if key in dying else running).pop(key) == entry["run"]
            node_slots[entry["node"]] -= slots_of_run[entry["run"]]
        elif event == "task_completed":
            assert key not in running, f"{key} is completed although it runs"
            assert status[key] in ("waiting", "running")
            status[key] = "completed"
        elif event in ("task_deleted", "task_forgotten"):
            status[key] = "gone"
            if key in running:
                dying[key] = running.pop(key)


def _check_counts(world: World) -> None:
    for job in world.jobs.values():
        found = Counter(task.state for task in job.tasks.values())
        assert found["running"] == job.running
        assert found["completed"] == job.completed
        assert found["active"] == len(job.queue)
        assert job.queue == sorted(job.queue)
        assert job.succeeded == sum(1 for task in job.tasks.values() if task.result == "success")
    assert sum(1 for job in world.jobs.values() if job.state != "completed") <= _ACTIVE_JOBS
    nodes = world.pool(POOL).nodes.values()
    cores = Counter({node.dedicated: 0 for node in nodes})
    for node in nodes:
        assert node.slots_used <= _SLOTS
        cores[node.dedicated] += _CORES_PER_NODE
    assert cores[False] <= _LOW_PRIORITY_CORES
    assert cores[True] <= _FAMILY_CORES
    on_nodes = {run for node in nodes for run in node.runs}
    assert {run.number for run in world.runs.values() if not run.stuck} == on_nodes
