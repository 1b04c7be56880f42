"""How a pool gets and gives back its nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from local.batch import node_life, quotas
from local.batch.iso8601 import parse_duration
from local.batch.state import Node, Pool, ResizeError, ScriptedAllocation

if TYPE_CHECKING:
    from local.batch.world import World

DEFAULT_TIMEOUT = "PT15M"
_REMOVED_FIRST = ("starttaskfailed", "unusable", "preempted", "creating", "starting", "idle", "running")


def resize(world: World, pool: Pool, dedicated: int, low_priority: int, option: str, timeout: str = "") -> None:
    """Seek new targets: surplus nodes begin to leave now, new ones appear after `resize_seconds`."""
    pool.target_dedicated, pool.target_low_priority = dedicated, low_priority
    _begin(world, pool, _surplus(pool), option, timeout)


def remove_nodes(world: World, pool: Pool, nodes: Iterable[Node], option: str, timeout: str = "") -> None:
    """These nodes leave, and the pool is content with so many less."""
    leaving = list(nodes)
    dedicated = sum(1 for node in leaving if node.dedicated)
    pool.target_dedicated = max(0, pool.target_dedicated - dedicated)
    pool.target_low_priority = max(0, pool.target_low_priority - (len(leaving) - dedicated))
    _begin(world, pool, leaving, option, timeout)


def _begin(world: World, pool: Pool, leaving: Iterable[Node], option: str, timeout: str) -> None:
    option = "taskcompletion" if option == "retaineddata" else option
    pool.spec["resizeTimeout"] = timeout or DEFAULT_TIMEOUT
    pool.resize_errors = []
    pool.resize_number += 1
    pool.allocated = False
    _set_allocation(world, pool, "resizing")
    targets = {"dedicated": pool.target_dedicated, "low_priority": pool.target_low_priority}
    world.log("pool_resizing", pool=pool.id, **targets, option=option)
    for node in leaving:
        node_life.leave(world, node, option)
    world.after(world.config.timings.resize_seconds, _allocate, pool.id, pool.resize_number)


def stop_resize(world: World, pool: Pool) -> None:
    """Give up a resize: nodes that still wait for their tasks stay."""
    for node in pool.nodes.values():
        if node.leaving == "taskcompletion":
            node.leaving = ""
    pool.resize_number += 1
    pool.allocated = False
    _set_allocation(world, pool, "stopping")
    world.after(world.config.timings.resize_seconds, _stopped, pool.id, pool.resize_number)


def _stopped(world: World, pool_id: str, number: int) -> None:
    pool = world.pools.get(pool_id.lower())
    if pool and pool.resize_number == number:
        pool.resize_errors = [ResizeError("ResizeStopped", "The resize was stopped by a user")]
        pool.allocated = True
        world.changed = True


def _allocate(world: World, pool_id: str, number: int) -> None:
    pool = world.pools.get(pool_id.lower())
    if not pool or pool.resize_number != number or pool.state != "active":
        return
    script = pool.allocations.pop(0) if pool.allocations and any(_missing(pool)) else None
    world.changed = True
    if script is None:
        grow(world, pool)
    else:
        grow(world, pool, most=script.nodes)
        if script.outcome == "timeout":
            seconds = parse_duration(pool.spec["resizeTimeout"]).total_seconds() - world.config.timings.resize_seconds
            world.after(seconds, _timed_out, pool.id, number, script)
            return
        pool.resize_errors = [_scripted_error(script)]
    pool.allocated = True


def _timed_out(world: World, pool_id: str, number: int, script: ScriptedAllocation) -> None:
    pool = world.pools.get(pool_id.lower())
    if pool and pool.resize_number == number and pool.state == "active":
        pool.resize_errors = [_scripted_error(script)]
        pool.allocated = True
        world.changed = True


def _scripted_error(script: ScriptedAllocation) -> ResizeError:
    if script.outcome == "timeout":
        return ResizeError(script.code or "AllocationTimedout", "The nodes did not come before the resize timeout")
    return ResizeError(script.code or "AllocationFailed", "Azure has not enough machines")


def grow(world: World, pool: Pool, most: int | None = None) -> None:
    """Add the nodes that the targets ask for, at most `most`, or note why there are not enough."""
    missing = _missing(pool)
    if pool.shortage and any(missing):
        pool.resize_errors = list(pool.shortage)
        return
    errors: list[ResizeError] = []
    for dedicated, wanted in zip((True, False), missing, strict=True):
        room, reached = quotas.room(world, pool, dedicated)
        number = wanted if room is None else min(wanted, room)
        if number < wanted:
            errors.append(reached)
        machines = number if dedicated else min(number, node_life.free_machines(pool, number))
        if machines < number:
            errors.append(ResizeError("AllocationFailed", "There are not enough low-priority machines"))
        machines = machines if most is None else min(machines, most)
        for _ in range(machines):
            _add_node(world, pool, dedicated)
        most = None if most is None else most - machines
    pool.resize_errors = errors or pool.resize_errors


def _missing(pool: Pool) -> tuple[int, int]:
    """How many dedicated and low-priority nodes the pool lacks."""
    staying = [node for node in pool.nodes.values() if not node.leaving]
    dedicated = sum(1 for node in staying if node.dedicated)
    return max(0, pool.target_dedicated - dedicated), max(0, pool.target_low_priority - (len(staying) - dedicated))


def _add_node(world: World, pool: Pool, dedicated: bool) -> None:
    pool.nodes_made += 1
    digest = hashlib.sha256(
        f"{world.config.account.name}/{pool.id}/{pool.number}/{pool.nodes_made}".encode()
    ).hexdigest()
    node = Node(
        **world.stamp(f"tvmps_{digest}_{'d' if dedicated else 'p'}", "creating"), pool=pool.id, dedicated=dedicated
    )
    node.allocated = world.now
    pool.nodes[node.id] = node
    node_life.begin(world, pool, node)


def _surplus(pool: Pool) -> list[Node]:
    surplus: list[Node] = []
    for dedicated, target in ((True, pool.target_dedicated), (False, pool.target_low_priority)):
        nodes = [node for node in pool.nodes.values() if node.dedicated == dedicated and not node.leaving]
        nodes.sort(key=_removal_order)
        surplus += nodes[: max(0, len(nodes) - target)]
    return surplus


def _removal_order(node: Node) -> tuple[int, int]:
    rank = _REMOVED_FIRST.index(node.state) if node.state in _REMOVED_FIRST else 0
    return rank, -node.number


def set_low_priority_available(world: World, pool: Pool, machines: int | None) -> None:
    """Azure has more or fewer machines for the pool. Nodes in use stay; nodes that wait for one come back."""
    pool.low_priority_available = machines
    for node in pool.nodes.values():
        if node.waits_for_capacity:
            node_life.bring_back(world, pool, node)
    missing = pool.target_low_priority - sum(1 for node in pool.nodes.values() if not node.dedicated)
    if missing > 0 and pool.allocation_state == "steady" and pool.state == "active":
        resize(world, pool, pool.target_dedicated, pool.target_low_priority, "taskcompletion")


def settle(world: World) -> None:
    """Remove nodes that may go now; end resizes and deletions that are over."""
    for pool in list(world.pools.values()):
        for node in [node for node in pool.nodes.values() if node.leaving and not node.runs]:
            node_life.remove(world, pool, node)
        over = pool.allocated and not any(node.leaving for node in pool.nodes.values())
        if over and pool.state == "deleting":
            del world.pools[pool.id.lower()]
        elif over and pool.allocation_state != "steady":
            _set_allocation(world, pool, "steady")
            world.log("pool_steady", pool=pool.id, errors=[error.code for error in pool.resize_errors] or None)


def _set_allocation(world: World, pool: Pool, state: str) -> None:
    pool.allocation_state, pool.allocation_since = state, world.now
    world.touch(pool)
