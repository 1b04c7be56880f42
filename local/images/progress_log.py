"""HASTE's progress logs: one ``<timestamp>|<text>`` line per step, read by the worker while the task runs."""

from datetime import UTC, datetime
from pathlib import Path


class ProgressLog:
    """Appends lines to a log under ``logs/``; each line is on disk when :meth:`add` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, text: str) -> None:
        """Append ``text`` with a UTC timestamp of microseconds, e.g. ``2026-08-12T09:02:00.123456+00:00|text``."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = f"{datetime.now(UTC).isoformat(timespec='microseconds')}|{text}\n"
        with self._path.open("a", encoding="utf-8") as log:
            log.write(line)
        print(line, end="", flush=True)
