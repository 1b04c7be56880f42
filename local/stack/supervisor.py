"""Starts the programs of the local stack, waits until each is ready, and stops them all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from local.stack import reaper

READY_SECONDS = 30.0
STOP_SECONDS = 5.0
_POLL_SECONDS = 0.02
_TAIL_LINES = 15
_TAIL_CHARACTERS = 400
_PROJECT_FOLDER = Path(__file__).resolve().parents[2]

T = TypeVar("T")


class StackError(Exception):
    """The local stack cannot run; the message says why and what to do."""


class Child:
    """One program in a process group of its own, its output in `log`."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, log_start_bytes: int) -> None:
        self.name = name
        self.pid = process.pid
        self.log = log
        self._process = process
        self._log_start_bytes = log_start_bytes

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number when a signal ended it."""
        return self._process.poll()

    def output(self) -> str:
        """What it has written since this start (an earlier start of the same name is in the same log)."""
        return self.log.read_bytes()[self._log_start_bytes :].decode(errors="replace")

    def tail(self) -> str:
        """Its last lines, shortened: an error's long ones are in the log."""
        return "\n".join(line[:_TAIL_CHARACTERS] for line in self.output().splitlines()[-_TAIL_LINES:])

    def signal_group(self, number: signal.Signals) -> None:
        # The group outlives its leader while a grandchild lives, so the leader's state is no guide here.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def wait(self, seconds: float) -> int | None:
        """Its exit code, or None when it still runs after `seconds`."""
        deadline = time.monotonic() + seconds
        while (code := self.exit_code) is None and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
        return code


class Supervisor:
    """All children of one stack.

    Without a call of `stop` the reaper (see there) kills them as soon as this process ends.
    """

    def __init__(self, log_folder: Path) -> None:
        log_folder.mkdir(parents=True, exist_ok=True)
        self.mark = uuid.uuid4().hex
        self._log_folder = log_folder
        self._children: list[Child] = []
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, self.mark],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def children(self) -> tuple[Child, ...]:
        """What was started and not stopped, oldest first; some may have ended by themselves."""
        return tuple(self._children)

    def spawn(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        """Start `command` with `environment`, and nothing else in its environment; does not wait."""
        log = self._log_folder / f"{name}.log"
        with log.open("ab") as output:
            start_bytes = output.tell()
            process = subprocess.Popen(
                command,
                cwd=_PROJECT_FOLDER,  # so that `python -m local...` finds its module
                env={**environment, reaper.MARK_VARIABLE: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._tell_reaper(f"+{process.pid}")
        child = Child(name, process, log, start_bytes)
        self._children.append(child)
        return child

    async def until_ready(self, child: Child, ready: Callable[[Child], T | None], seconds: float = READY_SECONDS) -> T:
        """What `ready` answers as soon as that is not None.

        Raises StackError when the child ends before that or `seconds` pass; the end of its log is in the message.
        """
        deadline = time.monotonic() + seconds
        while True:
            ended = child.exit_code
            answer = ready(child)
            if answer is not None:
                return answer
            if ended is not None:
                raise StackError(f"{child.name} ended with code {ended} before it was ready; {_log_part(child)}")
            if time.monotonic() > deadline:
                raise StackError(f"{child.name} was not ready after {seconds:g} s; {_log_part(child)}")
            await asyncio.sleep(_POLL_SECONDS)

    async def stop_child(self, child: Child) -> None:
        """SIGTERM, then, after STOP_SECONDS, SIGKILL for what is left of its group."""
        child.signal_group(signal.SIGTERM)
        await child.wait(STOP_SECONDS)
        await self.kill_child(child)

    async def kill_child(self, child: Child) -> None:
        """SIGKILL to its whole group, at once."""
        child.signal_group(signal.SIGKILL)
        await child.wait(STOP_SECONDS)
        self._tell_reaper(f"-{child.pid}")
        self._children.remove(child)

    async def stop(self) -> None:
        """Stop all children, the last started first, and return when none is left. May be called again."""
        try:
            while self._children:
                await self.stop_child(self._children[-1])
        finally:
            self._end_reaper()

    def _tell_reaper(self, line: str) -> None:
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(f"{line}\n".encode())
        self._reaper.stdin.flush()

    def _end_reaper(self) -> None:
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper.wait()


def _log_part(child: Child) -> str:
    return f"its log {child.log} ends with:\n{child.tail() or '(nothing)'}"
