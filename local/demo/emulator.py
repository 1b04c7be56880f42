"""What the demo does with the Batch emulator: it takes nodes away, gives them back, and reads what has happened."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from local.demo.evidence import BatchTask

_SECONDS = 10.0


class Emulator:
    """The emulator's own routes. They are outside of the Batch API, so the worker knows nothing of them."""

    def __init__(self, admin_url: str, authority: Path) -> None:
        self._url = admin_url
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=authority)),
        )
        self._events: list[Mapping[str, Any]] = []

    def events(self) -> list[Mapping[str, Any]]:
        """Everything that has happened so far, oldest first."""
        self._events += self._call("GET", f"/events?after={len(self._events)}")
        return list(self._events)

    def preempt(self, job_id: str, task_id: str) -> str:
        """Take away the node that runs the task, until `give_back`; returns its id."""
        answer = self._call("POST", f"/jobs/{job_id}/tasks/{task_id}/preempt", {"return_after_seconds": None})
        return str(answer["node"])

    def give_back(self, pool_id: str, node_id: str) -> None:
        """A replacement of a node that was taken away begins to start, unless the pool was to give the node up anyway:
        then its formula asks for another one.
        """
        try:
            self._call("POST", f"/pools/{pool_id}/nodes/{node_id}/return")
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise

    def set_spot_nodes(self, pool_id: str, number: int | None) -> None:
        """How many spot nodes Azure has for the pool; None: any number. Nodes in use stay."""
        self._call("PUT", f"/pools/{pool_id}/capacity", {"low_priority_available": number})

    def pool(self, pool_id: str) -> Mapping[str, Any]:
        """The pool as Batch shows it."""
        return next(pool for pool in self._call("GET", "/world")["pools"] if pool["id"] == pool_id)

    def tasks(self) -> tuple[BatchTask, ...]:
        """Every task of the account, as it was added."""
        world = self._call("GET", "/world")
        pools = {job["id"]: job["poolInfo"]["poolId"] for job in world["jobs"]}
        return tuple(self._task(entry["job"], entry["task"], pools[entry["job"]]) for entry in world["tasks"])

    def _task(self, job_id: str, task_id: str, pool_id: str) -> BatchTask:
        body = self._call("GET", f"/jobs/{job_id}/tasks/{task_id}/body")
        environment = {entry["name"]: entry.get("value", "") for entry in body.get("environmentSettings") or []}
        return BatchTask(job_id, task_id, pool_id, body["commandLine"], environment)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data=data, method=method)  # noqa: S310 - https to loopback
        with self._opener.open(request, timeout=_SECONDS) as response:
            return json.load(response)["result"]
