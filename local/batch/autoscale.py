"""Auto-scale by a plain rule: as many nodes as the waiting and running tasks need, between a minimum and a maximum.

The pool stores and shows its formula; the formula itself is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch import allocation
from local.batch.iso8601 import format_time
from local.batch.state import Pool

if TYPE_CHECKING:
    from local.batch.world import World

_OPTION = "taskcompletion"


def enable(world: World, pool: Pool) -> None:
    """Evaluate now and then at every interval."""
    pool.autoscale = True
    pool.autoscale_enabled = world.now
    pool.autoscale_number += 1
    world.after(0.0, _evaluate, pool.id, pool.autoscale_number)


def disable(world: World, pool: Pool) -> None:
    """Keep the present targets from now on."""
    pool.autoscale = False
    pool.autoscale_number += 1
    world.touch(pool)


def targets(world: World, pool: Pool) -> tuple[int, int]:
    """Dedicated and low-priority nodes that the pool should have now."""
    jobs = [job for job in world.jobs.values() if job.pool_id.lower() == pool.id.lower() and job.state == "active"]
    tasks = sum(len(job.queue) + job.running for job in jobs)
    nodes = -(-tasks // pool.slots_per_node)
    nodes = max(pool.autoscale_min, min(pool.autoscale_max, nodes))
    return (nodes, 0) if pool.autoscale_bucket == "dedicated" else (0, nodes)


def _evaluate(world: World, pool_id: str, number: int) -> None:
    pool = world.pools.get(pool_id.lower())
    if pool is None or pool.autoscale_number != number or pool.state != "active":
        return
    world.after(pool.autoscale_seconds, _evaluate, pool_id, number)
    dedicated, low_priority = targets(world, pool)
    results = (
        f"$TargetDedicatedNodes={dedicated};$TargetLowPriorityNodes={low_priority};$NodeDeallocationOption={_OPTION}"
    )
    pool.autoscale_run = {"timestamp": format_time(world.now), "results": results}
    world.log("autoscale", pool=pool.id, dedicated=dedicated, low_priority=low_priority)
    if pool.allocation_state == "steady" and (dedicated, low_priority) != (
        pool.target_dedicated,
        pool.target_low_priority,
    ):
        allocation.resize(world, pool, dedicated, low_priority, _OPTION)
