"""Doors between the functions hosts and the services they use: requests can be held, refused, counted or cut off.

A gate is a set of small https reverse proxies in a thread of the test process, one door per tenant and service. What is
signed in a request (shared keys, SAS) does not cover the host, so requests pass unchanged but for their way.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from local.certificates import Certificates

T = TypeVar("T")

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade"})
_MOST_BYTES = 256 * 1024 * 1024
_SECONDS = 30.0
#: Headers that the client library must not add: they would change what was signed.
_ADDED_BY_CLIENT = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True)
class Request:
    """A request as it came in. `target` is the encoded path with its query."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def path(self) -> str:
        """The encoded path without the query."""
        return self.target.partition("?")[0]


@dataclass(frozen=True)
class Matching:
    """Which requests: method, a regular expression found in the target, headers with these values, text in the body."""

    method: str = ""
    target: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def __call__(self, request: Request) -> bool:
        return (
            self.method in ("", request.method)
            and re.search(self.target, request.target) is not None
            and all(request.headers.get(name) == value for name, value in self.headers.items())
            and re.search(self.body.encode(), request.body) is not None
        )


class Dropped(Exception):
    """The connection ends without an answer."""


class Hold:
    """Keeps one matching request, the `nth`, before or after it is passed on, until it is released or dropped.

    `then` is called at that instant, before any other request of any door goes on.
    """

    def __init__(
        self, matching: Matching, when: Literal["before", "after"], nth: int, then: Callable[[], None] | None
    ) -> None:
        self.matching = matching
        self.when = when
        self._left = nth
        self._then = then
        self._reached = threading.Event()
        self._decision: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def takes(self, request: Request) -> bool:
        """Whether this is the request to keep; counts those that match."""
        if self._left == 0 or not self.matching(request):
            return False
        self._left -= 1
        return self._left == 0

    async def keep(self) -> None:
        """Raises Dropped if that is what is decided."""
        if self._then is not None:
            self._then()
        self._reached.set()
        if not await asyncio.shield(self._decision):
            raise Dropped

    def wait(self, seconds: float = 60.0) -> None:
        """Return when the request is being kept; TimeoutError if none came."""
        if not self._reached.wait(seconds):
            raise TimeoutError(f"no request came for {self.matching}")

    def release(self) -> None:
        """Let it go on."""
        self._decide(True)

    def drop(self) -> None:
        """End its connection; a request that was kept `before` never arrives."""
        self._decide(False)

    def _decide(self, passes: bool) -> None:
        def set_once() -> None:
            if not self._decision.done():
                self._decision.set_result(passes)

        self._decision.get_loop().call_soon_threadsafe(set_once)


@dataclass
class Refusal:
    """Answers every matching request itself, until it is taken away. `hits` counts them."""

    matching: Matching
    status: int
    code: str
    hits: int = 0


