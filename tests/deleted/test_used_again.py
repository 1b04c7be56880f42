"""HASTE's ids of models are small numbers: a new model may have the id of one that was deleted, and is left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.errors import NeedsOperator, Transient
from shared.pools.readings import Readings
from shared.protocol.record import State
from shared.storage.failures import StorageFailed
from shared.triggers import timer
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import INFERENCE, TRAINING
from tests.support.story import TRAINING_NAME, Story

NO_QUOTA = {"operation": "create_job", "code": "ActiveJobAndScheduleQuotaReached"}
FRESH = [{"status": None, "taskId": None}, {"status": "Queued", "taskId": None}, {"status": "Cancelled"}]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def delete(story: Story) -> None:
    del story.world.haste.blobs[TRAINING_NAME]


def ending(**options: Any) -> Story:
    """A training that runs, whose model is deleted, and whose attempt is being ended for that."""
    story = Story(**options)
    story.ask()
    story.tick()
    delete(story)
    story.until(lambda: story.state is State.ENDING, ticks=4)
    return story


@pytest.mark.parametrize("model", FRESH)
def test_the_end_of_the_deleted_models_task_is_not_shown_in_a_new_one(model: dict[str, Any]) -> None:
    story = ending()
    story.world.save_record(TRAINING, **model)
    story.until_done()
    assert story.shown == model
    assert story.world.live_tasks() == []
    assert story.ends() == {"m1": "failed"}


@pytest.mark.parametrize("model", FRESH)
def test_nor_is_its_success(model: dict[str, Any]) -> None:
    """Deleted when the task had ended by itself, before HASTE's late save is settled."""
    story = Story(follow_up=INFERENCE.kind)
    story.ask()
    story.tick(5)
    delete(story)
    story.complete()
    story.tick(5)
    assert story.state is State.FINISHING, "the API may still save"
    story.world.save_record(TRAINING, **model)
    story.until_done()
    assert story.shown == model
    assert story.world.ledger.read(INFERENCE.key) is None, "nothing follows"
    story.cancel()
    story.world.batch_world.advance(120)
    story.deliver_own()
    assert story.shown == model | {"status": "Cancelled"}


def test_a_new_model_is_trained_as_any_other() -> None:
    story = ending()
    story.world.save_record(TRAINING, status="Queued", taskId=None)
    story.ask("m2")
    story.until(lambda: story.world.live_tasks() == [story.task_id(message_id="m2")])
    story.tick()
    story.complete()
    story.until_done()
    assert (story.shown["status"], story.shown["taskId"]) == ("Processed", story.task_id(message_id="m2"))
    assert story.ends() == {"m1": "superseded", "m2": "completed"}


def test_the_very_record_that_hastes_api_saves_again_late_is_told_the_end() -> None:
    story = ending()
    story.world.save_record(TRAINING, status="InProgress", taskId=story.task_id(), jobStatus="InProgress")
    story.until_done()
    assert (story.shown["status"], story.shown["sentence"]) == ("Failed", "HASTE's record was deleted")


def test_a_cancel_and_a_deletion_leave_nothing_behind() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.cancel()
    delete(story)
    story.until_done()
    assert story.world.live_tasks() == []
    assert TRAINING_NAME not in story.world.haste.blobs


# --- waiting ------------------------------------------------------------------------------------------------------


def test_a_job_that_waits_for_quota_ends_at_its_next_look_and_never_has_a_task() -> None:
    story = Story()
    story.fault(**NO_QUOTA)
    story.ask()
    for _ in range(10):
        story.tick()
    assert story.record.waits > 1
    delete(story)
    due = story.record.not_before
    story.until(lambda: story.now() > due, ticks=40)
    story.until_done(ticks=2)
    story.mend()
    assert story.ends() == {"m1": "failed"}
    (end,) = story.world.ledger.done(TRAINING)
    assert end.outcome is not None and "was deleted" in end.outcome.sentence
    assert story.created() == []
    assert story.world.haste.blobs == {}


def test_a_job_between_two_attempts_ends_as_well() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.worker.batch.terminate_task(story.job_id(), story.task_id())  # by somebody: the next attempt follows
    while story.state is not State.WAITING:
        story.world.batch_world.advance(30)
        timer.tick(story.worker, Readings(story.worker, by_list=True), lambda: 0.0)
    delete(story)
    story.world.batch_world.advance(timedelta(minutes=3).total_seconds())
    story.until_done()
    assert story.created() == [story.task_id()]
    assert story.world.haste.blobs == {}


def test_deleted_before_the_task_is_shown_it_is_ended_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    real = story.worker.batch.create_task

    def create(*arguments: Any) -> Any:
        answer = real(*arguments)
        delete(story)
        return answer

    monkeypatch.setattr(story.worker.batch, "create_task", create)
    story.ask()
    assert story.state is State.ENDING
    assert story.world.live_tasks() == [], "by the handler itself"


# --- what is no deletion ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [StorageFailed("404 without a code"), StorageFailed("", "ContainerNotFound"), Transient("503")]
)
def test_a_record_that_cannot_be_read_ends_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.ask()
    story.tick()
    with monkeypatch.context() as patch:
        for name in ("read_with_etag", "replace"):
            patch.setattr(story.world.haste, name, _raising(error))
        for _ in range(6):
            story.tick()
    assert isinstance(error, Transient | NeedsOperator)
    story.tick()
    assert story.world.live_tasks() == [story.task_id()]
    assert story.shown["status"] == "InProgress"


def test_nor_does_one_that_is_no_json() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.world.haste.save(TRAINING_NAME, b"not JSON")
    for _ in range(6):
        story.tick()
    assert story.world.live_tasks() == [story.task_id()]


def _raising(error: Exception) -> Any:
    def call(*_arguments: object) -> None:
        raise error

    return call
