"""Shows what the stack's programs write, each line with the program's name in front."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


class LogFollower:
    """Passes on what has been added to the `*.log` files of a folder since the last call."""

    def __init__(self, folder: Path, write_line: Callable[[str], None]) -> None:
        self._folder = folder
        self._write_line = write_line
        self._read_bytes: dict[Path, int] = {}

    def poll(self) -> None:
        """Whole lines only; a line that is being written waits for the next call."""
        for path in sorted(self._folder.glob("*.log")):
            with path.open("rb") as log:
                log.seek(self._read_bytes.get(path, 0))
                whole, newline, _ = log.read().rpartition(b"\n")
            self._read_bytes[path] = self._read_bytes.get(path, 0) + len(whole) + len(newline)
            for line in whole.decode(errors="replace").splitlines():
                self._write_line(f"{path.stem:16} | {line}")
