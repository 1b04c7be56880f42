"""The emulator as a program sees it that knows HTTP only: requests over a socket, and what is in their answers.

What happens to the account from outside (time, machines, faults) goes through the emulator's own routes; only how a
task's program ends is said to the runner.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from local.batch import RunEnd, ScriptedRunner, World
from tests.support.serving import serving

POOL = "pool"
VERSION = "2025-06-01"
BEARER = {"Authorization": "Bearer token"}
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str]:
        """Status and Batch code of an error."""
        return self.status, str(self.json()["code"])


class Wire:
    """Requests to one emulated account."""

    def __init__(self, endpoint: str, runner: ScriptedRunner | None) -> None:
        self.endpoint = endpoint
        self._runner = runner

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        version: str | None = VERSION,
        **query: str,
    ) -> Answer:
        """One request. `path` goes out as it is; `query` names with a `_` in front get a `$`."""
        named = {name.replace("_", "$", 1): value for name, value in query.items()}
        named |= {"api-version": version} if version else {}
        text = f"{path}?{urlencode(named, quote_via=quote, safe='$')}" if named else path
        return self.raw(method, text, None if body is None else json.dumps(body).encode(), BEARER | dict(headers or {}))

    def raw(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """One request with nothing added but Host and Content-Length."""
        connection = http.client.HTTPConnection(urlsplit(self.endpoint).netloc, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, target, body, dict(headers))
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def follow(self, link: str) -> Any:
        """The page behind an `odata.nextLink`."""
        assert link.startswith(self.endpoint)
        return self.raw("GET", link.removeprefix(self.endpoint), None, BEARER).json()

    def get(self, path: str, **query: str) -> Any:
        """A body that is there."""
        answer = self.send("GET", path, None, None, VERSION, **query)
        assert answer.status == 200, answer.body
        return answer.json()

    def done(self, method: str, path: str, body: Any = None) -> Answer:
        """A request that succeeds."""
        answer = self.send(method, path, body)
        assert answer.status < 300, answer.body
        return answer

    def list(self, path: str, **query: str) -> list[Any]:
        """The entries of a list that fits on one page."""
        page = self.get(path, **query)
        assert "odata.nextLink" not in page
        return list(page["value"])

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """One of the emulator's own routes."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.raw(method, f"/admin{path}", data, {})
        assert answer.status == 200, answer.body
        return answer.json()["result"]

    def advance(self, seconds: float) -> None:
        self.admin("POST", "/advance", {"seconds": seconds})

    def job(self, job_id: str = "job", **properties: Any) -> None:
        self.done("POST", "/jobs", {"id": job_id, "poolInfo": {"poolId": POOL}} | properties)

    def task(self, task_id: str = "task", **properties: Any) -> None:
        self.done("POST", "/jobs/job/tasks", {"id": task_id, "commandLine": "program"} | properties)

    def end(self, task_id: str = "task", end: RunEnd | int = 0) -> None:
        """The program of a running task ends."""
        assert self._runner
        self._runner.finish("job", task_id, end)

    def write(self, path: str, content: bytes, task_id: str = "task") -> None:
        """The program of a running task writes a file."""
        assert self._runner
        self._runner.put_file("job", task_id, path, content)

    def state(self, path: str = "/jobs/job/tasks/task") -> str:
        return str(self.get(path)["state"])

    def info(self, task_id: str = "task") -> Any:
        """A task's executionInfo."""
        return self.get(f"/jobs/job/tasks/{task_id}")["executionInfo"]


@contextmanager
def account(
    nodes: int = 1,
    slots: int = 1,
    pool: Mapping[str, Any] | None = None,
    runner: ScriptedRunner | None = None,
    **keys: Any,
) -> Iterator[Wire]:
    """An account whose pool has idle low-priority nodes. `pool` and `keys` add to the pool and to the world file."""
    base = {"id": POOL, "targetLowPriorityNodes": nodes, "taskSlotsPerNode": slots, "start_seconds": 0}
    runner = runner or ScriptedRunner()
    with serving(World.from_json({"pools": [base | dict(pool or {})], **keys}, runner=runner)) as endpoint:
        yield Wire(endpoint, runner)
