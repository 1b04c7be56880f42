"""What neither waiting nor the user can mend (a role, a network rule): the job waits, says so, and goes on later."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import Mock

import pytest

from shared.errors import NeedsOperator, Transient
from shared.identity import AppIdentity
from shared.protocol.record import State
from tests.support.identity_endpoint import ASSIGNED, UNKNOWN, answering, app_with_one_identity
from tests.support.passing_waits import PassingWaits
from tests.support.story import TWO_POOLS, Story

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
    assert "operator" not in story.record.reason, "that is over"
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


def test_a_job_that_waits_for_an_operator_is_tried_ever_less_often() -> None:
    story = Story()
    story.fault(operation="create_job", **DENIED)
    story.ask()
    for _ in range(2 * 60):
        story.tick()
    tried = [event for event in story.events("request") if event["operation"] == "create_job"]
    assert len(tried) == story.record.waits < 12, "in an hour"
    story.mend()
    story.until(lambda: story.world.live_tasks(), ticks=25)


@pytest.mark.parametrize("code", ["JobWithSameIdExists", "InvalidPropertyValue"])
def test_a_batch_job_that_can_never_be_made_fails_the_request_at_once(code: str) -> None:
    story = Story()
    story.fault(operation="create_job", status=409 if code.startswith("Job") else 400, code=code)
    story.ask()
    story.until_done()
    assert story.ends() == {"m1": "failed"}
    assert story.shown["status"] == "Failed" and code in story.shown["sentence"]


def test_when_a_record_began_to_finish_is_kept_while_access_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that follows from its end is ordered by that time."""
    story = Story()
    story.ask()
    story.tick()
    story.complete()
    with monkeypatch.context() as patch:
        patch.setattr(story.world.haste, "replace", Mock(side_effect=Transient("no answer")))
        story.tick()
        began = story.version.finishing_since
        patch.setattr(story.world.haste, "replace", Mock(side_effect=NeedsOperator("a network rule")))
        story.tick()
        story.tick()
    assert story.state is State.FINISHING and "a network rule" in story.record.reason
    assert story.version.finishing_since == began
    assert story.version.written_at > began


def test_with_a_wrong_client_id_no_call_is_repeated(monkeypatch: pytest.MonkeyPatch, waits: PassingWaits) -> None:
    with app_with_one_identity(monkeypatch, UNKNOWN):
        story = Story(credential=AppIdentity(UNKNOWN), **TWO_POOLS)
        story.ask()
    assert "AZURE_CLIENT_ID" in story.record.reason, "with two pools it is the counts that need a token first"
    assert waits.seconds == []


def test_an_identity_that_does_not_answer_is_told_and_looked_at_again_soon(
    monkeypatch: pytest.MonkeyPatch, waits: PassingWaits
) -> None:
    with answering(monkeypatch, 503, '{"statusCode": 503, "message": "busy"}'):
        story = Story(credential=AppIdentity(ASSIGNED))
        story.ask()
    assert story.record.reason == "could not get a token for the app's identity: the identity endpoint answered 503"
    assert waits.seconds == []
    assert story.record.not_before - story.now() <= timedelta(minutes=1)


@pytest.mark.parametrize("operation", ["create_job", "create_task"])
def test_the_user_sees_what_a_request_waits_for(operation: str) -> None:
    story = Story()
    story.fault(operation=operation, **DENIED)
    story.ask()
    assert story.shown["note"] == "Waiting for an operator"
    story.mend()
    story.until(lambda: story.world.live_tasks(), ticks=20)
    story.complete()
    story.until_done()
    assert story.shown["status"] == "Processed"


def test_the_user_sees_when_it_waits_for_something_else() -> None:
    story = Story()
    story.fault(operation="create_job", **DENIED)
    story.ask()
    story.mend()
    story.fault(operation="create_job", status=409, code="ActiveJobAndScheduleQuotaReached")
    story.until(lambda: "quota" in story.record.reason, ticks=20)
    assert story.shown["note"] == "Waiting for capacity"


def test_a_job_whose_record_cannot_be_shown_waits_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.fault(operation="create_job", **DENIED)
    monkeypatch.setattr(story.world.haste, "replace", Mock(side_effect=NeedsOperator("a network rule")))
    story.ask()
    assert "403 AuthenticationFailed" in story.record.reason
