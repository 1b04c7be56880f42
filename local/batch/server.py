"""Serves a world over http or https and lets it follow the real clock."""

import asyncio
import contextlib
import ssl
from urllib.parse import parse_qsl

from aiohttp import web

from local.batch.world import World

_LARGEST_BODY_BYTES = 64 * 1024 * 1024
_LONGEST_NAP_SECONDS = 0.05


class BatchServer:
    """One listening emulator. `start` returns its endpoint, `stop` ends it with all tasks."""

    def __init__(self, world: World, context: ssl.SSLContext | None = None) -> None:
        self._world = world
        self._context = context
        application = web.Application(client_max_size=_LARGEST_BODY_BYTES)
        application.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, handler_cancellation=False)
        self._ticking: asyncio.Task[None] | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen; port 0 takes a free one."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=self._context)
        await site.start()
        bound = self._runner.addresses[0][1]
        self._ticking = asyncio.create_task(self._tick())
        return f"{'https' if self._context else 'http'}://{host}:{bound}"

    async def stop(self) -> None:
        if self._ticking:
            self._ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticking
        await self._runner.cleanup()
        await asyncio.to_thread(self._world.close)

    async def _tick(self) -> None:
        while True:
            await asyncio.to_thread(self._world.tick)
            await asyncio.sleep(_LONGEST_NAP_SECONDS)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        response = await asyncio.to_thread(
            self._world.handle,
            request.method,
            path,
            dict(parse_qsl(query, keep_blank_values=True)),
            dict(request.headers),
            await request.read(),
            f"{request.scheme}://{request.host}",
        )
        if response.delay_seconds:
            await asyncio.sleep(response.delay_seconds)
        if response.drop:
            if request.transport:
                request.transport.abort()
            return web.Response(status=500)
        return web.Response(status=response.status, headers=response.headers, body=response.body or None)


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """TLS with a certificate and key in PEM files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
