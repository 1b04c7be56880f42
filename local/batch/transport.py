"""Lets the real SDK talk to a world in the same process, without sockets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, MutableMapping
from http import HTTPStatus
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from azure.core.exceptions import HttpResponseError, ServiceResponseError
from azure.core.pipeline.transport import HttpTransport
from azure.core.rest import HttpRequest, HttpResponse
from azure.core.utils import case_insensitive_dict

from local.batch.clock import ManualClock
from local.batch.request import Response
from local.batch.world import World


class InProcessTransport(HttpTransport[HttpRequest, HttpResponse]):
    """Hand it to `BatchClient(endpoint, credential, transport=...)`; any https endpoint will do.

    A delayed answer moves a manual clock; a dropped connection is a ServiceResponseError, as over a socket.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def send(self, request: HttpRequest, **_options: Any) -> HttpResponse:
        url = urlsplit(request.url)
        content = request.content or b""
        response = self.world.handle(
            request.method,
            url.path,
            dict(parse_qsl(url.query, keep_blank_values=True)),
            request.headers,
            content.encode() if isinstance(content, str) else bytes(content),
            f"{url.scheme}://{url.netloc}",
        )
        if response.delay_seconds:
            self._wait(response.delay_seconds)
        if response.drop:
            raise ServiceResponseError("The connection was closed without an answer")
        return _InProcessResponse(request, response)

    def _wait(self, seconds: float) -> None:
        if isinstance(self.world.clock, ManualClock):
            self.world.advance(seconds)
        else:
            time.sleep(seconds)

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def sleep(self, duration: float) -> None:
        """The SDK's waits between retries."""
        self._wait(duration)

    def __enter__(self) -> InProcessTransport:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        pass


class _InProcessResponse(HttpResponse):
    """An answer that is in memory already."""

    def __init__(self, request: HttpRequest, response: Response) -> None:
        self._request = request
        self._response = response
        self._headers = case_insensitive_dict(response.headers)
        self.encoding_name: str | None = "utf-8"

    @property
    def request(self) -> HttpRequest:
        return self._request

    @property
    def status_code(self) -> int:
        return self._response.status

    @property
    def headers(self) -> MutableMapping[str, str]:
        return self._headers

    @property
    def reason(self) -> str:
        return HTTPStatus(self._response.status).phrase

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
        return self._response.body

    def text(self, encoding: str | None = None) -> str:
        return self.content.decode(encoding or self.encoding_name or "utf-8")

    def json(self) -> Any:
        return json.loads(self.text())

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise HttpResponseError(response=self)

    def read(self) -> bytes:
        return self.content

    def iter_bytes(self, **_options: Any) -> Iterator[bytes]:
        yield self.content

    def iter_raw(self, **_options: Any) -> Iterator[bytes]:
        yield self.content

    def close(self) -> None:
        pass

    def __enter__(self) -> _InProcessResponse:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        pass
