"""Pools whose nodes never become usable, and autoscale that has stopped: demoted and told; mended if managed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from local.batch import control
from local.batch.iso8601 import parse_duration
from shared.memory import Pace
from shared.telemetry import operator
from shared.worker import ManagedPools
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, pool, two_pools

SLOW = {"max": 4, "interval_seconds": 300}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def avoided(story: Trainings) -> dict[str, str]:
    return {name: one.why for name, one in story.worker.notes.read().avoid(story.now()).items()}


# --- nodes that never become usable -------------------------------------------------------------------------------


def never_usable(**options: Any) -> Trainings:
    """h100's only node takes long to start; t4 is busy, and grows no more. Pools are looked at in every tick."""
    pools = [pool("h100", 1, start_seconds=600), pool("t4", 1)]
    story = Trainings(pools=pools, candidates=("h100", "t4"), **options).remembering(pools=Pace(timedelta(0)))
    story.train("1", "2")
    assert story.pool_of("1") == "t4"
    return story


def node_dies(story: Trainings) -> None:
    """A node is unusable before it could work, and is started once more after that was seen."""
    (node,) = story.world.batch_world.pool("h100").nodes
    control.preempt_node(story.world.batch_world, "h100", node, state="unusable")
    story.tick()
    control.bring_back(story.world.batch_world, "h100", node)
    story.tick()


def test_a_pool_whose_nodes_have_died_three_times_in_a_row_is_demoted_and_told() -> None:
    story = never_usable()
    for _ in range(2):
        node_dies(story)
        assert avoided(story) == {}
    with capture_logs() as logs:
        node_dies(story)
    assert "its nodes never become usable" in avoided(story)["h100"]
    told = [line for line in logs if line["event"] == "pool demoted"]
    assert [(line["pool"], line["log_level"]) for line in told] == [("h100", "error")]
    story.end_all(pool="t4")
    story.train("3")
    assert story.pool_of("3") == "t4"


def test_after_its_cool_down_it_gets_another_chance() -> None:
    story = never_usable()
    for _ in range(3):
        node_dies(story)
    story.wait(timedelta(minutes=30))
    for _ in range(3):
        story.tick()
    assert avoided(story) == {}
    for _ in range(2):
        node_dies(story)
        assert avoided(story) == {}
    node_dies(story)
    assert "h100" in avoided(story), "and comes last again if it does not take it"


def test_a_node_that_worked_in_between_ends_the_row() -> None:
    story = never_usable()
    for _ in range(2):
        node_dies(story)
    story.wait(timedelta(minutes=11))
    story.tick()
    for _ in range(2):
        node_dies(story)
    assert avoided(story) == {}


def test_with_nothing_live_no_pool_is_looked_at() -> None:
    story = Trainings(pools=[pool("h100", 1)]).remembering(pools=Pace(timedelta(0)))
    before = len(story.events("request"))
    story.tick()
    assert len(story.events("request")) == before


def test_pools_are_looked_at_every_five_minutes() -> None:
    """For a task that is queued they are read for nothing else, in the first quarter of an hour."""
    story = Trainings(pools=[pool("h100", 0)])
    story.train("1")
    for _ in range(28):  # 14 minutes
        story.tick(30)
    assert len(story.operations("list_pools")) == 3


# --- autoscale that has stopped -----------------------------------------------------------------------------------


def stop_autoscale(story: Trainings, name: str) -> None:
    """No evaluation comes any more until it is enabled again."""
    story.world.batch_world.pool(name).autoscale_number += 1


def stopped(*, managed: bool, others: tuple[str, ...] = ()) -> Trainings:
    """A training waits in h100, whose autoscale has not been evaluated for 24 minutes."""
    pools = [pool("h100", 0, autoscale=SLOW), *(pool(other, 1) for other in others)]
    story = Trainings(pools=pools, candidates=("h100", *others))
    if managed:
        story.with_worker(managed_pools=ManagedPools(0, 1))
    stop_autoscale(story, "h100")
    if others:
        story.world.account.create_job("somebody-elses", others[0], None, None)
        story.world.account.spend_task_id("somebody-elses", "task")
        story.wait(timedelta(seconds=1))
    story.train("1")
    assert story.pool_of("1") == "h100"
    story.wait(timedelta(minutes=24))
    return story


def test_managed_its_formula_is_enabled_again_which_brings_nodes() -> None:
    story = stopped(managed=True)
    with capture_logs() as logs:
        story.until(lambda: story.world.runner.running(), ticks=15)
    assert story.operations("enable_pool_auto_scale") == ["enable_pool_auto_scale"]
    (line,) = [line for line in logs if line["event"] == "autoscale enabled again"]
    assert line["pool"] == "h100" and "stopped" in line["why"]
    assert avoided(story) == {}
    story.end_all()
    story.until(lambda: story.ended("1"))


