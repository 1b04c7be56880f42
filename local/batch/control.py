"""What the outside world does to the account: machines taken away and given back. For tests and for `admin`.

Every function may be called at any time from any thread; on a manual clock nothing waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from local.batch import allocation, node_life, render, task_life
from local.batch.config import scripted_allocation
from local.batch.errors import BatchError
from local.batch.state import Node, ResizeError

if TYPE_CHECKING:
    from local.batch.world import World

ANY_RUNNING = "any-running"
POOL_DEFAULT = -1.0


def preempt_node(
    world: World,
    pool: str,
    node: str = ANY_RUNNING,
    *,
    state: str = "preempted",
    via_unusable_seconds: float | None = None,
    requeue_after_seconds: float = 0.0,
    return_after_seconds: float | None = POOL_DEFAULT,
    stuck: bool = False,
) -> str:
    """Take a node's machine away, with its disk and processes; returns the node's id.

    node: its id, or "any-running" for the low-priority node that has run a task for the longest time.
    state: preempted, unusable, unknown or starttaskfailed; dedicated nodes cannot be preempted.
    via_unusable_seconds: shown as unusable so long before.
    requeue_after_seconds: its tasks show as running so long after.
    return_after_seconds: the replacement begins to start after this; None: not before `bring_back`;
        left out: as the pool's `return_after_seconds` says.
    stuck: its tasks show as running until `notice_stuck`.
    Raises BatchError: PoolNotFound, NodeNotFound, OperationInvalidForCurrentState (it is lost already).
    """
    with world.lock:
        world.tick()
        found = _any_running(world, pool) if node == ANY_RUNNING else world.node(pool, node)
        if state not in node_life.LOST_STATES:
            raise BatchError("InvalidPropertyValue", PropertyName="state", PropertyValue=state)
        gone = (*node_life.LOST_STATES, "deallocated")
        if found.state in gone or (found.dedicated and state == "preempted"):
            raise BatchError("OperationInvalidForCurrentState", f"The node is {found.state} or cannot be preempted.")
        owner = world.pool(pool)
        returns = owner.return_after_seconds if return_after_seconds == POOL_DEFAULT else return_after_seconds
        node_life.lose(world, owner, found, state, via_unusable_seconds, requeue_after_seconds, returns, stuck)
        world.tick()
        return found.id


def preempt_task(world: World, job: str, task: str, **options: Any) -> str:
    """Take away the machine that a task runs on; options and result as `preempt_node`."""
    with world.lock:
        world.tick()
        found = world.task(job, task)
        if found.run is None or found.run.stuck:
            raise BatchError("OperationInvalidForCurrentState", "The task does not run.")
        return preempt_node(world, found.run.place.pool, found.run.place.node, **options)


def bring_back(world: World, pool: str, node: str) -> bool:
    """The replacement of a lost node begins to start; False when the pool has no capacity for it."""
    with world.lock:
        world.tick()
        back = node_life.bring_back(world, world.pool(pool), world.node(pool, node))
        world.tick()
        return back


def notice_stuck(world: World, job: str, task: str) -> None:
    """The service notices that a stuck task does not run any more."""
    with world.lock:
        world.tick()
        found = world.task(job, task)
        if found.run is None or not found.run.stuck:
            raise BatchError("OperationInvalidForCurrentState", "The task is not stuck.")
        task_life.run_lost(world, found.run)
        world.tick()


def set_low_priority_available(world: World, pool: str, machines: int | None) -> None:
    """How many low-priority machines Azure has for a pool, None for any number. Nodes in use stay."""
    with world.lock:
        world.tick()
        allocation.set_low_priority_available(world, world.pool(pool), machines)
        world.tick()


def set_resize_errors(
    world: World, pool: str, errors: list[dict[str, str]], *, now: bool = True, later: bool = True
) -> None:
    """Resize errors, each with `code` and `message`: shown `now`, and made by all `later` resizes until set anew."""
    with world.lock:
        world.tick()
        found = world.pool(pool)
        shortage = [ResizeError(error["code"], error.get("message", error["code"])) for error in errors]
        if now:
            found.resize_errors = list(shortage)
        found.shortage = list(shortage) if later else []
        world.touch(found)
        world.tick()


def script_allocations(world: World, pool: str, allocations: list[dict[str, Any]]) -> None:
    """How the pool's next growths go, one after the other: `outcome` fail or timeout, with `nodes` nodes before and a
    `code` other than AllocationFailed or AllocationTimedout. Raises WorldFileError."""
    scripted = [scripted_allocation(allocation) for allocation in allocations]
    with world.lock:
        world.tick()
        world.pool(pool).allocations = scripted


def dump(world: World) -> dict[str, Any]:
    """The whole account as Batch would show it, plus how each node's runs stand."""
    with world.lock:
        world.tick()
        base_url = ""
        return {
            "now": world.now.isoformat(),
            "pools": [render.pool(pool, base_url) for pool in world.pools.values()],
            "nodes": [
                {"pool": pool.id, "id": node.id, "state": node.state, "boot": node.boot, "runs": sorted(node.runs)}
                for pool in world.pools.values()
                for node in pool.nodes.values()
            ],
            "jobs": [render.job(job, base_url) for job in world.jobs.values()],
            "tasks": [
                {"job": job.id, "task": task.id, "state": task.state, "result": task.result}
                for job in world.jobs.values()
                for task in job.tasks.values()
            ],
            "faults": [fault.to_json() for fault in world.faults.rules],
        }


def _any_running(world: World, pool: str) -> Node:
    nodes = [node for node in world.pool(pool).nodes.values() if node.runs and not node.dedicated and node.works]
    if not nodes:
        raise BatchError("NodeNotFound", "No low-priority node of the pool runs a task.")
    return min(nodes, key=lambda node: min(node.runs))
