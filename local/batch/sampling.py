"""What the service samples of an auto-scaled pool, every 30 seconds from the moment that auto-scale is enabled.

Auto-scale has a clock of its own for each pool, which runs `autoscale_speed` times as fast as the account's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from local.batch.formula import PERIOD_SECONDS, History
from local.batch.state import Pool

if TYPE_CHECKING:
    from local.batch.world import World

Values = Mapping[str, float]


def begin(world: World, pool: Pool) -> None:
    """Forget older samples; the first new one is taken after one period."""
    pool.history = History()
    pool.sampling_number = world.number()
    world.after(PERIOD_SECONDS / pool.autoscale_speed, _take, pool.id, pool.sampling_number)


def end(pool: Pool) -> None:
    pool.sampling_number = 0


def _take(world: World, pool_id: str, number: int) -> None:
    pool = world.pools.get(pool_id.lower())
    if pool is None or pool.sampling_number != number:
        return
    world.after(PERIOD_SECONDS / pool.autoscale_speed, _take, pool_id, number)
    if pool.sampled:
        pool.history.add(now(world, pool), present(world, pool))


def now(world: World, pool: Pool) -> datetime:
    """The time by the clock of the pool's auto-scale, for its samples and its formula."""
    return pool.created + (world.now - pool.created) * pool.autoscale_speed


def present(world: World, pool: Pool) -> Values:
    """Every metric's value now. Counted once for all pools as long as nothing changes."""
    if world.metrics is None or world.metrics[0] != world.changes or world.changed:
        world.metrics = (world.changes, _count(world))
    return world.metrics[1][pool.id.lower()]


def _count(world: World) -> dict[str, Values]:
    """Waiting tasks count while their job is active; Batch counts a task as one, however many slots it needs."""
    counts = {pool_id: _nodes(pool) for pool_id, pool in world.pools.items()}
    for job in world.jobs.values():
        found = counts.get(job.pool_id.lower())
        if found is None:
            continue
        found["$ActiveTasks"] += len(job.queue) if job.state == "active" else 0
        found["$RunningTasks"] += job.running
        found["$SucceededTasks"] += job.succeeded
        found["$FailedTasks"] += job.completed - job.succeeded
    for found in counts.values():
        found["$PendingTasks"] = found["$ActiveTasks"] + found["$RunningTasks"]
    return dict(counts)


def _nodes(pool: Pool) -> dict[str, float]:
    nodes = pool.nodes.values()
    dedicated = sum(1 for node in nodes if node.dedicated)
    return {
        "$ActiveTasks": 0.0,
        "$RunningTasks": 0.0,
        "$SucceededTasks": 0.0,
        "$FailedTasks": 0.0,
        "$CurrentDedicatedNodes": float(dedicated),
        "$CurrentLowPriorityNodes": float(len(pool.nodes) - dedicated),
        "$PreemptedNodeCount": float(sum(1 for node in nodes if node.state == "preempted")),
        "$UsableNodeCount": float(sum(1 for node in nodes if node.state in ("idle", "running"))),
        "$SampleNodeCount": float(len(pool.nodes)),
        "$TaskSlotsPerNode": float(pool.slots_per_node),
    }
