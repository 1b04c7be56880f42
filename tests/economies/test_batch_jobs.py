"""A Batch job of our own is taken to be there for ten minutes; if it has ended meanwhile, adding the task tells."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.protocol.record import State
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, at_most_one_each, pool


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def one_pool(nodes: int = 9) -> Trainings:
    return Trainings(pools=[pool("h100", nodes)])


def job_calls(story: Trainings, model: str) -> list[str]:
    """What a training's message asks about Batch jobs, and what it does with them."""
    names = ("get_job", "create_job", "list_jobs", "enable_job")
    before = len(story.operations(*names))
    story.train(model)
    return story.operations(*names)[before:]


def job_of(story: Trainings, model: str) -> str:
    placed = story.live_of(model).placement
    assert placed is not None
    return placed.job_id


def test_the_first_training_asks_for_its_job_and_those_of_the_next_ten_minutes_do_not() -> None:
    story = one_pool()
    assert job_calls(story, "1") == ["get_job", "create_job"]
    assert job_calls(story, "2") == []
    story.wait(timedelta(minutes=9))
    assert job_calls(story, "3") == []
    story.wait(timedelta(minutes=1))
    assert job_calls(story, "4") == ["get_job"]
    assert job_calls(story, "5") == []
    assert len({job_of(story, model) for model in "12345"}) == 1


@pytest.mark.parametrize("verb", ["terminate", "delete"])
def test_a_training_whose_job_has_ended_meanwhile_moves_to_the_successor(verb: str) -> None:
    story = one_pool()
    story.train("1")
    story.end_all()
    story.until(lambda: story.ended("1"))
    first = story.events("task_created")[0]["job"]
    method, path = ("POST", f"/jobs/{first}/terminate") if verb == "terminate" else ("DELETE", f"/jobs/{first}")
    story.call(method, path)
    assert job_calls(story, "2") == [], "it is taken to be there"
    assert (story.live_of("2").state, story.live_of("2").attempt) == (State.WAITING, 2)
    story.until(lambda: len(story.world.runner.running()) == 1)
    assert job_of(story, "2") == f"{first}-2"
    assert story.live_of("2").losses == (), "no node was lost: its budget is whole"
    assert job_calls(story, "3") == []
    assert job_of(story, "3") == f"{first}-2", "the next one goes there at once"
    story.end_all()
    story.until(lambda: story.ended("2") and story.ended("3"))
    assert [story.shown_of(model)["status"] for model in "123"] == ["Processed"] * 3
    at_most_one_each(story)


def test_once_one_has_met_the_end_of_the_job_the_next_one_does_not() -> None:
    story = one_pool()
    story.train("1")
    first = job_of(story, "1")
    story.end_all()
    story.until(lambda: story.ended("1"))
    story.call("POST", f"/jobs/{first}/terminate")
    story.train("2")
    assert job_calls(story, "3") == ["get_job", "get_job", "create_job"], "the job, and its successor, which is made"
    assert (job_of(story, "3"), story.live_of("3").attempt) == (f"{first}-2", 1)


@pytest.mark.parametrize("code", ["JobCompleted", "JobBeingTerminated", "JobBeingDeleted", "JobNotFound"])
def test_whatever_batch_calls_it_the_job_is_asked_for_again_and_the_request_is_not_lost(code: str) -> None:
    """The job is there all the same: the refusal was about a moment, and the next attempt finds out."""
    story = one_pool()
    story.train("1")
    story.fault(operation="create_task", code=code, times=1)
    story.train("2")
    assert story.live_of("2").state is State.ENDING
    asked = len(story.operations("get_job"))
    story.until(lambda: len(story.world.runner.running()) == 2)
    assert len(story.operations("get_job")) > asked
    assert story.live_of("2").attempt == 2
    story.end_all()
    story.until(lambda: story.ended("1") and story.ended("2"))
    assert [story.shown_of(model)["status"] for model in "12"] == ["Processed"] * 2
    at_most_one_each(story)


def test_a_cancel_is_not_lost_in_the_job_that_has_ended() -> None:
    story = one_pool()
    story.train("1")
    story.end_all()
    story.until(lambda: story.ended("1"))
    story.call("POST", f"/jobs/{story.events('task_created')[0]['job']}/terminate")
    story.train("2")
    story.deliver(story.message("c2", "Cancelled", story.live_of("2").entity, modelId="2"))
    story.until(lambda: story.ended("2"))
    assert story.ended("2") == "cancelled"
    assert len(story.created()) == 1
