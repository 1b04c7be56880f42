"""Command line: host one function app until SIGTERM or SIGINT."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path

from local.functions_host.faults import HostFaults
from local.functions_host.host import FunctionsHost, plan_host
from local.functions_host.log import configure_logging, log_event
from local.functions_host.settings import Settings, read_local_settings

REFUSED_EXIT_CODE = 1
KILLED_EXIT_CODE = 130


def main() -> int:
    """Run the host; returns 0 after a drain, 1 when the app is refused, 3 when a function outlasted the timeout."""
    arguments = _parse_arguments()
    configure_logging(verbose=arguments.verbose)
    app: Path = arguments.app.resolve()
    ready_file: Path | None = arguments.ready_file.resolve() if arguments.ready_file else None
    try:
        if not app.is_dir():
            raise HostFaults([f"--app {arguments.app}: no such directory"])
        for name, value in read_local_settings(app / "local.settings.json").items():
            os.environ.setdefault(name, value)
        os.environ["AZURE_FUNCTIONS_ENVIRONMENT"] = "Development"
        if os.environ.get("WEBSITE_TIME_ZONE"):
            os.environ["TZ"] = os.environ["WEBSITE_TIME_ZONE"]
            time.tzset()
        os.chdir(app)  # where functions run in Azure
        code = asyncio.run(_host(app, ready_file, arguments))
    except HostFaults as error:
        for fault in error.faults:
            log_event("host.fault", level=logging.ERROR, fault=fault)
        log_event("host.refused", level=logging.ERROR, faults=len(error.faults))
        code = REFUSED_EXIT_CODE
    return code


async def _host(app: Path, ready_file: Path | None, arguments: argparse.Namespace) -> int:
    plan = await plan_host(app, Settings(os.environ), tuple(arguments.only or ()))
    host = FunctionsHost(
        plan, lease_seconds=arguments.lease_seconds, function_key=arguments.function_key, log=log_event
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_or_kill, stop)
    try:
        ready = await host.start(arguments.port, stop)
    except OSError as error:
        raise HostFaults([f"--port {arguments.port}: {error.strerror}"]) from error
    line = json.dumps(ready)
    print(line, flush=True)
    if ready_file is not None:
        partial = ready_file.with_name(ready_file.name + ".partial")
        partial.write_text(line, encoding="utf-8")
        partial.replace(ready_file)
    code = await host.finish(stop)
    if host.invoker.running:
        # Threads of abandoned functions cannot be ended, and the interpreter would wait for them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _stop_or_kill(stop: asyncio.Event) -> None:
    if stop.is_set():
        log_event("host.killed", level=logging.WARNING)
        sys.stderr.flush()
        os._exit(KILLED_EXIT_CODE)
    stop.set()


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m local.functions_host",
        description="Host an Azure Functions Python v2 app. Prints one JSON line when ready, logs JSON lines to "
        "stderr. SIGTERM or SIGINT drains; a second one ends at once.",
    )
    parser.add_argument("--app", type=Path, required=True, help="directory with function_app.py and host.json")
    parser.add_argument("--port", type=int, default=0, help="HTTP port on 127.0.0.1; 0 takes a free one")
    parser.add_argument(
        "--lease-seconds",
        type=_lease_seconds,
        default=os.environ.get("FUNCTIONS_HOST_LEASE_SECONDS", "600"),
        help="how long a received message is hidden (the real host: always 600); a killed host's messages come back "
        "after that long; also FUNCTIONS_HOST_LEASE_SECONDS",
    )
    parser.add_argument(
        "--function-key",
        default=os.environ.get("FUNCTIONS_HOST_KEY", ""),
        help="key of HTTP functions that are not anonymous; also FUNCTIONS_HOST_KEY, which keeps it out of `ps`",
    )
    parser.add_argument("--only", nargs="+", action="extend", metavar="FN", help="host these functions only")
    parser.add_argument("--ready-file", type=Path, help="also write the ready line to this file")
    parser.add_argument("--verbose", action="store_true", help="log every poll and wait")
    return parser.parse_args()


def _lease_seconds(text: str) -> int:
    seconds = int(text)
    if not 1 <= seconds <= 604_800:
        raise argparse.ArgumentTypeError("must be from 1 to 604800 seconds")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
