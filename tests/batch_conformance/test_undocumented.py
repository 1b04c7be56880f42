"""Where Azure documents nothing, the emulator has one default, and most of them can be switched in the world file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from local.batch import ManualClock, ScriptedRunner, World, WorldConfig
from local.batch.config import Assumptions
from local.batch.process_runner import ProcessRunner
from tests.batch_conformance.blobs import blobs
from tests.batch_conformance.wire import POOL, Wire, account
from tests.batch_emulator.process_support import until
from tests.support.serving import serving

Look = Callable[[Wire], Any]
_PREEMPT = {"return_after_seconds": None}


def _preempted(wire: Wire) -> Any:
    wire.job()
    wire.task()
    wire.advance(60)
    wire.admin("POST", "/jobs/job/tasks/task/preempt", _PREEMPT)
    return wire.get("/jobs/job/tasks/task")


def _keeps_node_info(wire: Wire) -> Any:
    task = _preempted(wire)
    assert ("nodeInfo" in task) == ("startTime" in task["executionInfo"])
    return "nodeInfo" in task


def _counts_as_requeue(wire: Wire) -> Any:
    return _preempted(wire)["executionInfo"]["requeueCount"] == 1


def _takes_tasks(wire: Wire) -> Any:
    wire.job()
    wire.done("POST", "/jobs/job/disable", {"disableTasks": "requeue"})
    wire.advance(1)
    answer = wire.send("POST", "/jobs/job/tasks", {"id": "task", "commandLine": "program"})
    return answer.status == 201


def _lost_while_terminating(wire: Wire) -> Any:
    wire.job()
    wire.task()
    wire.done("POST", "/jobs/job/tasks/task/terminate")
    wire.admin("POST", "/jobs/job/tasks/task/preempt", _PREEMPT)
    return wire.state()


def _expired_category(wire: Wire) -> Any:
    wire.job()
    wire.task(constraints={"maxWallClockTime": "PT1H"})
    wire.advance(3600)
    return wire.info()["failureInfo"]["category"]


#: Switch, its other value, and what shows on the wire which one holds.
SWITCHES: dict[str, tuple[object, Look]] = {
    "preempted_task_keeps_node_info": (False, _keeps_node_info),
    "preemption_counts_as_requeue": (True, _counts_as_requeue),
    "disabled_job_accepts_tasks": (False, _takes_tasks),
    "task_lost_while_terminating": ("active", _lost_while_terminating),
    "expired_task_category": ("usererror", _expired_category),
}
#: As SWITCHES: whether outputs are uploaded, and what ends the task.
UPLOADS: dict[str, tuple[bool, Callable[[Wire], object]]] = {
    "terminated_task_uploads_outputs": (True, lambda wire: wire.send("POST", "/jobs/job/tasks/task/terminate")),
    "expired_task_uploads_outputs": (False, lambda wire: wire.advance(3600)),
}


def test_every_assumption_is_here() -> None:
    assert {field.name for field in fields(Assumptions)} == {*SWITCHES, *UPLOADS}


@pytest.mark.parametrize("name", sorted(SWITCHES))
@pytest.mark.parametrize("switched", [False, True])
def test_an_assumption_can_be_switched(name: str, switched: bool) -> None:
    other, look = SWITCHES[name]
    value = other if switched else getattr(Assumptions(), name)

    with account(runner=ScriptedRunner(holds_kills="lost_while" in name), assumptions={name: value}) as wire:
        assert look(wire) == value
    if not switched:
        with account(runner=ScriptedRunner(holds_kills="lost_while" in name)) as wire:
            assert look(wire) == value


@pytest.mark.parametrize("name", sorted(UPLOADS))
@pytest.mark.parametrize("switched", [False, True])
def test_outputs_of_a_task_that_is_ended_can_be_switched(tmp_path: Path, name: str, switched: bool) -> None:
    other, end = UPLOADS[name]
    value = other if switched else getattr(Assumptions(), name)
    clock = ManualClock()
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "start_seconds": 0}
    config = WorldConfig.from_json({"root": str(tmp_path), "pools": [pool], "assumptions": {name: value}})
    world = World(config, clock, ProcessRunner(config))
    with blobs(clock) as storage, serving(world) as endpoint:
        wire = Wire(endpoint, None)
        wire.job()
        output = {
            "filePattern": "out.txt",
            "destination": {"container": {"containerUrl": f"{storage.url}/out?sig=s"}},
            "uploadOptions": {"uploadCondition": "taskcompletion"},
        }
        wire.task(
            commandLine="/bin/bash -c 'echo x > out.txt; sleep 600'",
            outputFiles=[output],
            constraints={"maxWallClockTime": "PT1H"},
        )
        until(lambda: wire.send("GET", "/jobs/job/tasks/task/files/wd%2Fout.txt").body == b"x\n")

        end(wire)
        until(lambda: wire.state() == "completed")

        assert storage.stored == (["/account/out/out.txt"] if value else [])


def test_a_waiting_task_that_is_terminated_completes_at_once_with_a_failure(wire: Wire) -> None:
    wire.job()
    wire.task("first")
    wire.task()
    assert wire.state() == "active"

    wire.done("POST", "/jobs/job/tasks/task/terminate")

    info = wire.info()
    assert (wire.state(), info["result"], info["failureInfo"]["code"]) == ("completed", "failure", "TaskEnded")
    assert info["failureInfo"]["category"] == "usererror"
    assert "startTime" not in info


def test_the_wall_clock_of_a_task_begins_anew_with_each_run(wire: Wire) -> None:
    wire.job()
    wire.task(constraints={"maxWallClockTime": "PT1H"})
    wire.advance(3000)
    wire.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 0})
    wire.advance(3000)
    assert wire.state() == "running"

    wire.advance(600)

    assert wire.info()["failureInfo"]["code"] == "TaskEnded"


def test_a_preempted_task_waits_before_those_that_were_created_later() -> None:
    with account(nodes=1) as wire:
        wire.job()
        wire.task()
        wire.task("later")

        wire.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 0})
        wire.advance(0)

        assert (wire.state(), wire.state("/jobs/job/tasks/later")) == ("running", "active")


@pytest.mark.parametrize(("lag", "shown"), [(0, 1), (120, 0)])
def test_node_counts_are_as_old_as_the_world_says(lag: float, shown: int) -> None:
    with account(timings={"node_counts_lag_seconds": lag}) as wire:
        node = wire.list(f"/pools/{POOL}/nodes")[0]["id"]
        assert wire.list("/nodecounts")[0]["lowPriority"]["idle"] == 1
        wire.advance(60)

        wire.admin("POST", f"/pools/{POOL}/nodes/{node}/preempt", _PREEMPT)

        assert wire.list("/nodecounts")[0]["lowPriority"]["preempted"] == shown
        wire.advance(60)
        assert wire.list("/nodecounts")[0]["lowPriority"]["preempted"] == 1


def test_the_codes_of_refusals_that_azure_does_not_spell_out(wire: Wire) -> None:
    wire.job()
    formula = {"autoScaleFormula": "$TargetLowPriorityNodes = 1;"}
    assert wire.send("PATCH", "/jobs/job", {"poolInfo": {"poolId": "other"}}).refusal == (
        409,
        "OperationInvalidForCurrentState",
    )
    assert wire.send("POST", f"/pools/{POOL}/evaluateautoscale", formula).refusal == (409, "OperationNotValidOnPool")
    wire.done("POST", f"/pools/{POOL}/enableautoscale", formula)
    wire.advance(1)
    resize = wire.send("POST", f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 2})
    assert resize.refusal == (409, "OperationNotValidOnPool")


def test_throttling_says_when_to_come_back_only_where_a_rule_says_so(wire: Wire) -> None:
    for code in ("TooManyRequests", "ServerBusy", "OperationTimedOut"):
        wire.admin("POST", "/faults", {"operation": "list_pools", "code": code, "times": 1})
        assert "Retry-After" not in wire.send("GET", "/pools").headers
