"""Managed pools: an empty fixed pool is woken when a job goes there. Nothing waits for its nodes."""

from __future__ import annotations

import structlog

from shared.batch.types import PoolView
from shared.errors import Refused
from shared.pools.routing import Decision
from shared.worker import Worker

log = structlog.get_logger(__name__)

_CREATE_IT = "az deployment group create --resource-group <group> --parameters infra/shared-pools.bicepparam"


def advice(decision: Decision) -> tuple[str, ...]:
    """What an operator can do about candidates that are not there."""
    return (f"create it: {_CREATE_IT}",) if any("does not exist" in why for why in decision.rejected) else ()


def managed_pool(worker: Worker, pool_id: str) -> PoolView | str | None:
    """The pool if it is ours to manage, None if it is not. A text says why the job must wait: there is no such pool.

    A missing pool is not created: a pool with an identity can only be made through the management plane.
    """
    if worker.managed_pools is None:
        return None
    return worker.batch.pool(pool_id) or f"pool {pool_id} does not exist; create it: {_CREATE_IT}"


def make_ready(worker: Worker, pool: PoolView | None) -> str | None:
    """Wake a managed pool that is empty. Why the job must wait instead; None if it need not."""
    if pool is None:
        return None
    try:
        wake(worker, pool)
    except Refused as refusal:
        return f"pool {pool.pool_id} has no node and cannot be given one: {refusal.sentence}"
    return None


def wake(worker: Worker, pool: PoolView) -> None:
    """Resize a managed fixed pool that is empty and gets no node by itself.

    Batch does not repeat a resize that found no machine: after a cool-down it is asked again for what it was asked for.
    """
    targets = worker.managed_pools
    if targets is None or pool.auto_scales or pool.current_nodes or pool.allocation_state != "steady":
        return
    dedicated, low_priority = targets.dedicated_nodes, targets.low_priority_nodes
    if pool.target_nodes:
        if not _has_given_up(worker, pool):
            return
        dedicated, low_priority = pool.target_nodes - pool.target_low_priority_nodes, pool.target_low_priority_nodes
    worker.batch.resize_pool(pool.pool_id, dedicated, low_priority)
    log.info(
        "woke an empty pool",
        pool=pool.pool_id,
        dedicated=dedicated,
        low=low_priority,
        errors=list(pool.resize_error_codes),
    )


def _has_given_up(worker: Worker, pool: PoolView) -> bool:
    if not pool.resize_error_codes or pool.allocation_changed_at is None:
        return False
    return worker.batch_now() - pool.allocation_changed_at >= worker.pool_cool_down
