"""A Batch job holds the finished tasks of a week: they cost nothing, except for each one a look when it has ended."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from bench.deployment import Deployment
from shared.batch.types import TaskBody
from shared.housekeeping import janitor
from shared.pools.readings import Readings
from shared.triggers import timer
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, at_most_one_each, pool

FINISHED, PAGE = 300, 100
LIST, GET = "list_tasks", "get_task"
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def body(name: str) -> TaskBody:
    return TaskBody(name, "work", "image", "--rm", (), (), {}, timedelta(days=7), "task")


def of_small_pages(world: Any) -> None:
    object.__setattr__(world.config, "page_size", PAGE)


def finish(story: Trainings, number: int, job_id: str) -> None:
    """So many tasks of earlier requests have run and ended in this job."""
    of_small_pages(story.world.batch_world)
    live = set(story.world.runner.running())
    for one in range(number):
        story.worker.batch.create_task(job_id, body(f"trn-old-{one:04}"))
        for run in set(story.world.runner.running()) - live:
            story.world.runner.finish(*run, 0)
        story.world.batch_world.tick()


def job_of(story: Trainings, model: str) -> str:
    placed = story.live_of(model).placement
    assert placed is not None
    return placed.job_id


def asked(story: Trainings) -> Counter[str]:
    """What the next run of the timer asks about tasks."""
    before = len(story.operations(LIST, GET))
    story.world.batch_world.advance(30)
    timer.tick(story.worker, Readings(story.worker, by_list=True), lambda: 0.0)
    return Counter(story.operations(LIST, GET)[before:])


def test_a_live_training_beside_many_finished_tasks_costs_what_it_costs_alone() -> None:
    deployment = Deployment([pool("h100", 2)])
    entity = deployment.train()
    for _ in range(3):
        deployment.tick()
    alone = calls(deployment)
    ((job, task),) = deployment.runner.running()
    of_small_pages(deployment.world)
    for one in range(FINISHED):
        deployment.app.worker.batch.create_task(job, body(f"trn-old-{one:04}"))
        ((_job, other),) = set(deployment.runner.running()) - {(job, task)}
        deployment.runner.finish(job, other, 0)
        deployment.world.tick()
    assert len(deployment.world.jobs[job].tasks) == FINISHED + 1
    assert calls(deployment) == alone
    assert alone["Batch list_tasks"] == 1
    assert list(Readings(deployment.app.worker, by_list=True).live_tasks(job)) == [task]
    assert [one.key for one in deployment.app.worker.ledger.live()] == [entity.key]


def calls(deployment: Deployment) -> Counter[str]:
    """Of two runs of the timer, the second: nothing is due in it."""
    deployment.tick()
    deployment.count_anew()
    deployment.tick(1)
    return deployment.calls()


def test_each_job_costs_one_look_when_its_task_has_ended() -> None:
    story = Trainings(pools=[pool("h100", 4)])
    story.train("1", "2", "3")
    finish(story, PAGE + 1, job_of(story, "1"))
    assert asked(story) == {LIST: 1}
    story.end_all()
    assert asked(story) == {LIST: 1, GET: 3}
    assert [story.shown_of(model)["status"] for model in "123"] == ["Processed"] * 3
    assert asked(story) == {}


def test_many_ends_in_one_job_are_learnt_by_one_list() -> None:
    story = Trainings(pools=[pool("h100", 30)])
    models = [str(number) for number in range(30)]
    story.train(*models)
    assert asked(story) == {LIST: 1}
    of_small_pages(story.world.batch_world)
    story.end_all()
    assert asked(story) == {LIST: 2}
    assert {story.shown_of(model)["status"] for model in models} == {"Processed"}
    at_most_one_each(story)


def test_an_end_that_could_not_be_read_is_asked_for_once_in_a_run_and_decides_nothing() -> None:
    story = Trainings(pools=[pool("h100", 1)])
    story.train("1")
    story.tick()
    story.end_all()
    story.fault(operation=GET, status=403, code="AuthorizationFailure")
    assert asked(story) == {LIST: 1, GET: 1}
    assert story.shown_of("1")["status"] == "InProgress"
    story.mend()
    story.until(lambda: story.ended("1") == "completed")


@pytest.mark.parametrize("models", ["1", "12345678"])
def test_a_task_that_batch_does_not_have_is_told_from_one_that_has_ended(models: str) -> None:
    """It is created again under the same id; ended ones never are."""
    story = Trainings(pools=[pool("h100", 8)])
    story.train(*models)
    story.tick()
    placed = story.live_of("1").placement
    assert placed is not None
    story.call("DELETE", f"/jobs/{placed.job_id}/tasks/{placed.task_id}", status=200)
    story.end_all()
    story.tick()
    assert Counter(story.created())[placed.task_id] == 2
    assert len(story.created()) == len(models) + 1
    assert {story.shown_of(model)["status"] for model in models[1:]} <= {"Processed"}


def test_a_task_that_has_ended_takes_no_slot_of_the_next_one() -> None:
    """The list of live tasks does not show it, as it does not show one that is only about to be added."""
    story = Trainings(pools=[pool("h100", 1), pool("t4", 1)], candidates=("h100", "t4"))
    story.train("1")
    story.end_all()
    readings = Readings(story.worker, by_list=True)
    readings.live_tasks(job_of(story, "1"))
    assert readings.taken()["h100"] == 0
    story.train("2")
    story.call("DELETE", f"/jobs/{job_of(story, '2')}/tasks/{story.live_of('2').placement.task_id}", status=200)  # type: ignore[union-attr]
    readings = Readings(story.worker, by_list=True)
    readings.live_tasks(job_of(story, "2"))
    assert readings.taken()["h100"] == 1


def test_all_tasks_of_an_earlier_weeks_job_are_listed_once_before_it_is_deleted() -> None:
    story = Trainings(pools=[pool("h100", 1)])
    story.train("1")
    job = job_of(story, "1")
    story.end_all()
    story.until(lambda: story.ended("1"))
    story.wait(timedelta(days=7))  # of the tasks before that Batch knows nothing any more
    finish(story, 2 * PAGE, job)
    listed = []
    for _ in range(8):
        before = len(story.operations(LIST))
        janitor.tidy(story.worker, Readings(story.worker, by_list=True), story.worker.batch.jobs_of("tenant"))
        listed.append(len(story.operations(LIST)) - before)
        story.world.batch_world.advance(DAY / 2)
    assert job not in story.world.batch_world.jobs
    assert [pages for pages in listed if pages] == [1, 2], "open: its live ones; ended: nothing for a day, then all"
