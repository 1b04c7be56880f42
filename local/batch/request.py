"""The emulator's own view of an HTTP request and its answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.batch.errors import BatchError

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request: `raw_path` still percent-encoded, header names in lower case, no slash at the end of `base_url`."""

    method: str
    raw_path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    base_url: str

    def json(self) -> Json:
        """The body as a JSON object; 400 InvalidRequestBody when it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            raise BatchError("InvalidRequestBody", Reason="The body is not JSON") from None
        if not isinstance(value, dict):
            raise BatchError("InvalidRequestBody", Reason="The body is not a JSON object")
        return value


@dataclass
class Response:
    """One answer. `drop` means: close the connection without answering; `delay_seconds`: answer that much later."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    drop: bool = False
    delay_seconds: float = 0.0

    def json(self) -> Any:
        """The body as JSON, None when empty."""
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True)
class Call:
    """A request that has found its route: the operation's name and the decoded parts of the path."""

    request: Request
    operation: str
    pool: str = ""
    node: str = ""
    job: str = ""
    task: str = ""
    file: str = ""

    def names(self) -> dict[str, str]:
        """The parts of the path that are set, for logs."""
        return {name: getattr(self, name) for name in ("pool", "node", "job", "task") if getattr(self, name)}


def json_response(status: int, body: Json, headers: dict[str, str] | None = None) -> Response:
    """An answer as Batch writes it."""
    content_type = {"Content-Type": "application/json; odata=minimalmetadata"}
    return Response(status, content_type | (headers or {}), json.dumps(body).encode())
