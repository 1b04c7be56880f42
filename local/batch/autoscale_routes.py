"""Requests about auto-scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch import autoscale, shapes
from local.batch.errors import BatchError
from local.batch.iso8601 import parse_duration
from local.batch.listing import resource_headers
from local.batch.pool_routes import usable_pool
from local.batch.request import Call, Json, Response, json_response

if TYPE_CHECKING:
    from local.batch.world import World

_ENABLE_SPACING_SECONDS = 30.0


def enable(world: World, call: Call) -> Response:
    """Enable auto-scale or change it. Azure Batch wants 30 seconds between two of these requests for a pool."""
    pool = usable_pool(world, call)
    body = call.request.json()
    shapes.POOL_ENABLE_AUTOSCALE("", body)
    given = body.get("autoScaleFormula")
    if not pool.autoscale and not given:
        raise BatchError("MissingRequiredProperty", PropertyName="autoScaleFormula")
    if not given and not body.get("autoScaleEvaluationInterval"):
        raise BatchError("MissingRequiredProperty", PropertyName="autoScaleFormula or autoScaleEvaluationInterval")
    if pool.allocation_state != "steady":
        raise BatchError("PoolBeingResized")
    enabled = pool.autoscale_enabled
    if pool.autoscale and enabled and (world.now - enabled).total_seconds() < _ENABLE_SPACING_SECONDS:
        raise BatchError("TooManyEnableAutoScaleRequests")
    if given and given != pool.spec.get("autoScaleFormula"):
        pool.autoscale_by_rule = False
    for name in ("autoScaleFormula", "autoScaleEvaluationInterval"):
        if body.get(name):
            pool.spec[name] = body[name]
    interval = pool.spec.setdefault("autoScaleEvaluationInterval", autoscale.DEFAULT_INTERVAL)
    pool.autoscale_seconds = parse_duration(interval).total_seconds()
    autoscale.enable(world, pool)
    world.touch(pool)
    return Response(200, resource_headers(pool))


def disable(world: World, call: Call) -> Response:
    """The pool keeps its targets."""
    pool = usable_pool(world, call)
    autoscale.disable(world, pool)
    return Response(200, resource_headers(pool))


def evaluate(world: World, call: Call) -> Response:
    """Try a formula on a pool that scales automatically; nothing changes."""
    pool = usable_pool(world, call)
    body = call.request.json()
    shapes.POOL_EVALUATE_AUTOSCALE("", body)
    if not pool.autoscale:
        raise BatchError("OperationNotValidOnPool", "The pool does not scale automatically.")
    shown: Json = {"odata.metadata": f"{call.request.base_url}/$metadata#autoscalerun/@Element"}
    return json_response(
        200, shown | autoscale.shown(world, autoscale.evaluated(world, pool, body["autoScaleFormula"]))
    )
