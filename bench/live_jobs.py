"""What live jobs cost: `python -m bench.live_jobs [FEW MANY]`.

The real handlers, protocol and Batch adapter in one process, before the Batch emulator's core; ledger and HASTE's
records are in memory. So it is the worker's own work that is measured, not a network.
"""

# ruff: noqa: T201 - it is there to print
from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import dataclass

import structlog

from shared import handling, watching
from shared.handling import QueueMessage
from shared.kinds import Entity, Kind
from tests.handling.kept import KeptBlobs
from tests.protocol.small_world import PROJECT, SmallWorld

_FEW, _MANY = 50, 500
_FIRST_MODEL = 10_000_000
_TICKS = 5


@dataclass(frozen=True)
class Measured:
    """Costs with so many live jobs. Per tick: the mean of ticks in which nothing has changed."""

    jobs: int
    message_seconds: float
    tick_seconds: float
    batch_calls_per_tick: float


def main(arguments: list[str]) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    few, many = (measure(int(jobs)) for jobs in (arguments or [str(_FEW), str(_MANY)]))
    for one in (few, many):
        print(
            f"{one.jobs:6} live jobs: {1000 * one.message_seconds:6.2f} ms per message, "
            f"{1000 * one.tick_seconds:8.1f} ms and {one.batch_calls_per_tick:g} Batch calls per tick, "
            f"{one.jobs / one.tick_seconds:8.0f} records per second"
        )
    print(f"with {many.jobs / few.jobs:g} x the jobs:")
    print(f"  a message costs   {many.message_seconds / few.message_seconds:5.2f} x the time")
    print(f"  a tick costs      {many.tick_seconds / few.tick_seconds:5.2f} x the time")
    print(f"  a tick needs      {many.batch_calls_per_tick / few.batch_calls_per_tick:5.2f} x the Batch calls")
    share = few.message_seconds * many.jobs / many.tick_seconds
    print(f"a live job's share of a tick costs {share:.0f} times less than its message")
    return 0


def measure(jobs: int) -> Measured:
    """Accept so many trainings, each of another model, and watch them run."""
    world = SmallWorld(pools=[{"id": "h100", "targetLowPriorityNodes": jobs, "start_seconds": 0}])
    rejected = KeptBlobs().rejected()
    started = time.perf_counter()
    for number in range(jobs):
        model_id = str(_FIRST_MODEL + number)
        world.save_record(Entity(Kind.TRAINING, PROJECT, model_id), status="Queued", taskId=None)
        body = json.dumps({"projectId": PROJECT, "modelId": model_id, "status": "Queued"}).encode()
        message = QueueMessage("train-queue", f"message-{number}", world.clock.now(), body)
        handling.haste_message(world.worker, rejected, Kind.TRAINING, message)
    message_seconds = (time.perf_counter() - started) / jobs
    assert len(world.live_tasks()) == jobs

    _tick(world)  # the first one notes that the tasks run
    calls_before = _batch_calls(world)
    tick_seconds = sum(_tick(world) for _ in range(_TICKS)) / _TICKS
    return Measured(jobs, message_seconds, tick_seconds, (_batch_calls(world) - calls_before) / _TICKS)


def _tick(world: SmallWorld) -> float:
    world.batch_world.advance(30)
    started = time.perf_counter()
    watching.tick(world.worker, lambda: 0.0)
    return time.perf_counter() - started


def _batch_calls(world: SmallWorld) -> int:
    return len(world.batch_world.events.select("request"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