def test_its_formula_and_interval_stay_as_they_are() -> None:
    story = stopped(managed=True)
    before = dict(story.world.batch_world.pool("h100").spec)
    story.until(lambda: story.operations("enable_pool_auto_scale"), ticks=15)
    after = story.world.batch_world.pool("h100").spec
    assert after["autoScaleFormula"] == before["autoScaleFormula"]
    intervals = [parse_duration(spec["autoScaleEvaluationInterval"]) for spec in (before, after)]
    assert intervals[0] == intervals[1]


def test_it_is_enabled_once_as_long_as_it_goes_on() -> None:
    story = stopped(managed=True)
    control.set_resize_errors(story.world.batch_world, "h100", [{"code": "AllocationFailed"}], now=False)
    for _ in range(60):  # half an hour, in which it is evaluated as it should be
        story.tick()
    assert story.operations("enable_pool_auto_scale") == ["enable_pool_auto_scale"]


def test_one_that_stops_again_is_enabled_again() -> None:
    story = stopped(managed=True)
    control.set_resize_errors(story.world.batch_world, "h100", [{"code": "AllocationFailed"}], now=False)
    story.until(lambda: story.operations("enable_pool_auto_scale"), ticks=15)
    stop_autoscale(story, "h100")
    story.wait(timedelta(minutes=26))
    story.until(lambda: len(story.operations("enable_pool_auto_scale")) == 2, ticks=15)


def test_of_the_platform_it_is_demoted_and_told_and_left_as_it_is() -> None:
    story = stopped(managed=False, others=("t4",))
    with capture_logs() as logs:
        story.until(lambda: avoided(story), ticks=15)
    assert "its autoscale has stopped" in avoided(story)["h100"]
    assert [line["pool"] for line in logs if line["event"] == "pool demoted"] == ["h100"]
    assert story.operations("enable_pool_auto_scale", "evaluate_pool_auto_scale", "resize_pool") == []
    story.train("2")
    assert story.pool_of("2") == "t4", "busy, but its node works"


def test_it_is_told_once_in_a_cool_down() -> None:
    story = stopped(managed=False, others=("t4",))
    with capture_logs() as logs:
        for _ in range(50):
            story.tick()
    assert len([line for line in logs if line["event"] == "pool demoted"]) == 1


@pytest.mark.parametrize("minutes", [20, 24])
def test_an_evaluation_that_is_a_little_late_has_not_stopped(minutes: float) -> None:
    story = Trainings(pools=[pool("h100", 0, autoscale=SLOW)]).with_worker(managed_pools=ManagedPools(0, 1))
    stop_autoscale(story, "h100")
    story.train("1")
    story.wait(timedelta(minutes=minutes))
    story.tick()
    assert story.operations("enable_pool_auto_scale") == []
    assert avoided(story) == {}


def test_a_pool_in_which_nothing_of_ours_waits_is_nobodys_trouble() -> None:
    pools = [pool("h100", 1), pool("t4", 0, autoscale=SLOW)]
    story = Trainings(pools=pools, candidates=("h100", "t4")).with_worker(managed_pools=ManagedPools(0, 1))
    stop_autoscale(story, "t4")
    story.train("1")
    story.wait(timedelta(hours=2))
    for _ in range(15):
        story.tick()
    assert story.operations("enable_pool_auto_scale") == []
    assert avoided(story) == {}


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 403, "code": "AuthorizationFailure"}])
@pytest.mark.parametrize("broken", ["a-pool", "z-pool"])
def test_a_pool_that_cannot_be_mended_keeps_no_other_from_it(broken: str, fault: dict[str, Any]) -> None:
    other = "z-pool" if broken == "a-pool" else "a-pool"
    pools = [pool(name, 0, autoscale=SLOW) for name in ("a-pool", "z-pool")]
    story = Trainings(pools=pools, candidates=("a-pool", "z-pool")).with_worker(managed_pools=ManagedPools(0, 1))
    for name in ("a-pool", "z-pool"):
        stop_autoscale(story, name)
    story.train("1")
    story.worker.notes.update(lambda notes: notes.with_cool_down("a-pool", story.now() + timedelta(minutes=1), "why"))
    story.train("2")
    assert {story.pool_of("1"), story.pool_of("2")} == {"a-pool", "z-pool"}
    story.fault(operation="enable_pool_auto_scale", pool=broken, **fault)
    story.wait(timedelta(minutes=26))
    story.until(lambda: story.running_in(other), ticks=5)


def test_pools_that_may_not_be_looked_at_are_told_to_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while nothing waits, so that nothing has to be chosen."""
    log = Mock()
    monkeypatch.setattr(operator, "log", log)
    story = two_pools()
    story.train("1")
    story.fault(operation="list_pools", status=403, code="AuthorizationFailure")
    story.wait(timedelta(minutes=6))
    story.tick()
    ((event,), fields) = log.error.call_args
    assert event == "waits for an operator" and fields["error"].startswith("pools not read (")
