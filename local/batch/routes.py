"""The routes of the Batch API (2025-06-01): verb and path to operation.

Paths are matched while still percent-encoded, because a file path is one segment with %2F in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from local.batch import (
    autoscale_routes,
    file_routes,
    job_routes,
    node_routes,
    pool_routes,
    supported_images,
    task_routes,
)
from local.batch.absent_routes import ABSENT
from local.batch.errors import BatchError
from local.batch.request import Call, Request, Response

if TYPE_CHECKING:
    from local.batch.world import World

Operate = Callable[["World", Call], Response]


@dataclass(frozen=True)
class Route:
    """One operation. `operate` of an operation that the emulator lacks answers 501."""

    method: str
    template: str
    operation: str
    operate: Operate
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.template)))


def _missing(_world: World, call: Call) -> Response:
    raise BatchError("NotImplementedByEmulator", f"The emulator does not implement {call.operation}.")


_POOL, _NODE, _JOB, _TASK = "/pools/{pool}", "/pools/{pool}/nodes/{node}", "/jobs/{job}", "/jobs/{job}/tasks/{task}"

ROUTES = [
    Route("GET", "/pools", "list_pools", pool_routes.list_pools),
    Route("POST", "/pools", "create_pool", pool_routes.create),
    Route("GET", _POOL, "get_pool", pool_routes.get),
    Route("HEAD", _POOL, "pool_exists", pool_routes.exists),
    Route("PATCH", _POOL, "update_pool", pool_routes.patch),
    Route("DELETE", _POOL, "delete_pool", pool_routes.delete),
    Route("POST", f"{_POOL}/resize", "resize_pool", pool_routes.resize),
    Route("POST", f"{_POOL}/stopresize", "stop_pool_resize", pool_routes.stop_resize),
    Route("POST", f"{_POOL}/enableautoscale", "enable_pool_auto_scale", autoscale_routes.enable),
    Route("POST", f"{_POOL}/disableautoscale", "disable_pool_auto_scale", autoscale_routes.disable),
    Route("POST", f"{_POOL}/evaluateautoscale", "evaluate_pool_auto_scale", autoscale_routes.evaluate),
    Route("POST", f"{_POOL}/removenodes", "remove_nodes", pool_routes.remove_nodes),
    Route("POST", f"{_POOL}/updateproperties", "replace_pool_properties", pool_routes.replace_properties),
    Route("GET", "/nodecounts", "list_pool_node_counts", pool_routes.node_counts),
    Route("GET", "/supportedimages", "list_supported_images", supported_images.list_images),
    Route("GET", f"{_POOL}/nodes", "list_nodes", node_routes.list_nodes),
    Route("GET", _NODE, "get_node", node_routes.get),
    Route("POST", f"{_NODE}/disablescheduling", "disable_node_scheduling", node_routes.disable_scheduling),
    Route("POST", f"{_NODE}/enablescheduling", "enable_node_scheduling", node_routes.enable_scheduling),
    Route("POST", f"{_NODE}/reboot", "reboot_node", node_routes.reboot),
    Route("POST", f"{_NODE}/reimage", "reimage_node", node_routes.reimage),
    Route("POST", f"{_NODE}/deallocate", "deallocate_node", node_routes.deallocate),
    Route("POST", f"{_NODE}/start", "start_node", node_routes.start),
    Route("GET", "/jobs", "list_jobs", job_routes.list_jobs),
    Route("POST", "/jobs", "create_job", job_routes.create),
    Route("GET", _JOB, "get_job", job_routes.get),
    Route("PATCH", _JOB, "update_job", job_routes.patch),
    Route("PUT", _JOB, "replace_job", job_routes.replace),
    Route("DELETE", _JOB, "delete_job", job_routes.delete),
    Route("POST", f"{_JOB}/disable", "disable_job", job_routes.disable),
    Route("POST", f"{_JOB}/enable", "enable_job", job_routes.enable),
    Route("POST", f"{_JOB}/terminate", "terminate_job", job_routes.terminate),
    Route("GET", f"{_JOB}/taskcounts", "get_job_task_counts", job_routes.task_counts),
    Route(
        "GET",
        f"{_JOB}/jobpreparationandreleasetaskstatus",
        "list_job_preparation_and_release_task_status",
        job_routes.preparation_status,
    ),
    Route("GET", f"{_JOB}/tasks", "list_tasks", task_routes.list_tasks),
    Route("POST", f"{_JOB}/tasks", "create_task", task_routes.create),
    Route("POST", f"{_JOB}/addtaskcollection", "create_task_collection", task_routes.create_collection),
    Route("GET", _TASK, "get_task", task_routes.get),
    Route("PUT", _TASK, "replace_task", task_routes.replace),
    Route("DELETE", _TASK, "delete_task", task_routes.delete),
    Route("POST", f"{_TASK}/terminate", "terminate_task", task_routes.terminate),
    Route("POST", f"{_TASK}/reactivate", "reactivate_task", task_routes.reactivate),
    Route("GET", f"{_TASK}/subtasksinfo", "list_subtasks", task_routes.subtasks),
    Route("GET", f"{_TASK}/files", "list_task_files", file_routes.list_files),
    Route("GET", f"{_TASK}/files/{{file}}", "get_task_file", file_routes.get),
    Route("HEAD", f"{_TASK}/files/{{file}}", "get_task_file_properties", file_routes.properties),
    Route("DELETE", f"{_TASK}/files/{{file}}", "delete_task_file", file_routes.delete),
    *(Route(verb, path, name, _missing) for verb, path, name in map(str.split, ABSENT.strip().splitlines())),
]
_PARTS = ("pool", "node", "job", "task", "file")


def find(request: Request) -> tuple[Route, Call]:
    """The operation that a request asks for; 404 ResourceNotFound, 405 UnsupportedHttpVerb."""
    verb_is_wrong = False
    path = request.raw_path.rstrip("/") or "/"
    for route in ROUTES:
        found = route.pattern.fullmatch(path)
        if found and route.method == request.method:
            parts = {name: unquote(part) for name, part in found.groupdict().items() if name in _PARTS}
            return route, Call(request, route.operation, **parts)
        verb_is_wrong = verb_is_wrong or found is not None
    raise BatchError("UnsupportedHttpVerb" if verb_is_wrong else "ResourceNotFound")
