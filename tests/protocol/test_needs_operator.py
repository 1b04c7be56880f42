"""What neither waiting nor the user can mend (a role, a network rule): the job waits, says so, and goes on later."""

from __future__ import annotations

import pytest

from shared.protocol.record import State
from tests.batch.passing_waits import PassingWaits
from tests.protocol.story import Story

DENIED = {"status": 403, "code": "AuthenticationFailed"}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.mark.parametrize("operation", ["get_job", "create_job", "create_task"])
def test_a_request_waits_until_access_is_granted(operation: str) -> None:
    story = Story()
    story.fault(operation=operation, **DENIED)
    story.ask()
    assert "waiting for an operator" in story.record.reason
    assert "403 AuthenticationFailed" in story.record.reason
    for _ in range(3):
        story.tick()
    assert story.state is (State.PLACED if operation == "create_task" else State.WAITING)
    assert story.shown["status"] == "Queued", "not the user's fault"
    story.mend()
    story.until(lambda: story.world.live_tasks(), ticks=20)
    story.complete()
    story.until_done()
    assert story.created() == [story.task_id()]
    assert story.ends() == {"m1": "completed"}


def test_a_running_task_is_left_alone_while_batch_cannot_be_read() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.fault(operation="list_tasks", **DENIED)
    for _ in range(3):
        story.tick()
    story.mend()
    story.complete()
    story.until_done()
    assert story.started() == [story.task_id()]
    assert story.ends() == {"m1": "completed"}


def test_a_cancel_meanwhile_is_carried_out_when_access_is_granted() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.fault(operation="terminate_task", **DENIED)
    story.cancel()
    for _ in range(3):
        try:
            story.tick()
        except ExceptionGroup:
            continue
    assert story.world.live_tasks() == [story.task_id()]
    assert story.state is State.ENDING
    story.mend()
    story.until_done()
    assert story.ends()["m1"] == "cancelled"
