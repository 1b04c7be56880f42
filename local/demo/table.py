"""Shows the rows: as a live table on a terminal, else as a plain line for each change."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table

from local.demo.rows import Row

_REFRESH_SECONDS = 1.0


class Screen(Protocol):
    """Where the demo shows what it sees."""

    def show(self, rows: Sequence[Row]) -> None:
        """The rows as they are now."""

    def say(self, line: str) -> None:
        """One line about what the demo does."""


@contextmanager
def screen() -> Iterator[Screen]:
    """The screen for this process's standard output."""
    if not sys.stdout.isatty():
        yield PlainLines()
        return
    console = Console()
    with Live(console=console, refresh_per_second=1 / _REFRESH_SECONDS, transient=False) as live:
        yield LiveTable(console, live)


class LiveTable:
    """A table that is drawn again once a second; what is said stays above it."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live

    def show(self, rows: Sequence[Row]) -> None:
        """See `Screen.show`."""
        self._live.update(table(rows))

    def say(self, line: str) -> None:
        """See `Screen.say`."""
        self._console.print(line, highlight=False, markup=False)


class PlainLines:
    """A line for each row that has changed."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], Row] = {}
        self._began = time.monotonic()

    def show(self, rows: Sequence[Row]) -> None:
        """See `Screen.show`."""
        for row in rows:
            key = (row.work, row.entity_id)
            if self._shown.get(key) != row:
                self._shown[key] = row
                self.say(
                    f"{row.work:22} {row.state:10} {row.pool:10} attempt {row.attempt} "
                    f"{row.progress_percent:6.2f} %  {row.reason}"
                )

    def say(self, line: str) -> None:
        """See `Screen.say`."""
        print(f"{time.monotonic() - self._began:6.1f} s  {line}", flush=True)


def table(rows: Sequence[Row]) -> Table:
    """The rows as a table."""
    drawn = Table(expand=True)
    for heading in ("work", "state", "pool"):
        drawn.add_column(heading, no_wrap=True)
    for heading in ("attempt", "progress"):
        drawn.add_column(heading, justify="right")
    drawn.add_column("reason", ratio=1)
    for row in rows:
        drawn.add_row(row.work, row.state, row.pool, str(row.attempt), f"{row.progress_percent:.0f} %", row.reason)
    return drawn
