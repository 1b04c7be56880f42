"""Requests about a task's files on its node."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from local.batch.errors import BatchError
from local.batch.iso8601 import format_time
from local.batch.listing import check_times, http_date, page
from local.batch.properties import FILE, FILE_FILTERS
from local.batch.request import Call, Json, Response
from local.batch.runner import FileEntry, Place

if TYPE_CHECKING:
    from local.batch.world import World

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


def list_files(world: World, call: Call) -> Response:
    """The task's files; only those at the top without `recursive=true`."""
    place = _place(world, call)
    recursive = call.request.query.get("recursive", "").lower() == "true"
    files = [entry for entry in world.runner.files(place) if recursive or "/" not in entry.path]
    entries = [(entry.path, entry) for entry in sorted(files, key=lambda entry: entry.path)]
    size = world.config.page_size
    return page(call, "files", entries, lambda entry: _shown(call, entry), FILE_FILTERS, FILE, size)


def get(world: World, call: Call) -> Response:
    """A file's bytes. With `ocp-range` only a part, and still with status 200."""
    place = _place(world, call)
    entry = _entry(world, call, place)
    check_times(call, entry.modified)
    try:
        content = world.runner.read_file(place, entry.path)
    except FileNotFoundError:
        raise BatchError("FileNotFound") from None
    wanted = call.request.headers.get("ocp-range") or call.request.headers.get("range")
    if wanted:
        found = _RANGE.fullmatch(wanted)
        if not found:
            raise BatchError("InvalidHeaderValue", HeaderName="ocp-range", HeaderValue=wanted)
        first = int(found[1])
        if first >= len(content):
            raise BatchError("InvalidRange")
        content = content[first : int(found[2]) + 1 if found[2] else None]
    return Response(200, _headers(call, entry) | {"Content-Type": "text/plain"}, content)


def properties(world: World, call: Call) -> Response:
    entry = _entry(world, call, _place(world, call))
    check_times(call, entry.modified)
    return Response(
        200, _headers(call, entry) | {"Content-Length": str(entry.size_bytes), "Content-Type": "text/plain"}
    )


def delete(world: World, call: Call) -> Response:
    place = _place(world, call)
    entry = _entry(world, call, place, directories=True)
    recursive = call.request.query.get("recursive", "").lower() == "true"
    if entry.is_directory and not recursive:
        children = [child for child in world.runner.files(place) if child.path.startswith(entry.path + "/")]
        if children:
            raise BatchError(
                "InvalidQueryParameterValue", "The directory is not empty.", QueryParameterName="recursive"
            )
    world.runner.delete_file(place, entry.path)
    return Response(200)


def _place(world: World, call: Call) -> Place:
    task = world.task(call.job, call.task)
    place = task.place
    if task.files_cleaned:
        raise BatchError("TaskFilesCleanedup")
    if place is None or task.state == "active":
        raise BatchError("TaskFilesUnavailable")
    pool = world.pools.get(place.pool.lower())
    node = pool.nodes.get(place.node) if pool else None
    if node is None or place.boot < node.disk_boot or not node.works:
        raise BatchError("TaskFilesUnavailable")
    return place


def _entry(world: World, call: Call, place: Place, directories: bool = False) -> FileEntry:
    path = call.file.rstrip("/")
    for entry in world.runner.files(place):
        if entry.path == path and (directories or not entry.is_directory):
            return entry
    raise BatchError("FileNotFound")


def _shown(call: Call, entry: FileEntry) -> Json:
    shown: Json = {"name": entry.path, "url": _url(call, entry), "isDirectory": entry.is_directory}
    if not entry.is_directory:
        shown["properties"] = {
            "creationTime": format_time(entry.created),
            "lastModified": format_time(entry.modified),
            "contentLength": str(entry.size_bytes),
            "contentType": "text/plain",
            "fileMode": entry.mode,
        }
    return shown


def _url(call: Call, entry: FileEntry) -> str:
    return f"{call.request.base_url}/jobs/{call.job}/tasks/{call.task}/files/{quote(entry.path)}"


def _headers(call: Call, entry: FileEntry) -> dict[str, str]:
    return {
        "Last-Modified": http_date(entry.modified),
        "ocp-creation-time": http_date(entry.created),
        "ocp-batch-file-isdirectory": str(entry.is_directory),
        "ocp-batch-file-url": quote(_url(call, entry), safe=""),
        "ocp-batch-file-mode": entry.mode,
    }
