"""An operator changes pools or settings while jobs are on their way: every job still comes to its end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from local.batch import control
from shared.pools.readings import Readings
from shared.protocol.record import State
from shared.triggers import timer
from tests.support.hastes_task import Left
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, at_most_one_each, pool, two_pools


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def test_jobs_of_the_only_pool_move_to_the_one_that_takes_its_place() -> None:
    """One ran there, one waited there. Neither could ever run again where it was."""
    story = Trainings(pools=[pool("old", 1), pool("new", 2)], candidates=("old",))
    story.train("0", "1")
    story.tick()
    story.world.candidates = ("new",)
    story.call("DELETE", "/pools/old")
    for _ in range(4):
        story.wait(timedelta(minutes=15))
        story.tick()
    assert [story.pool_of(model) for model in "01"] == ["new", "new"]
    assert story.running_in("new") == 2
    story.end_all()
    story.until(lambda: [story.ended(model) for model in "01"] == ["completed"] * 2)
    at_most_one_each(story)


def test_a_job_stays_on_a_pool_that_works_although_it_is_no_candidate_any_more() -> None:
    story = Trainings(pools=[pool("old", 1), pool("new", 1)], candidates=("old",))
    story.train("0")
    story.world.candidates = ("new",)
    for _ in range(10):
        story.tick()
    assert story.pool_of("0") == "old" and story.running_in("old") == 1


def test_a_task_taken_over_that_loses_its_node_moves_to_the_only_candidate() -> None:
    story = Left(pools=[pool("h100", 1), pool("new", 1)], candidates=("new",))
    story.poll()
    story.tick()
    control.preempt_node(story.world.batch_world, "h100")
    story.until(lambda: story.state is State.PLACED and story.record.attempt == 2)
    assert story.record.placement is not None and story.record.placement.pool_id == "new"


def test_a_job_whose_last_candidate_has_lost_it_too_often_fails_while_it_waits() -> None:
    story = two_pools()
    story.train("0")
    story.tick()
    control.preempt_node(story.world.batch_world, "h100")
    while story.states() != [State.WAITING]:
        story.wait(timedelta(seconds=30))
        timer.tick(story.worker, Readings(story.worker, by_list=True), lambda: 0.0)
    story.world.candidates = ("h100",)
    story.with_policy(most_losses_per_pool=1)
    story.until(lambda: story.ended("0"), ticks=30)
    assert story.ended("0") == "failed"
    assert "lost this job 1 times" in story.shown_of("0")["sentence"]
