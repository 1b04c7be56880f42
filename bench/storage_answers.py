"""Answers of the storage service in this process, as the storage SDKs read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest, HttpResponse
from azure.core.utils import case_insensitive_dict


@dataclass(frozen=True)
class Answer:
    """Status, body and headers; `code` is Azure Storage's error code, used with an error status only."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    code: str = ""


class _Download:
    """A body in one piece; the SDK attaches what it has read from the headers."""

    properties: Any = None

    def __init__(self, response: StoredAnswer) -> None:
        self.response = response
        self.content_length = len(response.read())

    def __iter__(self) -> Iterator[bytes]:
        return iter([self.response.read()])


class StoredAnswer(HttpResponse):
    """An answer that is in memory already; the storage SDKs use azure-core's older names as well."""

    location_mode: Any = None

    def __init__(self, request: HttpRequest, status: int, headers: dict[str, str], body: bytes) -> None:
        self._request, self._status, self._body = request, status, body
        self._headers = case_insensitive_dict({"Content-Type": "application/xml", **headers})
        self.encoding_name: str | None = "utf-8"

    @property
    def request(self) -> HttpRequest:
        return self._request

    @property
    def status_code(self) -> int:
        return self._status

    @property
    def headers(self) -> MutableMapping[str, str]:
        return self._headers

    @property
    def reason(self) -> str:
        return HTTPStatus(self._status).phrase

    @property
    def content_type(self) -> str | None:
        return self._headers.get("Content-Type")

    @property
    def is_closed(self) -> bool:
        return True

    @property
    def is_stream_consumed(self) -> bool:
        return True

    @property
    def encoding(self) -> str | None:
        return self.encoding_name

    @encoding.setter
    def encoding(self, value: str | None) -> None:
        self.encoding_name = value

    @property
    def url(self) -> str:
        return self._request.url

    @property
    def content(self) -> bytes:
        return self._body

    def text(self, encoding: str | None = None) -> str:
        return self._body.decode(encoding or "utf-8")

    def json(self) -> Any:
        return json.loads(self._body)

    def raise_for_status(self) -> None:
        if self._status >= 400:
            raise HttpResponseError(response=self)

    def read(self) -> bytes:
        return self._body

    def body(self) -> bytes:
        """As `read`."""
        return self._body

    def stream_download(self, *_pipeline: Any, **_options: Any) -> _Download:
        """The whole body in one piece."""
        return _Download(self)

    def iter_bytes(self, **_options: Any) -> Iterator[bytes]:
        yield self._body

    def iter_raw(self, **_options: Any) -> Iterator[bytes]:
        yield self._body

    def close(self) -> None:
        """Nothing to close."""

    def __enter__(self) -> StoredAnswer:
        return self

    def __exit__(self, *_error: object) -> None:
        return None
