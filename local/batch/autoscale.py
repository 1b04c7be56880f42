"""Auto-scale: the pool's formula is evaluated when it is enabled and then at every interval.

A pool of the world file may have a plain rule in its place: as many nodes as the waiting and running tasks need,
between a minimum and a maximum. A request that enables auto-scale with another formula ends the rule.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from local.batch import allocation, formula, sampling
from local.batch.formula.errors import INSUFFICIENT_DATA
from local.batch.formula.variables import NODE_METRICS
from local.batch.iso8601 import format_time
from local.batch.state import Pool, Spec

if TYPE_CHECKING:
    from local.batch.world import World

DEFAULT_INTERVAL = "PT15M"
#: What a pool with the plain rule shows as its formula.
RULE_TEXT = "$TargetLowPriorityNodes = 0;"


def start(world: World, pool: Pool) -> formula.Outcome:
    """Enable it on a pool that is being made; returns the first evaluation, for the caller to apply."""
    _schedule(world, pool)
    return _evaluate(world, pool)


def enable(world: World, pool: Pool) -> None:
    """Enable it, or evaluate again when it is enabled; the next evaluation comes after a whole interval."""
    _schedule(world, pool)
    _apply(world, pool, _evaluate(world, pool))


def disable(world: World, pool: Pool) -> None:
    """Keep the present targets from now on."""
    pool.autoscale = False
    pool.autoscale_number += 1
    sampling.end(pool)
    world.touch(pool)


def evaluated(world: World, pool: Pool, text: str) -> formula.Outcome:
    """What a formula makes of the pool now, without applying it."""
    timings = world.config.timings
    present = sampling.present(world, pool)
    situation = formula.Situation(
        now=sampling.now(world, pool),
        history=pool.history,
        lag=timedelta(seconds=timings.sample_lag_seconds),
        current={name: present[name] for name in NODE_METRICS},
        dedicated=pool.target_dedicated,
        low_priority=pool.target_low_priority,
        seed=f"{pool.id} {format_time(world.now)}",
    )
    return formula.evaluate(text, situation)


def shown(world: World, outcome: formula.Outcome) -> Spec:
    """An evaluation as the wire has it."""
    run: Spec = {"timestamp": format_time(world.now), "results": outcome.results}
    if outcome.error:
        code, reason = outcome.error
        what = "there are too few samples" if code == INSUFFICIENT_DATA else "an expression has no value"
        message = f"The formula could not be evaluated: {what}"
        run["error"] = {"code": code, "message": message, "values": [{"name": "Message", "value": reason}]}
    return run


def _schedule(world: World, pool: Pool) -> None:
    if not pool.sampling_number and not pool.autoscale_by_rule:
        sampling.begin(world, pool)
    pool.autoscale = True
    pool.autoscale_enabled = world.now
    pool.autoscale_number += 1
    world.after(pool.autoscale_seconds / pool.autoscale_speed, _again, pool.id, pool.autoscale_number)


def _again(world: World, pool_id: str, number: int) -> None:
    pool = world.pools.get(pool_id.lower())
    if pool is None or pool.autoscale_number != number or pool.state != "active":
        return
    world.after(pool.autoscale_seconds / pool.autoscale_speed, _again, pool_id, number)
    _apply(world, pool, _evaluate(world, pool))


def _evaluate(world: World, pool: Pool) -> formula.Outcome:
    outcome = _by_rule(world, pool) if pool.autoscale_by_rule else evaluated(world, pool, pool.spec["autoScaleFormula"])
    pool.autoscale_run = shown(world, outcome)
    world.log(
        "autoscale",
        pool=pool.id,
        dedicated=outcome.dedicated,
        low_priority=outcome.low_priority,
        error=outcome.error[0] if outcome.error else None,
    )
    return outcome


def _apply(world: World, pool: Pool, outcome: formula.Outcome) -> None:
    """Seek the new targets. While the pool is being resized they come too late: the next evaluation may set them."""
    targets = (outcome.dedicated, outcome.low_priority)
    if pool.allocation_state == "steady" and targets != (pool.target_dedicated, pool.target_low_priority):
        allocation.resize(world, pool, *targets, outcome.option)


def _by_rule(world: World, pool: Pool) -> formula.Outcome:
    jobs = [job for job in world.jobs.values() if job.pool_id.lower() == pool.id.lower() and job.state == "active"]
    tasks = sum(len(job.queue) + job.running for job in jobs)
    nodes = max(pool.autoscale_min, min(pool.autoscale_max, -(-tasks // pool.slots_per_node)))
    dedicated, low_priority = (nodes, 0) if pool.autoscale_bucket == "dedicated" else (0, nodes)
    option = "taskcompletion"
    results = (
        f"$TargetDedicatedNodes={dedicated};$TargetLowPriorityNodes={low_priority};$NodeDeallocationOption={option}"
    )
    return formula.Outcome(dedicated, low_priority, option, results)
