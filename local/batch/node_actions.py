"""Reboot, reimage, deallocate and start: what is asked of one node, whatever its pool does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch import node_life, task_life
from local.batch.errors import BatchError
from local.batch.state import Node, Pool

if TYPE_CHECKING:
    from local.batch.world import World

#: Azure Batch: such a node can be rebooted, reimaged or deallocated.
_READY = ("idle", "running", "offline", "starttaskfailed")
_REFUSED = {
    "creating": "NodeBeingCreated",
    "starting": "NodeBeingStarted",
    "rebooting": "NodeBeingRebooted",
    "reimaging": "NodeBeingReimaged",
    "unusable": "NodeStateUnusable",
}


def ask(world: World, node: Node, action: str, option: str) -> None:
    """Begin `rebooting`, `reimaging` or `deallocating` as soon as the node's tasks are gone.

    option: requeue or terminate ends them now; taskcompletion and retaineddata wait for them. 409 by the node's state.
    """
    if node.action or node.leaving or node.state not in _READY:
        raise _wrong_state(node, node.action or node.state)
    node.action = action
    if option in ("requeue", "terminate"):
        for run in list(node.runs.values()):
            task_life.stop(world, run, "requeue" if option == "requeue" else "terminated")
        node_life.set_state(world, node, action)
    world.changed = True


def start(world: World, pool: Pool, node: Node) -> None:
    """A deallocated node gets a machine again; 409 in any other state."""
    if node.state != "deallocated" or node.leaving:
        raise _wrong_state(node, node.state)
    _new_boot(node)
    node.disk_boot = node.boot
    node.booted = world.now
    node_life.begin(world, pool, node, "starting")


def settle(world: World) -> None:
    """Begin what nodes were waiting for with tasks to end."""
    for pool in world.pools.values():
        for node in pool.nodes.values():
            if node.action and not node.runs and not node.leaving:
                _begin(world, pool, node)


def _begin(world: World, pool: Pool, node: Node) -> None:
    action, node.action = node.action, ""
    _new_boot(node)
    if action != "rebooting":
        world.runner.wipe_node(pool.id, node.id)
        node.directories.clear()
        node.disk_boot = node.boot
    if action == "deallocating":
        node_life.set_state(world, node, action)
        world.after(pool.start_seconds / 2, _deallocated, pool.id, node.id, node.boot)
    else:
        node_life.begin(world, pool, node, action)


def _deallocated(world: World, pool_id: str, node_id: str, boot: int) -> None:
    _, node = node_life.find(world, pool_id, node_id, boot)
    if node and node.state == "deallocating":
        node_life.set_state(world, node, "deallocated")


def _new_boot(node: Node) -> None:
    """Whatever was to happen to the node before does not happen any more."""
    node.boot += 1


def _wrong_state(node: Node, state: str) -> BatchError:
    if node.leaving:
        return BatchError("OperationInvalidForCurrentState", "The node is leaving its pool.")
    return BatchError(_REFUSED.get(state, "OperationInvalidForCurrentState"), f"The node is {state}.")
