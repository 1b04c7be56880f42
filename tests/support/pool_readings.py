"""Readings of pools, in few words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from shared.batch.types import PoolCounts, PoolView
from shared.pools.routing import Circumstances, PoolReading

NOON = datetime(2026, 8, 12, 12, tzinfo=UTC)


def around(**fields: Any) -> Circumstances:
    """What a decision at noon rests on beside the pools."""
    return Circumstances(**({"at": NOON} | fields))


def counts(pool: str, idle: int = 0, running: int = 0, starting: int = 0, lost: int = 0) -> PoolCounts:
    return PoolCounts(pool, idle, running, starting, lost)


def view(pool: str, nodes: int = 0, **fields: Any) -> PoolView:
    """An active fixed pool that has all its nodes."""
    base: dict[str, Any] = {
        "state": "active",
        "allocation_state": "steady",
        "auto_scales": False,
        "target_nodes": nodes,
        "current_nodes": nodes,
        "task_slots_per_node": 1,
    }
    return PoolView(pool, **(base | fields))


def reading(*pools: tuple[PoolCounts, PoolView]) -> PoolReading:
    return PoolReading({one.pool_id: one for one, _ in pools}, {one.pool_id: one for _, one in pools})
