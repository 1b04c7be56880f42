"""Managed pools: an empty fixed pool is woken when a job goes there. Nothing waits for its nodes."""

from __future__ import annotations

import structlog

from shared.worker import Worker

log = structlog.get_logger(__name__)

_CREATE_IT = "az deployment group create --resource-group <group> --parameters infra/shared-pools.bicepparam"


def make_ready(worker: Worker, pool_id: str) -> str | None:
    """Wake the pool if it is ours to manage and empty. Why the job must wait instead; None if it need not.

    A missing pool is not created: a pool with an identity can only be made through the management plane.
    """
    targets = worker.managed_pools
    if targets is None:
        return None
    pool = worker.batch.pool(pool_id)
    if pool is None:
        return f"pool {pool_id} does not exist; create it: {_CREATE_IT}"
    is_empty = pool.target_nodes == 0 and pool.current_nodes == 0
    if is_empty and not pool.auto_scales and pool.allocation_state == "steady":
        worker.batch.resize_pool(pool_id, targets.dedicated_nodes, targets.low_priority_nodes)
        log.info("woke an empty pool", pool=pool_id, dedicated=targets.dedicated_nodes, low=targets.low_priority_nodes)
    return None
