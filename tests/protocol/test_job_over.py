"""Batch jobs that somebody ends or deletes while our tasks are in them, or about to be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.pools.placer import Placer, SharedNames
from shared.protocol.record import State
from tests.support.passing_waits import PassingWaits
from tests.support.story import Story
from tests.support.trainings import Trainings, pool

NO_NODES: dict[str, Any] = {"pools": [{"id": "h100", "targetLowPriorityNodes": 0, "start_seconds": 0}]}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def end_job(story: Story, job_id: str, verb: str = "terminate") -> None:
    """An operator ends a Batch job."""
    method, path = ("DELETE", f"/jobs/{job_id}") if verb == "delete" else ("POST", f"/jobs/{job_id}/{verb}")
    body = b'{"disableTasks": "requeue"}' if verb == "disable" else b""
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    answer = story.world.batch_world.handle(method, path, {"api-version": "2025-06-01"}, headers, body)
    assert answer.status == 202
    story.world.batch_world.advance(5)


@pytest.mark.parametrize("verb", ["terminate", "delete"])
def test_a_job_that_is_over_before_the_task_is_added_gets_a_successor(verb: str) -> None:
    story = Story()
    story.fault(operation="create_task", drop_connection=True)
    story.ask()
    first = story.job_id()
    story.mend()
    end_job(story, first, verb)
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    assert story.created() == [story.task_id(2)]
    if verb == "terminate":
        assert story.job_id() == f"{first}-2"
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}


@pytest.mark.parametrize("verb", ["terminate", "delete"])
def test_a_job_that_is_ended_with_the_running_task_gets_a_successor(verb: str) -> None:
    story = Story()
    story.ask()
    end_job(story, story.job_id(), verb)
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}


@pytest.mark.parametrize("verb", ["terminate", "delete"])
def test_a_cancel_whose_job_is_over_is_carried_out(verb: str) -> None:
    story = Story()
    story.fault(operation="create_task", drop_connection=True)
    story.ask()
    end_job(story, story.job_id(), verb)
    story.mend()
    story.cancel()
    story.until_done()
    assert story.created() == []
    assert story.ends()["m1"] == "cancelled"


@pytest.mark.parametrize("verb", ["terminate", "delete"])
def test_a_task_still_queued_in_a_job_that_is_over_moves_to_a_successor(verb: str) -> None:
    """Batch leaves it queued for ever."""
    story = Story(**NO_NODES)
    story.ask()
    story.tick()
    first = story.job_id()
    assert story.world.live_tasks() == [story.task_id()]
    end_job(story, first, verb)
    story.until(lambda: story.task_id(2) in story.created())
    assert story.job_id() != first
    assert story.record.attempt == 2


@pytest.mark.parametrize("verb", ["terminate", "delete"])
def test_a_cancel_of_a_task_still_queued_in_a_job_that_is_over_is_carried_out(verb: str) -> None:
    story = Story(**NO_NODES)
    story.ask()
    story.tick()
    end_job(story, story.job_id(), verb)
    story.cancel()
    story.until_done()
    assert story.ends()["m1"] == "cancelled"
    assert story.created() == [story.task_id()]


@pytest.mark.parametrize("code", ["JobCompleted", "JobBeingTerminated", "JobBeingDeleted"])
def test_a_job_that_refuses_to_end_a_task_because_it_ends_itself_is_waited_for(code: str) -> None:
    story = Story()
    story.ask()
    story.tick()
    story.fault(operation="terminate_task", code=code, times=3)
    story.cancel()
    story.tick()
    assert story.state is State.ENDING, "the task runs: it is not over before it is seen over"
    story.until_done()
    assert story.ends()["m1"] == "cancelled"


def test_a_successor_does_not_take_the_name_of_a_job_that_was_deleted() -> None:
    """A create of the first attempt may still be under way: it must find no job to land in."""
    story = Story()
    story.ask()
    first = story.job_id()
    end_job(story, first, "delete")
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    assert story.job_id() != first


def gone_job(story: Trainings, how: str) -> str:
    """The Batch job of a training that has moved on from it, and that nobody finds any more."""
    if how != "deleted with its task":
        story.fault(operation="create_task", drop_connection=True)
    story.train("1")
    story.mend()
    record = story.live_of("1")
    assert record.placement is not None
    first = record.placement.job_id
    if how == "ended, then deleted":
        end_job(story, first)
        story.until(lambda: story.live_of("1").attempt == 2)
    end_job(story, first, "delete")
    story.until(lambda: story.live_of("1").attempt == 2)
    return first


@pytest.mark.parametrize("how", ["deleted with its task", "deleted before it", "ended, then deleted"])
def test_a_job_that_was_deleted_is_not_made_again_for_another_request(how: str) -> None:
    """By any process, for a day: a create of the first one's task may still be under way."""
    story = Trainings(pools=[pool("h100", 9)])
    began, first = story.now(), gone_job(story, how)
    for model, age_hours in (("2", 0), ("3", 23), ("4", 25)):
        story.wait(max(timedelta(), began + timedelta(hours=age_hours) - story.now()))
        placer = Placer(story.worker.batch, lambda _kind: ("h100",), SharedNames("tenant"))
        story.with_worker(placer=placer).train(model)
        placed = story.live_of(model).placement
        assert placed is not None
        assert (placed.job_id == first) is (age_hours > 24)
