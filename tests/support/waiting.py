"""What the tests of the stack look at from outside: conditions that come true, and processes that live."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

DEADLINE_SECONDS = 60.0


def until(condition: Callable[[], object]) -> bool:
    """Whether `condition` comes true before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(condition())


def processes_naming(folder: Path) -> list[str]:
    """Command lines of other processes that name `folder`: each program of a stack is given one of its files."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:  # it has ended meanwhile
            continue
        if str(folder) in line and int(process.name) != os.getpid():
            found.append(line)
    return found


def heed_interrupts() -> None:
    """For a child before it begins: whoever starts the tests in the background of a shell has SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
