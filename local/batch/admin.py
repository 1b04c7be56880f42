"""The emulator's own routes, outside the Batch API and without credentials. Bodies and answers are JSON.

POST   /admin/pools/{pool}/nodes/{node}/preempt    options of `control.preempt_node`; node may be any-running
POST   /admin/pools/{pool}/nodes/{node}/return     its replacement begins to start
POST   /admin/jobs/{job}/tasks/{task}/preempt      the node that the task runs on
POST   /admin/jobs/{job}/tasks/{task}/notice       a stuck task is noticed
GET    /admin/jobs/{job}/tasks/{task}/body         the task as it was created, secrets and all
PUT    /admin/pools/{pool}/capacity                {"low_priority_available": 3 or null}
PUT    /admin/pools/{pool}/allocations             {"allocations": [{"outcome": "timeout", "nodes": 1}]}
PUT    /admin/pools/{pool}/resize-errors           {"errors": [{"code", "message"}], "now": true, "later": true}
GET, POST, DELETE /admin/faults                    rules of `faults`; POST takes one rule or a list
GET    /admin/events?after=SEQ                     the event log behind an entry
GET    /admin/world                                everything at a glance
POST   /admin/advance                              {"seconds": 60}, with a manual clock only
POST   /admin/reset                                back to the world file
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from local.batch import control
from local.batch.config import WorldFileError
from local.batch.errors import BatchError
from local.batch.request import Request, Response, json_response

if TYPE_CHECKING:
    from local.batch.world import World

_Do = Callable[["World", Request, dict[str, str], Any], Any]


def answer(world: World, request: Request) -> Response:
    """Answer one request under /admin."""
    path = request.raw_path.rstrip("/")
    try:
        for method, pattern, do in _ROUTES:
            found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern), path)
            if found and method == request.method:
                parts = {name: unquote(part) for name, part in found.groupdict().items()}
                body = json.loads(request.body) if request.body else {}
                return json_response(200, {"result": do(world, request, parts, body)})
    except BatchError as error:
        return json_response(error.status, {"code": error.code, "message": error.message})
    except (WorldFileError, TypeError, KeyError, ValueError) as error:
        return json_response(400, {"code": "InvalidRequestBody", "message": f"{type(error).__name__}: {error}"})
    return json_response(404, {"code": "ResourceNotFound", "message": "no such admin route"})


def _preempt_node(world: World, _request: Request, at: dict[str, str], body: Any) -> Any:
    return {"node": control.preempt_node(world, at["pool"], at["node"], **body)}


def _return_node(world: World, _request: Request, at: dict[str, str], _body: Any) -> Any:
    return {"returned": control.bring_back(world, at["pool"], at["node"])}


def _preempt_task(world: World, _request: Request, at: dict[str, str], body: Any) -> Any:
    return {"node": control.preempt_task(world, at["job"], at["task"], **body)}


def _notice(world: World, _request: Request, at: dict[str, str], _body: Any) -> Any:
    control.notice_stuck(world, at["job"], at["task"])


def _task_body(world: World, _request: Request, at: dict[str, str], _body: Any) -> Any:
    return world.task(at["job"], at["task"]).spec


def _capacity(world: World, _request: Request, at: dict[str, str], body: Any) -> Any:
    control.set_low_priority_available(world, at["pool"], body["low_priority_available"])


def _resize_errors(world: World, _request: Request, at: dict[str, str], body: Any) -> Any:
    control.set_resize_errors(world, at["pool"], **body)


def _allocations(world: World, _request: Request, at: dict[str, str], body: Any) -> Any:
    control.script_allocations(world, at["pool"], body["allocations"])


def _faults(world: World, _request: Request, _at: dict[str, str], _body: Any) -> Any:
    return [fault.to_json() for fault in world.faults.rules]


def _add_faults(world: World, _request: Request, _at: dict[str, str], body: Any) -> Any:
    rules = body if isinstance(body, list) else [body]
    return [world.faults.add(rule).to_json() for rule in rules]


def _clear_faults(world: World, _request: Request, _at: dict[str, str], _body: Any) -> Any:
    world.faults.clear()


def _events(world: World, request: Request, _at: dict[str, str], _body: Any) -> Any:
    return world.events.entries[int(request.query.get("after", "0")) :]


def _world(world: World, _request: Request, _at: dict[str, str], _body: Any) -> Any:
    return control.dump(world)


def _advance(world: World, _request: Request, _at: dict[str, str], body: Any) -> Any:
    world.advance(body["seconds"])


def _reset(world: World, _request: Request, _at: dict[str, str], _body: Any) -> Any:
    world.reset()


_ROUTES: list[tuple[str, str, _Do]] = [
    ("POST", "/admin/pools/{pool}/nodes/{node}/preempt", _preempt_node),
    ("POST", "/admin/pools/{pool}/nodes/{node}/return", _return_node),
    ("POST", "/admin/jobs/{job}/tasks/{task}/preempt", _preempt_task),
    ("POST", "/admin/jobs/{job}/tasks/{task}/notice", _notice),
    ("GET", "/admin/jobs/{job}/tasks/{task}/body", _task_body),
    ("PUT", "/admin/pools/{pool}/capacity", _capacity),
    ("PUT", "/admin/pools/{pool}/resize-errors", _resize_errors),
    ("PUT", "/admin/pools/{pool}/allocations", _allocations),
    ("GET", "/admin/faults", _faults),
    ("POST", "/admin/faults", _add_faults),
    ("DELETE", "/admin/faults", _clear_faults),
    ("GET", "/admin/events", _events),
    ("GET", "/admin/world", _world),
    ("POST", "/admin/advance", _advance),
    ("POST", "/admin/reset", _reset),
]
