"""The same decisions on what the Batch adapter really reads of a preempted task and its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.batch import Failure, RunEnd, control
from shared.batch.types import TaskView
from shared.pools import recovery
from shared.protocol.record import NodeRun, Placement, Record, Request, State
from shared.protocol.table import Seen
from tests.recovery.test_losses import POLICY
from tests.support.batch_account import Account
from tests.support.values import ENTITY

ONE_POOL = [{"id": "h100", "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None}]


class Running:
    """One task that runs, and the record of its attempt."""

    def __init__(self, **world: Any) -> None:
        self.account = Account(ONE_POOL, **world)
        self.account.batch.create_job("job", "h100", None, None)
        self.account.batch.spend_task_id("job", "trn-1")
        self.account.world.advance(1)
        now, task = self.account.clock.now(), self.task()
        assert task.node_id is not None and task.started_at is not None
        self.record = Record(
            ENTITY,
            Request("m1", now),
            State.PLACED,
            now,
            placement=Placement("h100", "job", "trn-1", now, ""),
            node_run=NodeRun(task.node_id, task.started_at),
        )

    def task(self) -> TaskView:
        found = self.account.batch.task("job", "trn-1")
        assert found is not None
        return found

    def finish(self, end: RunEnd) -> None:
        self.account.runner.finish("job", "trn-1", end)
        self.account.world.tick()

    def loss(self) -> str | None:
        return recovery.find_loss(self.record, self.task(), self.account.batch.nodes("h100"), self.account.clock.now())

    def preempt(self, **options: Any) -> None:
        self.account.world.advance(60)
        control.preempt_task(self.account.world, "job", "trn-1", **options)


def _exit(code: int) -> Callable[[Running], None]:
    return lambda running: running.finish(RunEnd(exit_code=code))


def _fail(code: str, stage: str = "run") -> Callable[[Running], None]:
    return lambda running: running.finish(RunEnd(failure=Failure(code, "servererror", "told so", stage=stage)))


@pytest.mark.parametrize(
    ("what", "seen", "is_lost"),
    [
        (lambda running: running.preempt(), Seen.LIVE, True),
        (lambda running: running.preempt(state="unusable"), Seen.LIVE, True),
        (lambda running: running.preempt(return_after_seconds=0), Seen.LIVE, True),
        (lambda running: None, Seen.LIVE, False),
        (_exit(0), Seen.ENDED_WITH_SUCCESS, False),
        (_exit(1), Seen.ENDED_BY_ITSELF, False),
        (_exit(137), Seen.ENDED_BY_ITSELF, False),
        (_fail("BlobAccessDenied", "resources"), Seen.ENDED_BY_ITSELF, False),
        (_fail("DiskFull", "resources"), Seen.ENDED_OTHERWISE, False),
    ],
    ids=["preempted", "unusable", "back at once", "well", "exit 0", "exit 1", "exit 137", "no input", "disk full"],
)
def test_interrupted_or_failed(what: Callable[[Running], None], seen: Seen, is_lost: bool) -> None:
    """A preempted task is never a failure, a failed program never a preemption."""
    running = Running()
    what(running)
    assert recovery.seen(running.task(), POLICY) is seen
    run = recovery.latest_run(running.record, running.task())
    assert run is not None
    if run == running.record.node_run:
        assert bool(running.loss()) is is_lost
    else:
        assert recovery.was_interrupted_unseen(running.record, run) is is_lost, "it runs again already"


@pytest.mark.parametrize("keeps_node_info", [True, False])
def test_a_preemption_moves_no_counter_and_is_noticed_all_the_same(keeps_node_info: bool) -> None:
    running = Running(assumptions={"preempted_task_keeps_node_info": keeps_node_info})
    running.preempt()
    raw = running.account.raw("GET", "/jobs/job/tasks/trn-1")
    assert raw["executionInfo"].get("retryCount", 0) == raw["executionInfo"].get("requeueCount", 0) == 0
    assert (running.task().state, running.task().previous_state) == ("active", "running")
    assert running.loss() is not None
    assert (running.task().node_id is None) is not keeps_node_info


def test_a_node_that_came_back_under_its_old_id_has_lost_its_run() -> None:
    running = Running()
    running.preempt(stuck=True)
    (node,) = running.account.batch.nodes("h100")
    control.bring_back(running.account.world, "h100", node)
    running.account.world.advance(300)
    assert running.account.batch.nodes("h100")[node].state in ("idle", "running")
    assert running.task().state == "running", "Batch has not noticed"
    why = running.loss()
    assert why is not None and "booted" in why


def test_one_missing_source_is_no_loss() -> None:
    running = Running()
    running.preempt(requeue_after_seconds=600)
    assert running.loss() is None, "the task is still called running, and not for long"
    running.account.world.advance(130)
    assert running.loss() is not None
