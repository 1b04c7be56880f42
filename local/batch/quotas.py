"""The account's core quotas: all dedicated cores, dedicated cores of a family, all low-priority cores.

A node counts from its creation until it has left its pool, preempted or not: Batch keeps its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch.state import Pool, ResizeError
from local.batch.vm_sizes import VmSize, vm_size

if TYPE_CHECKING:
    from local.batch.world import World


def room(world: World, pool: Pool, dedicated: bool) -> tuple[int | None, ResizeError]:
    """How many more nodes the pool may get (None: any number), and the resize error of a pool that wants more."""
    size = size_of(world, pool)
    limits = world.config.quotas
    if not dedicated:
        reached = ResizeError(
            "AccountLowPriorityCoreQuotaReached", "The account has all low-priority cores that it may have"
        )
        return _nodes(limits.low_priority_cores, used_cores(world, dedicated=False), size), reached
    account = _nodes(limits.dedicated_cores, used_cores(world, dedicated=True), size)
    family_limit = next(
        (cores for name, cores in limits.family_cores.items() if name.lower() == size.family.lower()), None
    )
    family = _nodes(family_limit, used_cores(world, dedicated=True, family=size.family), size)
    if family is not None and (account is None or family < account):
        message = f"The account has all cores of {size.family} that it may have"
        return family, ResizeError("AccountVMSeriesCoreQuotaReached", message)
    return account, ResizeError("AccountCoreQuotaReached", "The account has all dedicated cores that it may have")


def used_cores(world: World, dedicated: bool, family: str = "") -> int:
    """The cores of all nodes of a kind, or of those in one family."""
    used = 0
    for pool in world.pools.values():
        size = size_of(world, pool)
        if not family or size.family.lower() == family.lower():
            used += size.cores * sum(1 for node in pool.nodes.values() if node.dedicated == dedicated)
    return used


def size_of(world: World, pool: Pool) -> VmSize:
    return vm_size(pool.spec["vmSize"], world.config.vm_sizes)


def _nodes(limit: int | None, used: int, size: VmSize) -> int | None:
    return None if limit is None else max(0, limit - used) // size.cores
