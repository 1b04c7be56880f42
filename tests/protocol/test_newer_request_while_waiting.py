"""A newer request meets one that pauses: the pause is the older one's, and ends with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.protocol.record import State, task_id
from tests.support.passing_waits import PassingWaits
from tests.support.story import Story
from tests.support.trainings import Trainings, entity

JOB_QUOTA = "ActiveJobAndScheduleQuotaReached"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def no_quota(story: Story) -> None:
    story.fault(operation="create_job", code=JOB_QUOTA)


def asked_again(story: Trainings, model: str, message_id: str) -> None:
    """HASTE's API asks once more for this model's training."""
    story.world.batch_world.advance(1)
    story.world.save_record(entity(model), status="Queued", taskId=None)
    story.deliver(story.message(message_id, "Queued", entity(model), modelId=model))


def refused_for_hours(*models: str) -> Trainings:
    """These trainings have been refused a place often, and pause for long."""
    story = Trainings()
    no_quota(story)
    story.train(*models)
    story.until(lambda: all(_pause(story, model) > timedelta(minutes=20) for model in models), ticks=300)
    return story


def _pause(story: Trainings, model: str) -> timedelta:
    return story.live_of(model).not_before - story.now()


def test_a_newer_request_does_not_sit_out_the_pause_of_the_one_before() -> None:
    story = refused_for_hours("1")
    story.mend()
    asked_again(story, "1", "again")
    story.tick()
    story.tick()
    assert story.created() == [task_id(entity("1").kind, "again", 1)]
    assert story.ended("1") == "superseded"


def test_without_a_place_the_newer_one_is_tried_once_and_pauses_itself() -> None:
    story = refused_for_hours("1")
    tried = len(story.operations("create_job"))
    asked_again(story, "1", "again")
    story.tick()
    story.tick()
    live = story.live_of("1")
    assert (live.request.request_id, live.state, live.waits) == ("again", State.WAITING, 1)
    assert JOB_QUOTA in live.reason
    assert live.not_before > story.now()
    assert len(story.operations("create_job")) == tried + 1


def test_it_still_comes_behind_older_ones_of_its_class() -> None:
    story = refused_for_hours("1", "2")
    story.mend()
    asked_again(story, "2", "again")
    story.until(lambda: len(story.created()) == 2, ticks=10)
    assert story.created() == [task_id(entity("1").kind, "m1", 1), task_id(entity("2").kind, "again", 1)]
