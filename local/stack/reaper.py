"""Kills what a local stack leaves behind, however its supervisor ended.

Runs as a program of its own (`python reaper.py MARK`), holding one end of a pipe. The supervisor writes `+GROUP` for
each process group that it starts and `-GROUP` for each that it has stopped. When the pipe closes - an orderly stop, a
crash and SIGKILL all close it - every group still noted is killed. Programs that left their group (the Batch emulator
starts its tasks in groups of their own) are found by the mark in their environment, where the system has `/proc`.

Only the standard library, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

MARK_VARIABLE = "HASTE_LOCAL_STACK"


def main(arguments: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        (groups.add if line.startswith("+") else groups.discard)(group)
    kill_groups(groups)
    kill_marked(arguments[0])
    return 0


def kill_groups(groups: Iterable[int]) -> None:
    """SIGKILL to every process of the groups; a group that is gone is fine."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def kill_marked(mark: str) -> None:
    """SIGKILL to every process that carries `mark`, again until none is left that could start another."""
    while pids := marked_pids(mark):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def marked_pids(mark: str) -> list[int]:
    """Living processes with `mark` in their environment; empty where the system has no `/proc`."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or belongs to someone else
            continue
        if wanted in variables:
            found.append(int(folder.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
