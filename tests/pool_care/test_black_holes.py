"""A node that fails every task at once: its pool is demoted, its tasks run elsewhere. A broken program is not that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from shared.kinds import Kind
from shared.pools.readings import Readings
from shared.triggers import timer
from shared.worker import ManagedPools
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import INFERENCE
from tests.support.trainings import Trainings, at_most_one_each, pool

PERMISSION_DENIED = 126


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def one_wide_node(**options: Any) -> Trainings:
    """h100 is one node that runs three tasks at once; t4 has a node for each of them."""
    pools = [pool("h100", 1, taskSlotsPerNode=3), pool("t4", 3)]
    return Trainings(pools=pools, candidates=("h100", "t4"), **options)


def start(story: Trainings, *models: str) -> None:
    """All of them run on the one node of h100."""
    soon = story.now() + timedelta(seconds=10)
    story.worker.notes.update(lambda notes: notes.with_cool_down("t4", soon, "not yet"))
    story.train(*models)
    assert {story.pool_of(model) for model in models} == {"h100"}
    assert story.running_in("h100") == len(models)


def fail_at_once(story: Trainings) -> None:
    story.end_all(PERMISSION_DENIED, pool="h100")


def test_three_tasks_that_fail_at_once_on_one_node_run_elsewhere() -> None:
    story = one_wide_node()
    start(story, "1", "2", "3")
    fail_at_once(story)
    with capture_logs() as logs:
        story.tick()
    assert "pool demoted" in [line["event"] for line in logs if line["log_level"] == "error"]
    story.until(lambda: story.running_in("t4") == 3)
    assert "fails every task at once" in story.worker.notes.read().avoid(story.now())["h100"].why
    assert [story.live_of(model).attempt for model in "123"] == [2, 2, 2], "none of them was shown as failed"
    story.end_all()
    story.until(lambda: not story.states())
    assert [story.ended(model) for model in "123"] == ["completed"] * 3
    at_most_one_each(story)


def test_new_jobs_leave_the_pool_alone_for_a_while() -> None:
    story = one_wide_node()
    start(story, "1", "2", "3")
    fail_at_once(story)
    story.until(lambda: story.running_in("t4") == 3)
    story.train("4")
    assert story.pool_of("4") == "t4", "busy, but what it runs goes well"
    story.wait(timedelta(minutes=31))
    story.train("5")
    assert story.pool_of("5") == "h100"


def test_failures_of_tasks_in_different_batch_jobs_count_together() -> None:
    story = one_wide_node()
    start(story, "1", "2")
    story.world.save_record(INFERENCE, status="Queued", taskId=None)
    story.deliver(story.message("mi", "Queued", INFERENCE), Kind.INFERENCE)
    assert story.running_in("h100") == 3
    fail_at_once(story)
    story.until(lambda: story.running_in("t4") == 3)
    assert story.world.record(INFERENCE)["status"] != "Failed"


def test_the_last_of_three_is_retried_though_the_others_failed_before_anybody_could_know() -> None:
    story = one_wide_node()
    start(story, "1", "2")
    fail_at_once(story)
    story.until(lambda: story.ended("1") and story.ended("2"))
    assert [story.ended(model) for model in "12"] == ["failed", "failed"]
    start(story, "3")
    fail_at_once(story)
    story.until(lambda: story.running_in("t4"))
    assert story.live_of("3").attempt == 2
    assert "h100" in story.worker.notes.read().avoid(story.now())


def test_failures_over_two_runs_of_the_timer_count_together_and_nobody_is_told_of_one() -> None:
    """A node that runs one task at a time takes as long as that to fail three of them."""
    story = one_wide_node()
    start(story, "1", "2", "3")
    for _ in range(2):
        job, task = story.world.runner.running()[0]
        story.world.runner.finish(job, task, PERMISSION_DENIED)
        story.world.batch_world.advance(1)
    timer.tick(story.worker, Readings(story.worker, by_list=True), lambda: 0.0)
    assert {story.shown_of(model)["status"] for model in "123"} == {"InProgress"}
    fail_at_once(story)
    story.until(lambda: story.running_in("t4") == 3)
    assert [story.live_of(model).attempt for model in "123"] == [2, 2, 2]
    story.end_all()
    story.until(lambda: not story.states())
    assert [story.ended(model) for model in "123"] == ["completed"] * 3
    at_most_one_each(story)


def test_a_program_that_fails_alone_is_judged_at_once_and_beside_others_within_a_minute_or_two() -> None:
    story = one_wide_node()
    start(story, "1")
    fail_at_once(story)
    story.tick()
    assert story.shown_of("1")["status"] == "Failed"
    start(story, "2", "3")
    began = story.now()
    job, task = next(one for one in story.world.runner.running() if one[1] == story.live_of("2").run().task_id)
    story.world.runner.finish(job, task, 1)
    story.tick()
    assert story.shown_of("2")["status"] == "InProgress", "the node may fail the other one as well"
    story.until(lambda: story.shown_of("2")["status"] == "Failed")
    assert story.now() - began <= timedelta(minutes=2)
    assert story.live_of("3").attempt == 1


def test_one_that_is_being_ended_anyway_waits_for_no_judgement() -> None:
    story = one_wide_node()
    start(story, "1", "2")
    story.fault(operation="terminate_task", status=503)
    story.deliver(story.message("c1", "Cancelled", story.live_of("1").entity, modelId="1"))
    story.tick(1)
    job, task = next(one for one in story.world.runner.running() if one[1] == story.live_of("1").run().task_id)
    story.world.runner.finish(job, task, PERMISSION_DENIED)
    story.tick(1)
    assert story.shown_of("1")["status"] == "Cancelled"


@pytest.mark.parametrize("models", ["1", "12"])
def test_fewer_are_their_users_affair(models: str) -> None:
    story = one_wide_node()
    start(story, *models)
    fail_at_once(story)
    story.until(lambda: not story.states())
    assert {story.ended(model) for model in models} == {"failed"}
    assert story.worker.notes.read().avoid(story.now()) == {}


def test_tasks_that_ran_for_a_while_have_failed_by_themselves() -> None:
    story = one_wide_node()
    start(story, "1", "2", "3")
    story.wait(timedelta(seconds=20))
    fail_at_once(story)
    story.until(lambda: not story.states())
    assert {story.ended(model) for model in "123"} == {"failed"}
    assert story.worker.notes.read().avoid(story.now()) == {}


def test_failures_on_different_nodes_speak_against_none_of_them() -> None:
    story = Trainings(pools=[pool("h100", 3), pool("t4", 3)], candidates=("h100", "t4")).with_counts_lag(5)
    start(story, "1", "2", "3")
    fail_at_once(story)
    story.until(lambda: not story.states())
    assert {story.ended(model) for model in "123"} == {"failed"}


def test_a_success_within_seconds_is_a_success() -> None:
    story = one_wide_node()
    start(story, "1", "2", "3")
    story.end_all(0)
    story.until(lambda: not story.states())
    assert {story.ended(model) for model in "123"} == {"completed"}


def test_with_one_pool_only_it_is_tried_again_there_and_given_up_some_day() -> None:
    story = Trainings(pools=[pool("h100", 1, taskSlotsPerNode=3)])
    start(story, "1", "2", "3")
    for _ in range(40):
        fail_at_once(story)
        story.tick()
    assert {story.ended(model) for model in "123"} == {"failed"}
    assert "h100: 3" in story.shown_of("1")["sentence"]
    at_most_one_each(story)


def scheduling(story: Trainings) -> bool:
    (node,) = story.world.batch_world.pool("h100").nodes.values()
    return node.scheduling


def test_the_node_of_a_managed_pool_gets_no_more_tasks() -> None:
    story = one_wide_node().with_worker(managed_pools=ManagedPools(0, 1))
    start(story, "1", "2", "3")
    fail_at_once(story)
    story.until(lambda: story.running_in("t4") == 3)
    assert not scheduling(story)


def test_a_pool_of_the_platform_is_only_reported() -> None:
    story = one_wide_node()
    start(story, "1", "2", "3")
    fail_at_once(story)
    story.until(lambda: story.running_in("t4") == 3)
    assert scheduling(story)
    assert story.operations("disable_node_scheduling") == []


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 403, "code": "AuthorizationFailure"}])
def test_a_node_that_cannot_be_disabled_does_not_keep_its_tasks(fault: dict[str, Any]) -> None:
    story = one_wide_node().with_worker(managed_pools=ManagedPools(0, 1))
    start(story, "1", "2", "3")
    story.fault(route="/pools/{pool}/nodes/{node}/disablescheduling", **fault)
    fail_at_once(story)
    story.until(lambda: story.running_in("t4") == 3)
