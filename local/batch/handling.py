"""One request from the wire to its answer: version, credentials, faults, operation, error body, log."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING
from urllib.parse import unquote

from local.batch import admin, auth, routes
from local.batch.errors import STATUS_AND_TEXT, BatchError
from local.batch.iso8601 import format_time
from local.batch.listing import http_date
from local.batch.request import Call, Json, Request, Response, json_response

if TYPE_CHECKING:
    from local.batch.faults import Fault
    from local.batch.world import World


def answer(world: World, request: Request) -> Response:
    """Answer a request to the Batch routes or, under /admin, to the emulator's own."""
    if request.raw_path.startswith("/admin"):
        return admin.answer(world, request)
    operation = ""
    code: str | None = None
    try:
        route, call = routes.find(request)
        operation = call.operation
        response = _answer_route(world, route, call)
    except BatchError as error:
        code = error.code
        response = error_response(world, request, error)
    response.headers |= {
        "Date": http_date(world.clock.now()),
        "request-id": str(uuid.UUID(int=world.number())),
        "DataServiceVersion": "3.0",
        "Server": "Microsoft-HTTPAPI/2.0",
    }
    if request.headers.get("return-client-request-id", "").lower() == "true":
        response.headers["client-request-id"] = request.headers.get("client-request-id", "")
    world.log(
        "request",
        operation=operation,
        method=request.method,
        path=unquote(request.raw_path),
        status=response.status or None,
        code=code or response.headers.get("x-emulator-fault"),
    )
    return response


def _answer_route(world: World, route: routes.Route, call: Call) -> Response:
    request = call.request
    if not request.query.get("api-version"):
        raise BatchError("MissingRequiredQueryParameter", QueryParameterName="api-version")
    auth.check(request, world.config.account, world.clock.now(), world.config.check_date_skew)
    fault = world.faults.hit(call, route.template)
    if fault is None:
        return route.operate(world, call)
    world.log("fault", operation=call.operation, **call.names(), status=fault.status, code=fault.code, when=fault.when)
    if not fault.answers:
        response = route.operate(world, call)
    else:
        if fault.when == "after":
            route.operate(world, call)
        response = _faulty(world, request, fault)
    response.delay_seconds = fault.delay_seconds
    return response


def _faulty(world: World, request: Request, fault: Fault) -> Response:
    if fault.drop_connection:
        return Response(0, drop=True)
    known_status = STATUS_AND_TEXT.get(fault.code, (500, ""))[0]
    status = fault.status or known_status
    code = fault.code or next((code for code, (known, _) in STATUS_AND_TEXT.items() if known == status), "ServerBusy")
    response = error_response(world, request, BatchError(code, fault.message or "An injected fault.", status=status))
    response.status = status
    response.headers["x-emulator-fault"] = code
    if fault.retry_after is not None:
        response.headers["Retry-After"] = f"{fault.retry_after:g}"
    return response


def error_response(world: World, request: Request, error: BatchError) -> Response:
    """The body that Batch sends with an error; none for HEAD and 304."""
    if request.method == "HEAD" or error.status == 304:
        return Response(error.status)
    message = f"{error.message}\nRequestId:{uuid.UUID(int=world.number())}\nTime:{format_time(world.now)}"
    kind = "Microsoft.Azure.Batch.Protocol.Entities.Container.errors"
    body: Json = {
        "odata.metadata": f"{request.base_url}/$metadata#{kind}/@Element",
        "code": error.code,
        "message": {"lang": "en-US", "value": message},
    }
    if error.details:
        body["values"] = [{"key": key, "value": value} for key, value in error.details.items()]
    return json_response(error.status, body)
