"""`python -m local.batch --world world.json [--speed 60] [--port 0] [--cert c.pem --key k.pem] [--endpoint-file PATH]`

Serves the world of a world file (see `local.batch.config`) until SIGTERM or SIGINT, then kills its tasks.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from local.batch.clock import Clock, ManualClock, RealClock, ScaledClock
from local.batch.config import WorldConfig, WorldFileError
from local.batch.process_runner import ProcessRunner
from local.batch.server import BatchServer, server_context
from local.batch.world import World


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        config = WorldConfig.from_file(options.world) if options.world else WorldConfig()
    except (OSError, WorldFileError) as error:
        print(f"the world file cannot be used: {error}", file=sys.stderr)
        return 2
    asyncio.run(_serve(config, options))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.batch", description="An emulator of Azure Batch.")
    parser.add_argument("--world", type=Path, help="world file (JSON)")
    parser.add_argument(
        "--speed", type=float, help="time passes so many times as fast; wins over the world file's speed"
    )
    parser.add_argument("--manual", action="store_true", help="time moves only with POST /admin/advance")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--cert", help="certificate (PEM); http without one")
    parser.add_argument("--key", help="the certificate's private key (PEM)")
    parser.add_argument("--endpoint-file", type=Path, help="the endpoint is written here when the emulator listens")
    options = parser.parse_args(arguments)
    if options.speed is not None and options.speed <= 0:
        parser.error("--speed is more than 0")
    if bool(options.cert) != bool(options.key):
        parser.error("--cert and --key go together")
    return options


async def _serve(config: WorldConfig, options: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    world = World(config, _clock(config, options), ProcessRunner(config))
    server = BatchServer(world, server_context(options.cert, options.key) if options.cert else None)
    endpoint = await server.start(options.host, options.port)
    try:
        print(f"batch emulator listening on {endpoint}", flush=True)
        if options.endpoint_file:
            _write_whole(options.endpoint_file, endpoint)
        await stopping.wait()
    finally:
        await server.stop()


def _clock(config: WorldConfig, options: argparse.Namespace) -> Clock:
    speed = config.speed if options.speed is None else options.speed
    if options.manual:
        return ManualClock()
    return RealClock() if speed == 1.0 else ScaledClock(speed)


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds all of it or nothing."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
