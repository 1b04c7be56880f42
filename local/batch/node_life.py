"""What happens to a node: it starts, works, is lost, comes back, leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch import task_life
from local.batch.state import Node, Pool

if TYPE_CHECKING:
    from local.batch.world import World

LOST_STATES = ("preempted", "unusable", "unknown", "starttaskfailed")


_BEFORE_BOOT = ("creating", "rebooting", "reimaging")


def begin(world: World, pool: Pool, node: Node, state: str = "creating") -> None:
    """A node is made, comes back or is started anew: creating (rebooting, reimaging), starting, idle."""
    set_state(world, node, state)
    step = _boot if state in _BEFORE_BOOT else _ready
    world.after(pool.start_seconds / 2, step, pool.id, node.id, node.boot)


def _boot(world: World, pool_id: str, node_id: str, boot: int) -> None:
    pool, node = find(world, pool_id, node_id, boot)
    if pool and node and node.state in _BEFORE_BOOT:
        node.booted = world.now
        set_state(world, node, "starting")
        world.after(pool.start_seconds / 2, _ready, pool.id, node.id, boot)


def _ready(world: World, pool_id: str, node_id: str, boot: int) -> None:
    _, node = find(world, pool_id, node_id, boot)
    if node and node.state == "starting":
        set_state(world, node, "idle")


def show_load(world: World, node: Node) -> None:
    """running, idle, or offline (idle and closed to new tasks), by what runs on the node."""
    if node.state in ("idle", "running", "offline"):
        state = "running" if node.runs else "idle" if node.scheduling else "offline"
        if state != node.state:
            set_state(world, node, state)


def lose(
    world: World,
    pool: Pool,
    node: Node,
    state: str = "preempted",
    via_unusable_seconds: float | None = None,
    requeue_after_seconds: float = 0.0,
    return_after_seconds: float | None = None,
    stuck: bool = False,
) -> None:
    """The node's machine is taken away, with all that runs on it and its disk.

    via_unusable_seconds: it is shown as unusable so long before it is shown as preempted.
    requeue_after_seconds: so long after that the service puts the node's tasks back; till then they show as running.
    return_after_seconds: a replacement with the same id begins to start so long after; None: not before `bring_back`.
    stuck: the service never notices that the tasks are gone (until `notice_stuck`).
    """
    for run in list(node.runs.values()):
        world.runner.abandon(run.number)
        world.log("run_lost", job=run.place.job, task=run.place.task, pool=pool.id, node=node.id, run=run.number)
        run.lost, run.stuck = True, stuck
        if stuck:
            del node.runs[run.number]
    world.runner.wipe_node(pool.id, node.id)
    node.directories.clear()
    node.action = ""
    if via_unusable_seconds is None:
        _gone(world, pool.id, node.id, node.boot, state, requeue_after_seconds, return_after_seconds)
    else:
        set_state(world, node, "unusable")
        world.after(
            via_unusable_seconds,
            _gone,
            pool.id,
            node.id,
            node.boot,
            state,
            requeue_after_seconds,
            return_after_seconds,
        )


def _gone(
    world: World,
    pool_id: str,
    node_id: str,
    boot: int,
    state: str,
    requeue_after_seconds: float,
    return_after_seconds: float | None,
) -> None:
    _, node = find(world, pool_id, node_id, boot)
    if node is None:
        return
    set_state(world, node, state)
    if requeue_after_seconds > 0:
        world.after(requeue_after_seconds, _requeue, pool_id, node_id, boot)
    else:
        _requeue(world, pool_id, node_id, boot)
    if return_after_seconds is not None:
        world.after(return_after_seconds, _return, pool_id, node_id, boot)


def _requeue(world: World, pool_id: str, node_id: str, boot: int) -> None:
    _, node = find(world, pool_id, node_id, boot)
    for run in list(node.runs.values()) if node else ():
        task_life.run_lost(world, run)


def _return(world: World, pool_id: str, node_id: str, boot: int) -> None:
    pool, node = find(world, pool_id, node_id, boot)
    if pool and node:
        bring_back(world, pool, node)


def bring_back(world: World, pool: Pool, node: Node) -> bool:
    """The replacement of a lost node starts, with the same id; False when Azure has no machine for it.

    Tasks that the service has not put back yet are put back now.
    """
    if node.state not in LOST_STATES:
        return False
    if not node.dedicated and free_machines(pool, 1) < 1:
        node.waits_for_capacity = True
        return False
    _requeue(world, pool.id, node.id, node.boot)
    node.boot += 1
    node.disk_boot = node.boot
    node.waits_for_capacity = False
    begin(world, pool, node)
    return True


def free_machines(pool: Pool, wanted: int) -> int:
    """How many of `wanted` low-priority machines Azure has for the pool."""
    if pool.low_priority_available is None:
        return wanted
    used = sum(1 for node in pool.nodes.values() if not node.dedicated and node.state != "preempted")
    return max(0, min(wanted, pool.low_priority_available - used))


def leave(world: World, node: Node, option: str) -> None:
    """The node is to leave its pool: at once (requeue, terminate) or when its tasks have ended (taskcompletion)."""
    node.leaving = option
    world.changed = True
    if option in ("requeue", "terminate"):
        for run in list(node.runs.values()):
            task_life.stop(world, run, "requeue" if option == "requeue" else "terminated")
        if node.works:
            set_state(world, node, "leavingpool")


def remove(world: World, pool: Pool, node: Node) -> None:
    """The node is gone from its pool, and its disk with it."""
    _requeue(world, pool.id, node.id, node.boot)
    world.runner.wipe_node(pool.id, node.id)
    del pool.nodes[node.id]
    world.log("node_removed", pool=pool.id, node=node.id)
    world.changed = True


def find(world: World, pool_id: str, node_id: str, boot: int) -> tuple[Pool | None, Node | None]:
    """A pool and node, None when they have gone or the node has been started anew since."""
    pool = world.pools.get(pool_id.lower())
    node = pool.nodes.get(node_id) if pool else None
    return pool, node if node and node.boot == boot else None


def set_state(world: World, node: Node, state: str) -> None:
    """The node enters another state."""
    world.move(node, state)
    world.log("node_state", pool=node.pool, node=node.id, state=state)
