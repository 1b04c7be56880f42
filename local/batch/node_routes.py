"""Requests about nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch import node_actions, render, shapes, task_life
from local.batch.errors import BatchError
from local.batch.listing import one, page
from local.batch.properties import NODE, NODE_FILTERS
from local.batch.request import Call, Json, Response
from local.batch.state import Node

if TYPE_CHECKING:
    from local.batch.world import World


def list_nodes(world: World, call: Call) -> Response:
    nodes = world.pool(call.pool).nodes.values()
    entries = [(f"{node.number:012d}", node) for node in nodes]
    size = world.config.page_size
    return page(call, "nodes", entries, lambda node: _shown(world, call, node), NODE_FILTERS, NODE, size)


def get(world: World, call: Call) -> Response:
    node = world.node(call.pool, call.node)
    return one(call, "nodes", _shown(world, call, node), NODE, node)


def disable_scheduling(world: World, call: Call) -> Response:
    node = _node(world, call)
    body = call.request.json() if call.request.body else {}
    shapes.NODE_DISABLE_SCHEDULING("", body)
    if not node.scheduling:
        raise BatchError("NodeAlreadyInTargetSchedulingState")
    node.scheduling = False
    option = str(body.get("nodeDisableSchedulingOption") or "requeue").lower()
    if option != "taskcompletion":
        for run in list(node.runs.values()):
            task_life.stop(world, run, "requeue" if option == "requeue" else "terminated")
    world.touch(node)
    return Response(200)


def enable_scheduling(world: World, call: Call) -> Response:
    node = _node(world, call)
    if node.scheduling:
        raise BatchError("NodeAlreadyInTargetSchedulingState")
    node.scheduling = True
    world.touch(node)
    return Response(200)


def reboot(world: World, call: Call) -> Response:
    return _act(world, call, "rebooting", "nodeRebootOption")


def reimage(world: World, call: Call) -> Response:
    return _act(world, call, "reimaging", "nodeReimageOption")


def deallocate(world: World, call: Call) -> Response:
    return _act(world, call, "deallocating", "nodeDeallocateOption")


def start(world: World, call: Call) -> Response:
    node_actions.start(world, world.pool(call.pool), world.node(call.pool, call.node))
    return Response(202)


def _act(world: World, call: Call, action: str, option: str) -> Response:
    """The body is optional; tasks are requeued unless it says otherwise."""
    node = world.node(call.pool, call.node)
    body = call.request.json() if call.request.body else {}
    shapes.NODE_ACTIONS[option]("", body)
    node_actions.ask(world, node, action, str(body.get(option) or "requeue").lower())
    return Response(202)


def _node(world: World, call: Call) -> Node:
    node = world.node(call.pool, call.node)
    if node.state in ("unusable", "preempted", "leavingpool"):
        raise BatchError("NodeStateUnusable", f"The node is {node.state}.")
    return node


def _shown(world: World, call: Call, node: Node) -> Json:
    tasks = []
    for job_id, task_id in node.recent:
        job = world.jobs.get(job_id.lower())
        task = job.tasks.get(task_id.lower()) if job else None
        if task:
            tasks.append((job_id, task))
    return render.node(node, world.pool(node.pool), tasks, call.request.base_url)
