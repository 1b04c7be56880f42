"""HASTE's own queue app leaves poll messages behind when the worker takes its place: their tasks are taken over."""

from __future__ import annotations

from typing import Any

import pytest

from shared.protocol.record import State
from tests.support.hastes_task import JOB, TASK, Left
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import TRAINING


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def test_a_running_task_is_taken_over_and_nothing_is_started() -> None:
    story = Left()
    story.poll()
    assert story.record.placement is not None
    assert (story.record.placement.job_id, story.record.placement.task_id) == (JOB, TASK)
    assert story.record.placement.pool_id == "h100"
    story.tick()
    story.complete()
    story.until_done()
    assert story.created() == [TASK]
    assert (story.shown["status"], story.shown["taskId"], story.shown["jobStatus"]) == ("Processed", TASK, "Processed")


def test_poll_messages_that_come_again_and_several_of_them_take_it_over_once() -> None:
    story = Left()
    story.poll("p1")
    story.tick(1)
    story.poll("p2")
    story.poll("p1")
    story.complete()
    story.until_done()
    story.poll("p3")
    story.until_done()
    assert story.created() == [TASK]
    assert story.ends() == {TASK: "completed"}
    assert story.shown["status"] == "Processed"


def test_a_task_that_ended_meanwhile_is_finished() -> None:
    story = Left()
    story.complete(exit_code=1)
    story.poll()
    story.until_done()
    assert (story.shown["status"], story.shown["taskId"]) == ("Failed", TASK)
    assert story.created() == [TASK]


def test_the_task_of_a_cancelled_training_is_ended() -> None:
    story = Left()
    story.world.save_record(TRAINING, status="Cancelled")
    story.poll()
    story.until_done()
    assert story.world.live_tasks() == []
    assert (story.shown["status"], story.shown["jobStatus"]) == ("Cancelled", "Cancelled")
    assert story.created() == [TASK]


def test_a_cancel_message_of_a_task_taken_over_ends_it() -> None:
    story = Left()
    story.poll()
    story.tick(1)
    story.cancel()
    story.until_done()
    assert story.world.live_tasks() == []
    assert story.shown["status"] == story.shown["jobStatus"] == "Cancelled"


@pytest.mark.parametrize(
    "fields",
    [
        {"taskId": "trn-00000000-0000-4000-8000-000000000000"},
        {"taskId": None},
        {"status": "Processed"},
        {"status": "Failed"},
    ],
)
def test_a_stale_poll_message_changes_nothing(fields: dict[str, Any]) -> None:
    story = Left()
    story.world.save_record(TRAINING, **fields)
    before = story.shown
    story.poll()
    story.tick()
    assert story.live is None
    assert story.shown == before
    assert story.created() == [TASK]
    assert story.kept.blobs == {}


def test_a_poll_message_without_a_record_of_haste_changes_nothing() -> None:
    story = Left()
    story.world.haste.blobs.clear()
    story.poll()
    assert story.live is None


def test_a_new_request_after_the_take_over_ends_the_old_task_first() -> None:
    story = Left()
    story.poll()
    story.tick(1)
    story.ask("m2")
    story.until(lambda: story.task_id(1, "m2") in story.world.live_tasks())
    assert story.world.live_tasks() == [story.task_id(1, "m2")]
    story.complete()
    story.until_done()
    assert story.ends() == {TASK: "superseded", "m2": "completed"}
    assert story.shown["taskId"] == story.task_id(1, "m2")


def test_a_task_taken_over_that_batch_does_not_have_any_more_is_started_anew() -> None:
    """Its HASTE record still says in progress, so somebody waits for it."""
    story = Left()
    story.world.account.delete_stuck_task(JOB, TASK)
    story.world.batch_world.tick()
    story.poll()
    assert story.record.placement is not None
    assert story.record.placement.job_id != JOB, "nothing is added to a job that is not ours"
    story.tick()
    story.complete()
    story.until_done()
    assert story.shown["status"] == "Processed"
    assert story.state is not State.PLACED
