"""Managed pools: an empty fixed pool is woken when a job goes there, and nothing waits for its nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from local.batch import control
from local.batch.config import PoolConfig
from local.batch.pool_life import add_configured_pool
from shared.protocol.record import State
from shared.worker import ManagedPools
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, at_most_one_each, pool

TARGETS = ManagedPools(dedicated_nodes=1, low_priority_nodes=2)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def managed(*pools: dict[str, Any], candidates: tuple[str, ...] = ("h100",)) -> Trainings:
    return Trainings(pools=list(pools), candidates=candidates).with_worker(managed_pools=TARGETS)


def resizes(story: Trainings) -> list[tuple[str, int, int]]:
    """Pool and targets of every resize."""
    return [(event["pool"], event["dedicated"], event["low_priority"]) for event in story.events("pool_resizing")]


def test_an_empty_pool_is_woken_to_the_configured_targets_and_the_job_does_not_wait() -> None:
    story = managed(pool("h100", 0))
    story.train("1")
    assert resizes(story) == [("h100", 1, 2)]
    assert story.live_of("1").state is State.PLACED
    assert len(story.created()) == 1
    story.until(lambda: story.world.runner.running())
    story.end_all()
    story.until(lambda: story.ended("1"))
    assert story.ended("1") == "completed"


def test_it_is_woken_once_however_many_jobs_come() -> None:
    story = managed(pool("h100", 0, start_seconds=300))
    story.train("1", "2", "3")
    for _ in range(5):
        story.tick()
    story.train("4")
    assert resizes(story) == [("h100", 1, 2)]
    assert [story.live_of(model).state for model in "1234"] == [State.PLACED] * 4


def test_after_somebody_has_put_it_to_sleep_it_is_woken_again() -> None:
    story = managed(pool("h100", 0))
    story.train("1")
    story.until(lambda: story.world.runner.running())
    story.end_all()
    story.until(lambda: story.ended("1"))
    story.call("POST", "/pools/h100/resize", b'{"targetDedicatedNodes": 0, "targetLowPriorityNodes": 0}')
    story.train("2")
    assert resizes(story) == [("h100", 1, 2), ("h100", 0, 0), ("h100", 1, 2)]


@pytest.mark.parametrize(
    "there",
    [
        pool("h100", 1),
        pool("h100", 0, targetDedicatedNodes=1),
        pool("h100", 0, autoscale={"max": 4, "interval_seconds": 90_000}),
    ],
    ids=["spot nodes", "dedicated nodes", "autoscale"],
)
def test_a_pool_that_has_nodes_or_scales_by_itself_is_left_alone(there: dict[str, Any]) -> None:
    story = managed(there)
    story.train("1")
    assert resizes(story) == []
    assert story.operations("resize_pool", "enable_pool_auto_scale", "disable_pool_auto_scale") == []
    assert story.live_of("1").state is State.PLACED


def test_a_pool_that_is_being_resized_is_left_alone() -> None:
    """Also one that shrinks to nothing: what becomes of it is seen by the next job."""
    story = managed(pool("h100", 1))
    body = b'{"targetDedicatedNodes": 0, "targetLowPriorityNodes": 0, "nodeDeallocationOption": "requeue"}'
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    world = story.world.batch_world
    assert world.handle("POST", "/pools/h100/resize", {"api-version": "2025-06-01"}, headers, body).status == 202
    assert world.pool("h100").allocation_state == "resizing"
    world.pool("h100").resize_number += 1  # it goes on for a while
    story.train("1")
    assert story.operations("resize_pool") == ["resize_pool"], "the one of somebody else"
    assert story.live_of("1").state is State.PLACED


def test_a_resize_that_somebody_else_began_a_moment_before_is_as_good() -> None:
    story = managed(pool("h100", 0))
    story.fault(operation="resize_pool", status=409, code="PoolBeingResized", times=1)
    story.train("1")
    assert story.live_of("1").state is State.PLACED
    assert len(story.created()) == 1


def test_the_pool_that_routing_has_chosen_is_woken_and_no_other() -> None:
    story = managed(pool("h100", 0), pool("t4", 1), candidates=("h100", "t4"))
    story.train("1")
    assert (story.pool_of("1"), resizes(story)) == ("t4", [])
    story.train("2")
    assert (story.pool_of("2"), resizes(story)) == ("h100", [("h100", 1, 2)])


def test_a_pool_that_does_not_exist_is_not_made_and_the_job_says_which_command_makes_it() -> None:
    story = managed()
    story.train("1")
    record = story.live_of("1")
    assert record.state is State.WAITING
    assert "pool h100 does not exist" in record.reason
    assert "az deployment group create" in record.reason
    assert story.shown_of("1")["status"] == "Queued", "not the user's fault"
    for _ in range(10):
        story.tick()
    assert story.created() == [] and story.world.batch_world.jobs == {}
    assert story.operations("create_pool") == []
    assert story.live_of("1").waits >= 2
    add_configured_pool(story.world.batch_world, PoolConfig("h100", targetLowPriorityNodes=1))
    story.until(lambda: story.world.runner.running(), ticks=20)
    story.end_all()
    story.until(lambda: story.ended("1"))
    assert story.ended("1") == "completed"
    at_most_one_each(story)


@pytest.mark.parametrize("operation", ["get_pool", "resize_pool"])
def test_batch_out_of_order_leaves_the_job_waiting_for_a_moment(operation: str) -> None:
    story = managed(pool("h100", 0))
    story.fault(operation=operation, status=503)
    story.train("1")
    assert story.live_of("1").state is State.WAITING
    story.mend()
    story.until(lambda: story.world.runner.running())
    assert resizes(story) == [("h100", 1, 2)]


def test_without_the_right_to_resize_the_job_waits_for_an_operator() -> None:
    story = managed(pool("h100", 0))
    story.fault(operation="resize_pool", status=403, code="AuthorizationFailure")
    story.train("1")
    assert "waiting for an operator" in story.live_of("1").reason
    assert story.created() == []
    story.mend()
    story.until(lambda: story.world.runner.running(), ticks=20)


def test_a_pool_that_cannot_be_resized_keeps_the_job_waiting() -> None:
    """Somebody has given it a formula since it was looked at."""
    story = managed(pool("h100", 0))
    story.fault(operation="resize_pool", status=409, code="OperationNotValidOnPool")
    story.train("1")
    record = story.live_of("1")
    assert record.state is State.WAITING and "pool h100 has no node and cannot be given one" in record.reason
    story.mend()
    story.until(lambda: story.world.runner.running(), ticks=20)


def test_when_no_candidate_exists_the_job_says_which_command_makes_one() -> None:
    story = managed(candidates=("h100", "t4"))
    story.train("1")
    assert "az deployment group create" in story.live_of("1").reason


def test_pools_of_the_platform_are_only_read() -> None:
    story = Trainings(pools=[pool("h100", 0)])
    story.train("1", "2")
    for _ in range(5):
        story.tick()
    assert story.operations("get_pool", "resize_pool") == []
    assert story.live_of("1").state is State.PLACED, "Batch holds the task until a node is there"


def no_machines(**targets: int) -> Trainings:
    """Azure has no machine for the pool, and Batch has given up the resize."""
    return managed(pool("h100", 0, low_priority_available=0, **targets))


def gives_up(story: Trainings) -> None:
    world = story.world.batch_world
    control.set_resize_errors(world, "h100", [{"code": "AllocationFailed"}], now=False)
    world.pool("h100").allocation_since = story.now()


def test_a_resize_that_found_no_machine_is_not_repeated_for_every_job() -> None:
    """Azure was asked a moment ago."""
    story = no_machines()
    story.train("1")
    gives_up(story)
    story.tick()
    story.train("2")
    assert resizes(story) == [("h100", 1, 2)]


def test_it_is_repeated_after_a_cool_down_while_a_task_waits_there() -> None:
    """Batch does not repeat it, and no new job may come for days."""
    story = no_machines()
    story.train("1")
    gives_up(story)
    story.until(lambda: len(resizes(story)) == 2, ticks=80)
    assert resizes(story) == [("h100", 1, 2)] * 2
    gives_up(story)
    for _ in range(20):
        story.tick()
    assert len(resizes(story)) == 2, "not before the next cool-down is over"
    control.set_resize_errors(story.world.batch_world, "h100", [])
    story.world.batch_world.pool("h100").low_priority_available = None
    story.call("POST", "/pools/h100/resize", b'{"targetLowPriorityNodes": 1}')
    story.until(lambda: story.world.runner.running())
    story.end_all()
    story.until(lambda: story.ended("1"))
    assert story.ended("1") == "completed"


def test_the_targets_that_somebody_gave_the_pool_are_kept() -> None:
    story = no_machines(targetLowPriorityNodes=7)
    story.train("1")
    gives_up(story)
    story.until(lambda: resizes(story), ticks=80)
    assert resizes(story)[-1] == ("h100", 0, 7)


def test_a_pool_that_is_put_to_sleep_under_a_queued_task_is_woken() -> None:
    story = managed(pool("h100", 0, start_seconds=10_000))
    story.train("1")
    story.wait(timedelta(minutes=1))
    story.call("POST", "/pools/h100/resize", b'{"targetDedicatedNodes": 0, "targetLowPriorityNodes": 0}')
    story.until(lambda: len(resizes(story)) == 3, ticks=30)
    assert resizes(story)[-1] == ("h100", 1, 2)


def test_nothing_is_woken_for_nobody() -> None:
    story = managed(pool("h100", 0), pool("t4", 1), candidates=("t4", "h100"))
    story.train("1")
    for _ in range(30):
        story.tick()
    assert resizes(story) == []
