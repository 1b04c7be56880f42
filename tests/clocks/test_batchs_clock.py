"""Batch's times are judged by Batch's clock, from which that of the storage account (or of a host) may differ."""

from __future__ import annotations

from datetime import timedelta

import pytest

from local.batch import control
from shared.housekeeping.sweep import sweep
from shared.kinds import Kind
from shared.memory import Pace
from shared.pools.readings import Readings
from shared.protocol.record import task_id
from shared.worker import ManagedPools
from tests.clocks.test_host_clock import WRONG
from tests.support.batch_calls import body
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, pool, two_pools


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.fixture(params=[timedelta(), *WRONG], ids=str)
def ahead(request: pytest.FixtureRequest) -> timedelta:
    """How far the storage account's clock is ahead of Batch's."""
    found: timedelta = request.param
    return found


def test_a_task_is_queued_too_long_after_a_quarter_of_an_hour_of_batchs(ahead: timedelta) -> None:
    story = two_pools(h100=1, t4=0, ahead=ahead)
    story.train("1", "2")
    story.tick()
    story.resize("t4", 1)
    story.wait(timedelta(minutes=14))
    story.tick(0)
    assert story.pool_of("2") == "h100"
    story.wait(timedelta(minutes=1))
    story.until(lambda: story.running_in("t4"), ticks=4)
    assert story.pool_of("2") == "t4"


def test_an_orphan_is_one_after_half_an_hour_of_batchs(ahead: timedelta) -> None:
    story = two_pools(ahead=ahead)
    story.train("1")
    placed = story.live_of("1").placement
    assert placed is not None
    orphan = task_id(Kind.TRAINING, "nobody", 1)
    story.worker.batch.create_task(placed.job_id, body(orphan))

    def swept() -> list[str]:
        return sweep(story.worker, Readings(story.worker, by_list=True), [placed.job_id], may_end=False)

    story.wait(timedelta(minutes=29))
    assert swept() == []
    story.wait(timedelta(minutes=2))
    assert swept() == [orphan]


def test_autoscale_has_stopped_after_25_minutes_of_batchs(ahead: timedelta) -> None:
    autoscaled = pool("h100", 0, autoscale={"max": 4, "interval_seconds": 300})
    story = Trainings(pools=[autoscaled], candidates=("h100",), ahead=ahead)
    story.with_worker(managed_pools=ManagedPools(0, 1)).remembering(pools=Pace(timedelta(0)))
    story.train("1")
    story.world.batch_world.pool("h100").autoscale_number += 1  # no evaluation comes any more
    evaluated = story.worker.batch.pools()["h100"].auto_scaled_at
    assert evaluated is not None
    story.wait(evaluated + timedelta(minutes=24) - story.world.clock.now())
    story.tick(0)
    assert story.operations("enable_pool_auto_scale") == []
    story.tick(90)
    assert story.operations("enable_pool_auto_scale") == ["enable_pool_auto_scale"]


def test_a_resize_that_found_no_machine_is_asked_for_again_after_a_cool_down_of_batchs(ahead: timedelta) -> None:
    h100 = pool("h100", 0, low_priority_available=0)
    story = Trainings(pools=[h100], candidates=("h100",), ahead=ahead)
    story.with_worker(managed_pools=ManagedPools(0, 1)).remembering(pools=Pace(timedelta(0)))
    story.train("1")
    batchs = story.world.batch_world
    control.set_resize_errors(batchs, "h100", [{"code": "AllocationFailed"}], now=False)
    batchs.pool("h100").allocation_since = batchs.clock.now()
    story.tick(29 * 60)
    assert len(story.operations("resize_pool")) == 1
    story.tick(2 * 60)
    assert len(story.operations("resize_pool")) == 2
