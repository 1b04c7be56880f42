"""Which pool a job goes to: a pure decision on one reading of all pools, with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.batch.types import PoolCounts, PoolView, TaskView
from shared.ledger.pool_notes import Avoid as Avoid  # part of what a decision rests on
from shared.pools.resize_errors import Trouble, trouble

#: A task that has run for so long is in the node counts.
_COUNTS_LAG = timedelta(seconds=10)


@dataclass(frozen=True)
class PoolReading:
    """What Batch says about all pools at a time. None = that call failed, with the reason in `fault`."""

    counts: Mapping[str, PoolCounts] | None = None
    pools: Mapping[str, PoolView] | None = None
    fault: str = ""


@dataclass(frozen=True)
class Circumstances:
    """What a decision rests on beside the pools themselves.

    `avoid`: pools this job or everybody should leave alone. `taken`: slots per pool that tasks of ours, not yet seen
    running, will take before this one. `fresh_for`: how long a resize error counts.
    """

    at: datetime
    avoid: Mapping[str, Avoid] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)
    fresh_for: timedelta = timedelta(minutes=30)
    required_slots: int = 1


@dataclass(frozen=True)
class Decision:
    """The pool (None = wait), why, and what was rejected and why (`pool: reason`).

    `never` = it fits no candidate at all; waiting does not help. `warnings` are for the log.
    """

    pool_id: str | None
    why: str
    rejected: tuple[str, ...] = ()
    has_free_slot: bool = False
    can_grow: bool = False
    never: bool = False
    warnings: tuple[str, ...] = ()


def route(candidates: Sequence[str], reading: PoolReading, around: Circumstances) -> Decision:
    """The first candidate with a free slot, else the first that can grow, else the preferred one without a trouble.

    A candidate to be avoided is taken only if the others are at a quota or there is no other, and never if it is out
    for good. When every one is at a quota the job waits. With one candidate nothing need be read: Batch queues the task
    until a node is there.
    """
    avoid = around.avoid
    usable = [pool for pool in candidates if not (pool in avoid and avoid[pool].for_good)]
    out = {pool: avoid[pool].why for pool in candidates if pool not in usable}
    if not usable:
        return Decision(None, "no candidate pool is left", _lines(out), never=True)
    small = {pool: why for pool in usable if (why := _too_small(pool, reading, around.required_slots))}
    if len(small) == len(usable):
        return Decision(None, "it fits no candidate pool", _lines(out | small), never=True)
    if len(candidates) == 1:
        return Decision(candidates[0], "the only candidate pool")
    out |= small
    out |= {pool: why for pool in usable if pool not in out and (why := _unusable(pool, reading, around))}
    present = [pool for pool in usable if pool not in out]
    if not present:
        return Decision(None, "no candidate pool can take tasks", _lines(out))
    avoided = {pool: avoid[pool].why for pool in present if pool in avoid}
    cool = [pool for pool in present if pool not in avoided]
    decision = _choose(cool, reading, around, out | avoided) if cool else None
    if decision is None or (decision.pool_id is None and avoided):
        return _choose(present, reading, around, out)
    return decision


def takes_a_slot(task: TaskView | None, now: datetime) -> bool:
    """Whether a placed task takes a slot that the node counts do not show as taken yet. None = not in Batch yet."""
    if task is None or task.state != "running" or task.started_at is None:
        return task is None or task.state != "completed"
    return now - task.started_at < _COUNTS_LAG


def _choose(choice: Sequence[str], reading: PoolReading, around: Circumstances, out: dict[str, str]) -> Decision:
    out = dict(out)
    for pool in choice:
        free = _free_slots(pool, reading) - around.taken.get(pool, 0)
        if free >= around.required_slots:
            return Decision(pool, "has a free slot", _lines(out), has_free_slot=True)
        out[pool] = _why_no_slot(pool, reading, around)
    troubles = {pool: found for pool in choice if (found := _growth_trouble(pool, reading, around))}
    warnings = tuple(f"{pool}: {found.why}" for pool, found in troubles.items() if found.is_unknown)
    for pool in choice:
        if pool in troubles:
            out[pool] = troubles[pool].why
        elif _can_grow(pool, reading):
            why = "no candidate has a free slot; this one can grow"
            return Decision(pool, why, _lines(out, but=pool), can_grow=True, warnings=warnings)
    if len(troubles) == len(choice) and all(found.is_quota for found in troubles.values()):
        return Decision(None, "every candidate pool is at its quota", _lines(out), warnings=warnings)
    best = next((pool for pool in choice if pool not in troubles), choice[0])
    why = f"preferred; {reading.fault}" if reading.fault else "preferred; no candidate is free or can grow"
    if best in troubles:
        why += f"; it {troubles[best].why}"
    return Decision(best, why, _lines(out, but=best), warnings=warnings)


def _free_slots(pool: str, reading: PoolReading) -> int:
    counts, view = (reading.counts or {}).get(pool), (reading.pools or {}).get(pool)
    return 0 if counts is None else counts.idle * (view.task_slots_per_node if view else 1)


def _can_grow(pool: str, reading: PoolReading) -> bool:
    view = (reading.pools or {}).get(pool)
    if view is None:
        return False
    counts = (reading.counts or {}).get(pool)
    if view.auto_scales:
        # lost nodes hold places of the target until they are replaced
        present = view.current_nodes if counts is None else counts.idle + counts.running + counts.starting + counts.lost
        return view.maximum_nodes is None or present < view.maximum_nodes
    present = view.current_nodes if counts is None else counts.idle + counts.running + counts.starting
    # Batch does not repeat a resize of a fixed pool that got fewer nodes than it asked for
    has_given_up = view.allocation_state == "steady" and bool(view.resize_error_codes)
    return present < view.target_nodes and not has_given_up


def _too_small(pool: str, reading: PoolReading, required_slots: int) -> str | None:
    view = (reading.pools or {}).get(pool)
    if view is None or view.task_slots_per_node >= required_slots:
        return None
    return f"has {view.task_slots_per_node} slots per node, {required_slots} are needed"


def _unusable(pool: str, reading: PoolReading, around: Circumstances) -> str | None:
    """Why Batch would not run a task there at all; None if it would, or if nothing is known."""
    if reading.pools is None:
        return None
    view = reading.pools.get(pool)
    if view is None:
        return "does not exist"
    if view.state != "active":
        return f"is {view.state}"
    found = trouble(view, around.at, around.fresh_for)
    return found.why if found and found.is_permanent and not _has_working_nodes(view, reading) else None


def _has_working_nodes(view: PoolView, reading: PoolReading) -> bool:
    counts = (reading.counts or {}).get(view.pool_id)
    return view.current_nodes > 0 if counts is None else counts.idle + counts.running > 0


def _growth_trouble(pool: str, reading: PoolReading, around: Circumstances) -> Trouble | None:
    """Why the pool should not be counted on to get a node soon."""
    view, counts = (reading.pools or {}).get(pool), (reading.counts or {}).get(pool)
    if counts is not None and counts.lost and not (counts.idle or counts.running or counts.starting):
        return Trouble(f"has only lost nodes ({counts.lost})")
    return None if view is None else trouble(view, around.at, around.fresh_for)


def _why_no_slot(pool: str, reading: PoolReading, around: Circumstances) -> str:
    counts = (reading.counts or {}).get(pool)
    if counts is None:
        return reading.fault or "not counted yet"
    taken = around.taken.get(pool, 0)
    if counts.idle and taken:
        return f"its idle nodes ({counts.idle}) are taken by tasks of ours on their way ({taken})"
    return f"no idle node ({counts.running} running, {counts.starting} starting, {counts.lost} lost)"


def _lines(out: Mapping[str, str], but: str | None = None) -> tuple[str, ...]:
    return tuple(f"{pool}: {why}" for pool, why in out.items() if pool != but)
