"""`python -m local.stack up|down|status|run`: everything that the worker needs, on this machine."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from local.stack.azurite import USUAL_PORTS
from local.stack.environment import child_environment
from local.stack.follow import LogFollower
from local.stack.report import report
from local.stack.running import ALREADY_UP, RunningStack
from local.stack.stack import Stack, StackOptions, describe
from local.stack.supervisor import Child, StackError
from local.stack.world import DEFAULT_TASK_SECONDS, default_world

PROJECT_FOLDER = Path(__file__).resolve().parents[2]
UP_SECONDS = 120.0
_POLL_SECONDS = 0.2


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    running = RunningStack(options.folder.resolve())
    try:
        code: int = options.command(options, running)
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    return code


def up(options: argparse.Namespace, running: RunningStack) -> int:
    """Start the stack. Ctrl-C stops it, or `down` after --detach."""
    if options.detach:
        return _detach(running)
    with running.held():
        run_folder = running.folder / "run"
        shutil.rmtree(run_folder, ignore_errors=True)
        asyncio.run(_serve(_stack_options(options, run_folder), running))
    return 0


def down(_options: argparse.Namespace, running: RunningStack) -> int:
    """Stop the stack that is up, and whatever it started."""
    print("The local stack is down." if running.stop() else "No local stack was up.")
    return 0


def status(options: argparse.Namespace, running: RunningStack) -> int:
    """Say what is up. Exit code 1 when nothing is."""
    state = running.state()
    if state is None:
        print("No local stack is up.")
        return 1
    print(json.dumps(state, indent=2) if options.json else report(state))
    return 0


def run(options: argparse.Namespace, running: RunningStack) -> int:
    """Run a program with a tenant's app settings, and with trust in the local services."""
    state = running.state()
    if state is None:
        raise StackError("no local stack is up; start it with `up`")
    tenant = options.tenant or next(iter(state["settings"]))
    if tenant not in state["settings"]:
        raise StackError(f"there is no tenant {tenant}; there are {', '.join(state['settings'])}")
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise StackError("say what to run, for example: run -- python -m local.producer layer")
    if program[0] == "python":  # this very one, whether or not its virtual environment is activated
        program = [sys.executable, *program[1:]]
    environment = child_environment(state["trust"], state["settings"][tenant])
    os.execvpe(program[0], program, environment)  # noqa: S606 - the program that was asked for


async def _serve(options: StackOptions, running: RunningStack) -> None:
    """The stack until SIGINT or SIGTERM. A signal during the start cancels the start."""
    stopped = asyncio.Event()
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        async with Stack(options) as stack:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, stopped.set)
            state = describe(stack)
            running.publish(state)
            print(report(state), flush=True)
            await _watch(stack, stopped)
            print("stopping", flush=True)
    except asyncio.CancelledError:
        print("the start was broken off", file=sys.stderr)


async def _watch(stack: Stack, stopped: asyncio.Event) -> None:
    """Show the logs, and a notice for a program that ends by itself; the others go on."""
    follower = LogFollower(stack.log_folder, lambda line: print(line, flush=True))
    ended: set[Child] = set()
    while not stopped.is_set():
        follower.poll()
        for child in set(stack.supervisor.children) - ended:
            if child.exit_code is not None:
                ended.add(child)
                print(f"{child.name} has ended with code {child.exit_code}; its log is {child.log}", flush=True)
        await asyncio.sleep(_POLL_SECONDS)


def _detach(running: RunningStack) -> int:
    if running.is_up():
        raise StackError(ALREADY_UP)
    running.folder.mkdir(parents=True, exist_ok=True)
    log = running.folder / "up.log"
    command = [sys.executable, "-m", "local.stack", *(word for word in sys.argv[1:] if word != "--detach")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=PROJECT_FOLDER, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    deadline = time.monotonic() + UP_SECONDS
    while (state := running.state()) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            raise StackError(f"the stack did not start; {log} says:\n{log.read_text(encoding='utf-8').strip()}")
        time.sleep(_POLL_SECONDS)
    print(report(state))
    return 0


def _stack_options(options: argparse.Namespace, run_folder: Path) -> StackOptions:
    return StackOptions(
        run_folder=run_folder,
        app_folder=None if options.no_host else options.app.resolve(),
        tenants=tuple(options.tenants.split(",")),
        hosts_per_tenant=options.hosts,
        legacy=options.legacy,
        world=default_world(options.task_seconds),
        data_folder=options.data.resolve() if options.data else None,
        ports=USUAL_PORTS,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.stack", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=PROJECT_FOLDER / ".local" / "up", help="state, logs and files of the stack"
    )
    commands = parser.add_subparsers(required=True)

    start = commands.add_parser("up", help=up.__doc__)
    start.add_argument("--detach", action="store_true", help="return once it is up, and leave it running")
    start.add_argument("--app", type=Path, default=PROJECT_FOLDER, help="folder of the Functions app")
    start.add_argument("--no-host", action="store_true", help="start no functions host, to run one elsewhere")
    start.add_argument("--tenants", default="tenanta", help="comma-separated; each gets a storage account")
    start.add_argument("--hosts", type=int, default=1, help="functions hosts of each tenant")
    start.add_argument("--legacy", action="store_true", help="one pool, the pool's identity, the account key")
    start.add_argument("--data", type=Path, help="keep the storage's data in this folder; else it is in memory")
    start.add_argument("--task-seconds", type=float, default=DEFAULT_TASK_SECONDS, help="added to every task")
    start.set_defaults(command=up)

    commands.add_parser("down", help=down.__doc__).set_defaults(command=down)

    show = commands.add_parser("status", help=status.__doc__)
    show.add_argument("--json", action="store_true", help="everything, for programs")
    show.set_defaults(command=status)

    execute = commands.add_parser("run", help=run.__doc__)
    execute.add_argument("--tenant", help="default: the first one")
    execute.add_argument("program", nargs=argparse.REMAINDER, help="-- program and arguments")
    execute.set_defaults(command=run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