class Door:
    """One service as one tenant's hosts reach it."""

    def __init__(self, gate: Gate, upstream: str) -> None:
        self._gate = gate
        self._upstream = upstream
        self._holds: list[Hold] = []
        self._refusals: list[Refusal] = []
        self._requests: list[tuple[str, str]] = []
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Where the hosts find it."""
        return f"https://127.0.0.1:{self._port}"

    @contextlib.contextmanager
    def hold(
        self,
        matching: Matching,
        when: Literal["before", "after"],
        *,
        nth: int = 1,
        then: Callable[[], None] | None = None,
    ) -> Iterator[Hold]:
        """Keep the `nth` request that matches. What is still kept when the block ends is dropped."""
        hold = self._gate.run(_made(lambda: Hold(matching, when, nth, then)))
        self._holds.append(hold)
        try:
            yield hold
        finally:
            self._holds.remove(hold)
            hold.drop()

    @contextlib.contextmanager
    def refusing(self, matching: Matching, status: int, code: str) -> Iterator[Refusal]:
        """Answer matching requests with an error while the block runs."""
        refusal = Refusal(matching, status, code)
        self._refusals.append(refusal)
        try:
            yield refusal
        finally:
            self._refusals.remove(refusal)

    def shut(self) -> None:
        """From now on nobody is at home: connections are refused, open ones end."""
        self._gate.run(self._shut())

    def open(self) -> None:
        """Listen, on the same port after `shut`."""
        self._gate.run(self._open())

    def count(self, method: str, target: str) -> int:
        """How many requests have come so far."""
        return sum(one == method and re.search(target, at) is not None for one, at in list(self._requests))

    async def close(self) -> None:
        """For good."""
        for hold in self._holds:
            hold.drop()
        await self._shut()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _open(self) -> None:
        if self._runner is None:
            app = web.Application(client_max_size=_MOST_BYTES)
            app.router.add_route("*", "/{path:.*}", self._handle)
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
            await self._runner.setup()
        assert self._runner.server is not None
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._runner.server, "127.0.0.1", self._port, ssl=self._gate.server_tls, reuse_address=True
        )
        self._port = self._listener.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        assert self._runner is not None
        assert self._runner.server is not None
        for connection in list(self._runner.server.connections):
            if connection.transport is not None:
                connection.transport.abort()

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        request = Request(incoming.method, incoming.raw_path, incoming.headers, await incoming.read())
        self._requests.append((request.method, request.target))
        for refusal in self._refusals:
            if refusal.matching(request):
                refusal.hits += 1
                return _refused(refusal)
        hold = next((one for one in list(self._holds) if one.takes(request)), None)
        try:
            if hold is not None and hold.when == "before":
                await hold.keep()
            answer = await self._passed_on(request, incoming.headers)
            if hold is not None and hold.when == "after":
                await hold.keep()
        except (Dropped, aiohttp.ClientError):
            if incoming.transport is not None:
                incoming.transport.abort()
            raise web.HTTPServiceUnavailable from None  # nobody sees it
        return answer

    async def _passed_on(self, request: Request, headers: Mapping[str, str]) -> web.Response:
        url = URL(self._upstream + request.target, encoded=True)
        passed = CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP)
        async with self._gate.client.request(
            request.method, url, headers=passed, data=request.body or None, allow_redirects=False
        ) as answer:
            kept = CIMultiDict((name, value) for name, value in answer.headers.items() if _is_kept(name, request))
            return web.Response(status=answer.status, reason=answer.reason, headers=kept, body=await answer.read())


class Gate:
    """All doors of a stack, and the thread they live in."""

    client: aiohttp.ClientSession
    server_tls: ssl.SSLContext

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._doors: dict[tuple[str, str], Door] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate", daemon=True)

    def __enter__(self) -> Gate:
        self.server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.server_tls.load_cert_chain(self._certificates.certificate, self._certificates.key)
        self._thread.start()
        self.run(self._open())
        return self

    def __exit__(self, *_error: object) -> None:
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def door(self, tenant: str, service: str) -> Door:
        """The door to `blob`, `queue` or `batch`, once the tenant's settings have been made."""
        return self._doors[tenant, service]

    def settings(self, tenant: str, settings: dict[str, str]) -> dict[str, str]:
        """For `StackOptions.adjust`: the settings with the doors in place of the services.

        The tasks' way to write results stays as it is: an outage is one of the hosts.
        """
        connection = settings["BLOB_CONNECTION_STRING"]
        for name, service in (("BlobEndpoint", "blob"), ("QueueEndpoint", "queue")):
            connection = self._replaced(rf"(?<={name}=)https://[^/;]+", connection, tenant, service)
        batch = self._replaced(r"https://[^/]+", settings["AZURE_BATCH_URL"], tenant, "batch")
        storage = {"AzureWebJobsStorage": connection, "BLOB_CONNECTION_STRING": connection}
        return settings | storage | {"AZURE_BATCH_URL": batch}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the gate's thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def _replaced(self, pattern: str, text: str, tenant: str, service: str) -> str:
        found = re.search(pattern, text)
        assert found is not None, f"no address of {service}"
        if (tenant, service) not in self._doors:
            door = Door(self, found[0])
            door.open()
            self._doors[tenant, service] = door
        return text[: found.start()] + self._doors[tenant, service].url + text[found.end() :]

    async def _open(self) -> None:
        trust = ssl.create_default_context(cafile=str(self._certificates.authority))
        self.client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=0),
            auto_decompress=False,
            skip_auto_headers=_ADDED_BY_CLIENT,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def _close(self) -> None:
        for door in self._doors.values():
            await door.close()
        await self.client.close()


async def _made(make: Callable[[], T]) -> T:
    return make()


def _is_kept(name: str, request: Request) -> bool:
    # what HEAD says about the length has to stay; elsewhere the server counts anew
    return name.lower() not in _HOP_BY_HOP and (request.method == "HEAD" or name.lower() != "content-length")


def _refused(refusal: Refusal) -> web.Response:
    """Storage reads the code from a header, Batch from a JSON body."""
    body = {"code": refusal.code, "message": {"lang": "en-US", "value": "Refused by the test."}}
    return web.json_response(body, status=refusal.status, headers={"x-ms-error-code": refusal.code})
