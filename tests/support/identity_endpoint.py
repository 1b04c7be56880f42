"""Identity endpoints in this process: the local stack's, or one that says what a test wants."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiohttp import web

from local.identity.app import make_app
from local.stack.settings import Identity

SECRET = "presented"
ASSIGNED = "00000000-0000-0000-0000-00000000000a"
UNKNOWN = "00000000-0000-0000-0000-00000000000b"


@contextmanager
def app_with_one_identity(monkeypatch: pytest.MonkeyPatch, client_id: str | None) -> Iterator[None]:
    """This process is an app that has the identity `ASSIGNED`, with this value of AZURE_CLIENT_ID."""
    with _serving(make_app(SECRET, client_ids={ASSIGNED})) as endpoint:
        point_to(monkeypatch, endpoint, client_id)
        yield


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, status: int, text: str) -> Iterator[list[str]]:
    """An endpoint that always answers so; the paths it was asked for."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=status, text=text, content_type="application/json")

    app = web.Application()
    app.router.add_get("/msi/token", answer)
    with _serving(app) as endpoint:
        point_to(monkeypatch, endpoint, ASSIGNED)
        yield asked


def point_to(monkeypatch: pytest.MonkeyPatch, endpoint: str, client_id: str | None) -> None:
    """The environment of an app with this endpoint."""
    for name, value in Identity(endpoint, SECRET).environment().items():
        monkeypatch.setenv(name, value)
    if client_id is None:
        monkeypatch.delenv("AZURE_CLIENT_ID", raising=False)
    else:
        monkeypatch.setenv("AZURE_CLIENT_ID", client_id)


@contextmanager
def _serving(app: web.Application) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app, access_log=None)
    loop.run_until_complete(runner.setup())
    loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/msi/token"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
