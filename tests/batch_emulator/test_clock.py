"""Time that passes faster than the computer's, and time that is moved from outside."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from local.batch import World, WorldConfig
from local.batch.clock import ScaledClock
from local.batch.config import WorldFileError
from tests.batch_emulator.process_support import until
from tests.batch_emulator.support import POOL, make_client


def test_scaled_time_begins_now_and_passes_faster() -> None:
    before, clock, after = datetime.now(UTC), ScaledClock(3600), datetime.now(UTC)
    first, begun = clock.now(), time.monotonic()
    until(lambda: time.monotonic() - begun > 0.02)

    passed = clock.now() - first

    assert before <= first <= after + timedelta(hours=1)
    assert passed >= timedelta(seconds=72)


def test_events_on_a_scaled_clock_keep_their_own_times() -> None:
    pool = {"id": POOL, "targetDedicatedNodes": 1, "start_seconds": 1200}
    world = World.from_json({"pools": [pool]}, clock=ScaledClock(10_000))
    client = make_client(world)

    until(lambda: next(iter(client.list_nodes(POOL))).state == "idle")

    node = next(iter(client.list_nodes(POOL)))
    assert node.state_transition_time and node.last_boot_time and node.allocation_time
    assert node.last_boot_time - node.allocation_time == timedelta(minutes=10)
    assert node.state_transition_time - node.last_boot_time == timedelta(minutes=10)


def test_time_cannot_stand_still_or_run_backwards() -> None:
    with pytest.raises(ValueError, match="as fast"):
        ScaledClock(0)
    with pytest.raises(WorldFileError, match="speed"):
        WorldConfig.from_json({"speed": -1})
