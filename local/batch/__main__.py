"""`python -m local.batch --world world.yaml [--speed 60] [--port 0] [--cert c.pem --key k.pem] [--account NAME]`

Serves the world of a world file (see `local.batch.config`) until SIGTERM or SIGINT, then kills its tasks.
"""

import argparse
import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from local.batch.clock import Clock, ManualClock, RealClock, ScaledClock
from local.batch.config import Account, WorldConfig, WorldFileError
from local.batch.process_runner import ProcessRunner
from local.batch.server import BatchServer, server_context
from local.batch.world import World

_KEY_VARIABLE = "BATCH_EMULATOR_KEY"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        config = WorldConfig.from_file(options.world) if options.world else WorldConfig()
    except (OSError, WorldFileError) as error:
        print(f"the world file cannot be used: {error}", file=sys.stderr)
        return 2
    asyncio.run(_serve(_with_account(config, options), options))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.batch", description="An emulator of Azure Batch.")
    parser.add_argument("--world", type=Path, help="world file: JSON, or YAML if it ends with .yaml or .yml")
    parser.add_argument(
        "--speed", type=float, help="time passes so many times as fast; wins over the world file's speed"
    )
    parser.add_argument("--manual", action="store_true", help="time moves only with POST /admin/advance")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--cert", help="certificate (PEM); http without one")
    parser.add_argument("--key", help="the certificate's private key (PEM)")
    parser.add_argument("--account", help="name of the Batch account; wins over the world file's")
    parser.add_argument(
        "--account-key",
        type=_account_key,
        default=os.environ.get(_KEY_VARIABLE) or None,
        help=f"its key (base64); wins over the variable {_KEY_VARIABLE}, which no list of processes shows",
    )
    parser.add_argument("--endpoint-file", type=Path, help="the endpoint is written here when the emulator listens")
    options = parser.parse_args(arguments)
    if options.speed is not None and options.speed <= 0:
        parser.error("--speed is more than 0")
    if bool(options.cert) != bool(options.key):
        parser.error("--cert and --key go together")
    return options


def _account_key(text: str) -> str:
    try:
        return Account(key=text).key
    except WorldFileError:  # argparse would show the text of a ValueError's argument, and that is the key
        raise argparse.ArgumentTypeError(f"this or {_KEY_VARIABLE} is not base64") from None


def _with_account(config: WorldConfig, options: argparse.Namespace) -> WorldConfig:
    name, key = options.account or config.account.name, options.account_key or config.account.key
    return replace(config, account=Account(name, key))


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
