"""How a pool comes and goes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from local.batch import allocation, autoscale, node_life
from local.batch.config import PoolConfig
from local.batch.iso8601 import format_duration, parse_duration
from local.batch.state import Pool, Spec

if TYPE_CHECKING:
    from local.batch.world import World


def add_configured_pool(world: World, config: PoolConfig) -> None:
    """A pool of the world file: steady, its nodes about to start."""
    spec: Spec = {
        **config.properties,
        "id": config.id,
        "vmSize": config.vmSize,
        "taskSlotsPerNode": config.taskSlotsPerNode,
        "taskSchedulingPolicy": {"nodeFillType": config.nodeFillType},
        "targetDedicatedNodes": config.targetDedicatedNodes,
        "targetLowPriorityNodes": config.targetLowPriorityNodes,
    }
    if config.metadata:
        spec["metadata"] = [dict(item) for item in config.metadata]
    if config.autoscale:
        spec["autoScaleFormula"] = config.autoscale.formula or autoscale.RULE_TEXT
        interval = timedelta(seconds=config.autoscale.interval_seconds)
        spec |= {"enableAutoScale": True, "autoScaleEvaluationInterval": format_duration(interval)}
    pool = _new_pool(world, spec)
    if config.start_seconds is not None:
        pool.start_seconds = config.start_seconds
    pool.return_after_seconds = config.return_after_seconds
    pool.low_priority_available = config.low_priority_available
    pool.allocations = list(config.allocations)
    pool.autoscale_speed = config.autoscale_speed
    if config.autoscale:
        pool.autoscale_min, pool.autoscale_max = config.autoscale.min, config.autoscale.max
        pool.autoscale_bucket = config.autoscale.bucket
        pool.autoscale_by_rule = not config.autoscale.formula
        outcome = autoscale.start(world, pool)
        pool.target_dedicated, pool.target_low_priority = outcome.dedicated, outcome.low_priority
    allocation.grow(world, pool)


def add_pool(world: World, spec: Spec) -> Pool:
    """A pool made by a request: it begins to resize."""
    pool = _new_pool(world, spec)
    if spec.get("enableAutoScale"):
        outcome = autoscale.start(world, pool)
        pool.target_dedicated, pool.target_low_priority = outcome.dedicated, outcome.low_priority
    timeout = spec.get("resizeTimeout") or ""
    allocation.resize(world, pool, pool.target_dedicated, pool.target_low_priority, "requeue", timeout)
    return pool


def _new_pool(world: World, spec: Spec) -> Pool:
    pool = Pool(**world.stamp(spec["id"], "active"), spec=spec)
    pool.allocation_since = world.now
    pool.start_seconds = world.config.timings.node_start_seconds
    pool.target_dedicated = int(spec.get("targetDedicatedNodes") or 0)
    pool.target_low_priority = int(spec.get("targetLowPriorityNodes") or 0)
    if spec.get("enableAutoScale"):
        interval = spec.setdefault("autoScaleEvaluationInterval", autoscale.DEFAULT_INTERVAL)
        pool.autoscale_seconds = parse_duration(interval).total_seconds()
    world.pools[pool.id.lower()] = pool
    world.changed = True
    return pool


def delete_pool(world: World, pool: Pool) -> None:
    """The pool goes; its running tasks are put back."""
    world.move(pool, "deleting")
    pool.allocated = False
    autoscale.disable(world, pool)
    for node in pool.nodes.values():
        node_life.leave(world, node, "requeue")
    world.after(world.config.timings.pool_delete_seconds, _deleted, pool.id, pool.number)


def _deleted(world: World, pool_id: str, number: int) -> None:
    pool = world.pools.get(pool_id.lower())
    if pool and pool.number == number:
        pool.allocated = True
        pool.resize_number += 1
        world.changed = True
