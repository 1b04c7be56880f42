"""`python -m local.identity --port 0 --ready-file FILE`: serve the identity endpoint on 127.0.0.1 until stopped.

The secret that callers must present is read from the environment variable `IDENTITY_HEADER`, so that no command line
shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from aiohttp import web

from local.identity.app import DEFAULT_LIFE_SECONDS, make_app


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m local.identity", description="Local managed identity endpoint.")
    parser.add_argument("--port", type=int, default=0, help="0 (default) takes a free port")
    parser.add_argument("--ready-file", type=Path, help="the endpoint's URL is written here once it answers")
    parser.add_argument("--token-life-seconds", type=int, default=DEFAULT_LIFE_SECONDS)
    options = parser.parse_args(arguments)
    secret = os.environ.get("IDENTITY_HEADER", "")
    if not secret:
        print("IDENTITY_HEADER is not set: callers need a secret to present", file=sys.stderr)
        return 2
    asyncio.run(_serve(secret, options.port, options.ready_file, options.token_life_seconds))
    return 0


async def _serve(secret: str, port: int, ready_file: Path | None, life_seconds: int) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    runner = web.AppRunner(make_app(secret, life_seconds), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}/msi/token"
        print(f"identity endpoint listens at {endpoint}", flush=True)
        if ready_file:
            _write_whole(ready_file, endpoint)
        await stopped.wait()
    finally:
        await runner.cleanup()


def _write_whole(path: Path, text: str) -> None:
    """Readers poll for the file, so it appears with its whole text."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
