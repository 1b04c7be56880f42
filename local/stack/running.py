"""The stack that `up` leaves running: one per project folder, found again through a state file and a lock."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from local.stack.supervisor import StackError

DOWN_SECONDS = 30.0
ALREADY_UP = "a stack is up already; see `status`, or take it down with `down`"
_POLL_SECONDS = 0.05


class RunningStack:
    """The folder of one `up`. Its process holds the lock, and has its id in the lock file, for as long as it lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state_file = folder / "state.json"
        self._lock_file = folder / "lock"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Be the one stack of this folder; raises StackError when another one is. Its state is gone afterwards."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock_file.open("a") as lock:
            if not _try_lock(lock, fcntl.LOCK_EX):
                raise StackError(ALREADY_UP)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            self._state_file.unlink(missing_ok=True)
            try:
                yield
            finally:
                self._state_file.unlink(missing_ok=True)

    def publish(self, description: Mapping[str, Any]) -> None:
        """Write the state for `status` and `run`: it holds the local keys, so only its owner may read it."""
        part = self._state_file.with_suffix(".part")
        part.touch(mode=0o600)
        part.write_text(json.dumps(description, indent=2), encoding="utf-8")
        part.replace(self._state_file)

    def state(self) -> dict[str, Any] | None:
        """What the running stack has published; None when none is up, or it is not ready yet."""
        if not self.is_up():
            return None
        try:
            state: dict[str, Any] = json.loads(self._state_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return state

    def is_up(self) -> bool:
        """Whether an `up` holds the folder, ready or not."""
        if not self._lock_file.exists():
            return False
        with self._lock_file.open() as lock:
            return not _try_lock(lock, fcntl.LOCK_SH)

    def stop(self) -> bool:
        """Take the stack down and wait until it is gone; False when none was up."""
        if not self.is_up():
            return False
        pid = int(self._lock_file.read_text())
        # A process that holds the lock wrote the id, so the id is not somebody else's.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            deadline = time.monotonic() + DOWN_SECONDS
            while self.is_up() and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            if not self.is_up():
                return True
        raise StackError(f"process {pid} of the stack does not end")


def _try_lock(lock: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
