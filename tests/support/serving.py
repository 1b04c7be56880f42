"""A world behind a real socket, in a thread of this process, so that a test can move its clock and end its tasks."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from local.batch import World
from local.batch.server import BatchServer

_PATIENCE_SECONDS = 60


@contextmanager
def serving(world: World, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve `world` on a free port, over https with a context; gives the endpoint."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = BatchServer(world, context)
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result(_PATIENCE_SECONDS)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(_PATIENCE_SECONDS)
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(_PATIENCE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PATIENCE_SECONDS)
        loop.close()
