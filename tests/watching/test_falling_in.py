"""A new job does not overtake older ones of its class that wait for a place."""

from __future__ import annotations

import pytest

from local.batch import control
from shared.kinds import Kind
from shared.protocol.record import State
from tests.placement.test_choosing import QUOTA, growing, resize_failed
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import INFERENCE
from tests.support.trainings import Trainings, at_most_one_each

JOB_QUOTA = "ActiveJobAndScheduleQuotaReached"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def no_quota(story: Trainings) -> None:
    for name in ("h100", "t4"):
        resize_failed(story, name, QUOTA)


def quota_again(story: Trainings) -> None:
    for name in ("h100", "t4"):
        control.set_resize_errors(story.world.batch_world, name, [])


def waiting(*models: str) -> Trainings:
    """These trainings have been refused a place often, and there is quota again: nobody has told them yet."""
    story = growing()
    no_quota(story)
    story.train(*models)
    for _ in range(20):
        no_quota(story)
        story.tick()
    assert story.states() == [State.WAITING] * len(models)
    quota_again(story)
    return story


def test_a_new_job_is_placed_behind_the_older_ones_that_wait() -> None:
    story = waiting("1", "2")
    story.train("3")
    assert story.live_of("3").state is State.WAITING
    assert "2 older jobs of its class wait" in story.live_of("3").reason
    assert story.shown_of("3")["note"] == "Waiting for capacity"
    story.until(lambda: len(story.created()) == 3, ticks=10)
    placed = [story.live_of(model).placement for model in "123"]
    times = [one.at for one in placed if one is not None]
    assert len(times) == 3 and times == sorted(times)
    at_most_one_each(story)


def test_it_waits_for_one_run_of_the_timer_at_most_if_the_older_ones_are_refused_again() -> None:
    """The older one has used up its losses on the only pool that is free."""
    story = waiting("1")
    version = story.world.ledger.read("training/" + story.live_of("1").entity.key.partition("/")[2])
    assert version is not None
    no_quota(story)
    story.train("2")
    assert "older jobs" in story.live_of("2").reason
    story.tick()
    assert "at its quota" in story.live_of("2").reason, "it has been tried by itself"


def test_the_next_new_one_comes_behind_it() -> None:
    story = waiting("1")
    story.train("2", "3")
    assert "2 older jobs" in story.live_of("3").reason


def test_a_message_that_comes_again_changes_nothing() -> None:
    story = waiting("1")
    story.train("2")
    before = story.live_of("2")
    for _ in range(3):
        story.deliver(story.message("m2", "Queued", before.entity, modelId="2"))
    assert story.live_of("2") == before
    for _ in range(10):
        story.tick()
    assert len(story.created()) == 2
    at_most_one_each(story)


def test_the_classes_do_not_wait_for_each_other() -> None:
    story = waiting("1")
    story.world.save_record(INFERENCE, status="Queued", taskId=None)
    story.deliver(story.message("mi", "Queued", INFERENCE), Kind.INFERENCE)
    found = story.world.ledger.read(INFERENCE.key)
    assert found is not None and found.record.state is State.PLACED


def test_jobs_that_are_just_being_taken_in_hold_nobody_back() -> None:
    story = growing()
    story.fault(operation="create_job", status=503)
    story.train("1")
    assert story.live_of("1").state is State.WAITING and not story.live_of("1").waits
    story.mend()
    story.train("2")
    assert story.live_of("2").state is State.PLACED


def test_a_cancelled_one_holds_nobody_back() -> None:
    story = waiting("1")
    entity = story.live_of("1").entity
    story.deliver(story.message("c1", "Cancelled", entity, modelId="1"))
    story.train("2")
    assert story.live_of("2").state is State.PLACED


def test_it_holds_for_job_quota_with_a_single_pool_as_well() -> None:
    story = Trainings(pools=[{"id": "h100", "targetLowPriorityNodes": 2, "start_seconds": 0}])
    story.fault(operation="create_job", code=JOB_QUOTA)
    story.train("1")
    for _ in range(6):
        story.tick()
    story.mend()
    story.train("2")
    assert story.live_of("2").state is State.WAITING
    story.until(lambda: len(story.created()) == 2, ticks=10)
    first, second = (story.live_of(model).placement for model in "12")
    assert first is not None and second is not None and first.at <= second.at
