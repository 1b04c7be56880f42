"""From a preemption to the task running in another pool that has a free node, in service time."""

from __future__ import annotations

import statistics
from datetime import datetime
from typing import Any

from bench.deployment import TICK_SECONDS, Deployment
from bench.figures import Figure
from local.batch import control

_LOSSES = 50
_GOAL_SECONDS = 60
_GIVEN_UP_AFTER_TICKS = 20
#: One node each, which starts at once and comes back never: only what the worker takes is measured.
_POOLS: list[dict[str, Any]] = [
    {"id": pool, "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None}
    for pool in ("h100", "t4")
]


def measure(losses: int = _LOSSES) -> list[Figure]:
    """Each loss falls at another moment between two runs of the timer, and each job is lost alone."""
    seconds = sorted(_one_loss(number * TICK_SECONDS / losses) for number in range(losses))
    p50, p95 = statistics.median(seconds), seconds[max(0, -(-losses * 95 // 100) - 1)]
    detail = (
        f"{losses} losses spread evenly over the {TICK_SECONDS} s between two runs of the timer; "
        f"least {seconds[0]:.1f} s, most {seconds[-1]:.1f} s; nodes and queues answer at once"
    )
    return [
        Figure("recovery_p50", p50, "s of service time", None, detail),
        Figure("recovery_p95", p95, "s of service time", _GOAL_SECONDS, detail),
    ]


def _one_loss(after_seconds: float) -> float:
    """A training runs, its node goes so long after a run of the timer, and it runs elsewhere."""
    deployment = Deployment(_POOLS)
    deployment.train()
    for _ in range(3):
        deployment.tick()
    ((job, task),) = deployment.runner.running()
    deployment.world.advance(after_seconds)
    lost_at = deployment.clock.now()
    control.preempt_task(deployment.world, job, task, return_after_seconds=None)
    deployment.tick(TICK_SECONDS - after_seconds)
    for _ in range(_GIVEN_UP_AFTER_TICKS):
        started = _started_after(deployment, lost_at)
        if started is not None:
            return (started - lost_at).total_seconds()
        deployment.tick()
    raise RuntimeError("the job has not come back")


def _started_after(deployment: Deployment, lost_at: datetime) -> datetime | None:
    started = deployment.world.events.select("task_started", pool="t4")
    times = (datetime.fromisoformat(event["time"]) for event in started)
    return next((time for time in times if time >= lost_at), None)
