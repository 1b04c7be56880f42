"""Which pool a job goes to: a pure decision on one reading of all pools, with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.batch.types import PoolCounts, PoolView

#: Resize errors that no waiting mends: the pool's configuration is wrong.
_BROKEN_POOL = frozenset(
    code.lower()
    for code in (
        "UnsupportedVMSize",
        "IncompatibleVMSize",
        "DependentResourceNotFound",
        "FailedIdentityOperation",
        "DiskEncryptionFailure",
    )
)


@dataclass(frozen=True)
class PoolReading:
    """What Batch says about all pools now. None = that call failed, with the reason in `fault`."""

    counts: Mapping[str, PoolCounts] | None = None
    pools: Mapping[str, PoolView] | None = None
    fault: str = ""


@dataclass(frozen=True)
class Avoid:
    """A candidate not to be taken, and why. `for_good` = not even when there is no other."""

    why: str
    for_good: bool = False


@dataclass(frozen=True)
class Decision:
    """The pool (None = wait), why, and what was rejected and why (`pool: reason`)."""

    pool_id: str | None
    why: str
    rejected: tuple[str, ...] = ()
    has_free_slot: bool = False
    can_grow: bool = False


def route(candidates: Sequence[str], reading: PoolReading, avoid: Mapping[str, Avoid]) -> Decision:
    """The first candidate with a free slot, else the first that can grow, else the preferred one.

    A candidate in `avoid` is taken only if there is no other, and never if it is out for good. With one candidate
    nothing is read: Batch queues the task until a node is there.
    """
    usable = [pool for pool in candidates if not (pool in avoid and avoid[pool].for_good)]
    rejected = [f"{pool}: {avoid[pool].why}" for pool in candidates if pool not in usable]
    if not usable:
        return Decision(None, "no candidate pool is left", tuple(rejected))
    if len(candidates) == 1:
        return Decision(candidates[0], "the only candidate pool")
    missing = {pool: why for pool in usable if (why := _unusable(pool, reading))}
    rejected += [f"{pool}: {why}" for pool, why in missing.items()]
    present = [pool for pool in usable if pool not in missing]
    if not present:
        return Decision(None, "no candidate pool can take tasks", tuple(rejected))
    cool = [pool for pool in present if pool not in avoid]
    if cool:
        rejected += [f"{pool}: {avoid[pool].why}" for pool in present if pool in avoid]
    choice = cool or present

    for pool in choice:
        if _free_nodes(pool, reading):
            return Decision(pool, "has a free slot", tuple(rejected), has_free_slot=True)
        rejected.append(f"{pool}: {_why_no_slot(pool, reading)}")
    for pool in choice:
        if _can_grow(pool, reading):
            why = "no candidate has a free slot; this one can grow"
            return Decision(pool, why, _without(rejected, pool), can_grow=True)
    why = f"preferred; {reading.fault}" if reading.fault else "preferred; no candidate is free or can grow"
    return Decision(choice[0], why, _without(rejected, choice[0]))


def _free_nodes(pool: str, reading: PoolReading) -> int:
    counts = (reading.counts or {}).get(pool)
    return counts.idle if counts else 0


def _can_grow(pool: str, reading: PoolReading) -> bool:
    view = (reading.pools or {}).get(pool)
    if view is None:
        return False
    counts = (reading.counts or {}).get(pool)
    present = view.current_nodes if counts is None else counts.idle + counts.running + counts.starting
    if view.auto_scales:
        return view.maximum_nodes is None or present < view.maximum_nodes
    return present < view.target_nodes


def _unusable(pool: str, reading: PoolReading) -> str | None:
    """Why Batch would not run a task there at all; None if it would, or if nothing is known."""
    if reading.pools is None:
        return None
    view = reading.pools.get(pool)
    if view is None:
        return "does not exist"
    if view.state != "active":
        return f"is {view.state}"
    broken = [code for code in view.resize_error_codes if code.lower() in _BROKEN_POOL]
    if broken and view.allocation_state == "steady" and not _free_nodes(pool, reading):
        return f"cannot allocate nodes ({broken[0]})"
    return None


def _why_no_slot(pool: str, reading: PoolReading) -> str:
    counts = (reading.counts or {}).get(pool)
    if counts is None:
        return reading.fault or "not counted yet"
    return f"no idle node ({counts.running} running, {counts.starting} starting, {counts.lost} lost)"


def _without(rejected: list[str], pool: str) -> tuple[str, ...]:
    return tuple(line for line in rejected if not line.startswith(f"{pool}: "))
