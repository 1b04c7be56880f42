"""Requests about pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch import allocation, pool_life, render, shapes
from local.batch.errors import BatchError
from local.batch.iso8601 import parse_duration
from local.batch.listing import check_conditions, one, page, resource_headers
from local.batch.properties import NODE_COUNTS, NODE_COUNTS_FILTERS, POOL, POOL_FILTERS
from local.batch.request import Call, Json, Response
from local.batch.state import Pool

if TYPE_CHECKING:
    from local.batch.world import World

_SHORTEST_RESIZE_TIMEOUT_SECONDS = 300.0
_EMPTY_POOL_ONLY = ("vmSize", "taskSlotsPerNode", "virtualMachineConfiguration")


def list_pools(world: World, call: Call) -> Response:
    entries = [(f"{pool.number:012d}", pool) for pool in world.pools.values()]
    base_url = call.request.base_url
    return page(
        call,
        "pools",
        entries,
        lambda pool: render.pool(pool, base_url),
        POOL_FILTERS,
        POOL,
        world.config.page_size,
    )


def create(world: World, call: Call) -> Response:
    spec = call.request.json()
    shapes.NEW_POOL("", spec)
    if spec.get("enableAutoScale"):
        if not spec.get("autoScaleFormula"):
            raise BatchError("MissingRequiredProperty", PropertyName="autoScaleFormula")
        for name in ("targetDedicatedNodes", "targetLowPriorityNodes"):
            if spec.get(name) is not None:
                raise BatchError("InvalidPropertyValue", PropertyName=name, Reason="the pool scales automatically")
    elif spec.get("autoScaleFormula"):
        raise BatchError("InvalidPropertyValue", PropertyName="autoScaleFormula", Reason="enableAutoScale is not set")
    _check_resize_timeout(spec)
    existing = world.pools.get(spec["id"].lower())
    if existing:
        raise BatchError("PoolBeingDeleted" if existing.state == "deleting" else "PoolExists")
    if len(world.pools) >= world.config.quotas.pools:
        raise BatchError("PoolQuotaReached")
    pool = pool_life.add_pool(world, spec)
    location = {"Location": f"{call.request.base_url}/pools/{pool.id}"}
    return Response(201, resource_headers(pool) | location)


def get(world: World, call: Call) -> Response:
    pool = _pool(world, call)
    return one(call, "pools", render.pool(pool, call.request.base_url), POOL, pool)


def exists(world: World, call: Call) -> Response:
    return Response(200, resource_headers(_pool(world, call)))


def patch(world: World, call: Call) -> Response:
    pool = usable_pool(world, call)
    changes = call.request.json()
    shapes.POOL_PATCH("", changes)
    for name in _EMPTY_POOL_ONLY:
        if changes.get(name) is not None and pool.nodes:
            raise BatchError("OperationNotValidOnPool", f"{name} can change only while the pool has no nodes.")
    pool.spec.update({name: value for name, value in changes.items() if value is not None})
    world.touch(pool)
    return Response(200, resource_headers(pool))


def delete(world: World, call: Call) -> Response:
    pool_life.delete_pool(world, usable_pool(world, call))
    return Response(202)


def resize(world: World, call: Call) -> Response:
    pool = usable_pool(world, call)
    body = call.request.json()
    shapes.POOL_RESIZE("", body)
    _check_resize_timeout(body)
    if body.get("targetDedicatedNodes") is None and body.get("targetLowPriorityNodes") is None:
        raise BatchError("MissingRequiredProperty", PropertyName="targetDedicatedNodes")
    if pool.autoscale:
        raise BatchError("OperationNotValidOnPool", "The pool scales automatically.")
    if pool.allocation_state != "steady":
        raise BatchError("PoolBeingResized")
    option = str(body.get("nodeDeallocationOption") or "requeue").lower()
    dedicated, low_priority = body.get("targetDedicatedNodes"), body.get("targetLowPriorityNodes")
    allocation.resize(
        world,
        pool,
        pool.target_dedicated if dedicated is None else dedicated,
        pool.target_low_priority if low_priority is None else low_priority,
        option,
        body.get("resizeTimeout") or "",
    )
    return Response(202, resource_headers(pool))


def remove_nodes(world: World, call: Call) -> Response:
    """Azure Batch removes at most 100 nodes with one request, while the pool's allocation state is steady."""
    pool = usable_pool(world, call)
    body = call.request.json()
    shapes.POOL_REMOVE_NODES("", body)
    _check_resize_timeout(body)
    if not body["nodeList"]:
        raise BatchError("InvalidPropertyValue", PropertyName="nodeList", Reason="at least one node is needed")
    if pool.autoscale:
        raise BatchError("OperationNotValidOnPool", "The pool scales automatically.")
    if pool.allocation_state != "steady":
        raise BatchError("PoolBeingResized")
    nodes = {node.id: node for node in (world.node(pool.id, id) for id in body["nodeList"])}
    option = str(body.get("nodeDeallocationOption") or "requeue").lower()
    allocation.remove_nodes(world, pool, nodes.values(), option, body.get("resizeTimeout") or "")
    return Response(202, resource_headers(pool))


def replace_properties(world: World, call: Call) -> Response:
    """What the body leaves out is removed from the pool."""
    pool = usable_pool(world, call)
    body = call.request.json()
    shapes.POOL_PROPERTIES("", body)
    for name in ("startTask", "applicationPackageReferences", "metadata"):
        pool.spec.pop(name, None)
        if body.get(name):
            pool.spec[name] = body[name]
    world.touch(pool)
    return Response(204, resource_headers(pool))


def stop_resize(world: World, call: Call) -> Response:
    pool = usable_pool(world, call)
    if pool.allocation_state != "resizing":
        raise BatchError("OperationInvalidForCurrentState", "The pool is not being resized.")
    allocation.stop_resize(world, pool)
    return Response(202, resource_headers(pool))


def node_counts(world: World, call: Call) -> Response:
    """Nodes by state; the figures may be `node_counts_lag_seconds` old."""
    shown = world.shown_counts
    if shown is None or (world.now - shown[0]).total_seconds() >= world.config.timings.node_counts_lag_seconds:
        shown = world.shown_counts = (world.now, [render.node_counts(pool) for pool in world.pools.values()])
    entries = [(f"{number:012d}", counts) for number, counts in enumerate(shown[1])]
    size = world.config.page_size
    return page(call, "poolnodecounts", entries, lambda counts: counts, NODE_COUNTS_FILTERS, NODE_COUNTS, size)


def _pool(world: World, call: Call) -> Pool:
    pool = world.pool(call.pool)
    check_conditions(call, pool)
    return pool


def usable_pool(world: World, call: Call) -> Pool:
    """The pool of a request that changes it; 409 PoolBeingDeleted."""
    pool = _pool(world, call)
    if pool.state == "deleting":
        raise BatchError("PoolBeingDeleted")
    return pool


def _check_resize_timeout(body: Json) -> None:
    timeout = body.get("resizeTimeout")
    if timeout and parse_duration(timeout).total_seconds() < _SHORTEST_RESIZE_TIMEOUT_SECONDS:
        raise BatchError(
            "InvalidPropertyValue", PropertyName="resizeTimeout", PropertyValue=timeout, Reason="at least PT5M"
        )
