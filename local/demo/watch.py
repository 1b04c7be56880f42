"""Watches what was asked for: HASTE's records, the table on the screen, and waiting for something to come true."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from local.demo.emulator import Emulator
from local.demo.evidence import STATUS_FIELDS, Record, Request
from local.demo.rows import Row, row, with_short_names
from local.demo.storage import Storage
from local.demo.table import Screen

PROCESSED = "Processed"
_POLL_SECONDS = 0.5
_BROKEN_OFF = ("Failed", "Cancelled")


class TroubleError(Exception):
    """The story does not go on: something took too long, or failed. The message says what."""


class Watch:
    """`requests` and `record` tell how far everything came, whatever becomes of it."""

    def __init__(
        self,
        storage: Storage,
        emulator: Emulator,
        screen: Screen,
        each_look: Callable[[], None],
        step_seconds: float,
        short_names: Mapping[str, str],
    ) -> None:
        self.requests: list[Request] = []
        self._storage = storage
        self._emulator = emulator
        self._screen = screen
        self._each_look = each_look
        self._step_seconds = step_seconds
        self._short_names = short_names
        self._records: dict[str, Record] = {}
        self._rows: dict[int, Row] = {}

    def note(self, kind: str, about: Record, title: str = "", *, follows: bool = False) -> int:
        """A request that is made now, about a layer or a model; returns its place in `requests`."""
        entity_id = about["imageLayerId"] if kind == "imageryprep" else about["modelId"]
        request = Request(kind, about["projectId"], entity_id, follows, datetime.now(UTC), title=title)
        self.requests.append(request)
        self._records.setdefault(request.blob_name, about)
        return len(self.requests) - 1

    def say(self, line: str) -> None:
        """One line about what happens beside the requests."""
        self._screen.say(line)

    def record(self, number: int) -> Record:
        """HASTE's record of a request, as it was last seen."""
        return self._records[self.requests[number].blob_name]

    def records(self, kind: str) -> tuple[Record, ...]:
        """HASTE's records of all requests of a kind."""
        return tuple(self.record(number) for number, request in enumerate(self.requests) if request.kind == kind)

    def until_processed(self, number: int) -> None:
        """Raises TroubleError."""
        self.until(
            f"{self.requests[number].kind} to be {PROCESSED}", lambda: self.requests[number].shown_at is not None
        )

    def until(self, what: str, condition: Callable[[], object]) -> None:
        """Look again and again. Raises TroubleError when it takes too long, or when a request has failed."""
        deadline = time.monotonic() + self._step_seconds
        while True:
            self.refresh()
            self._refuse_failures()
            if condition():
                return
            if time.monotonic() > deadline:
                raise TroubleError(f"waited {self._step_seconds:g} s in vain for {what}")
            time.sleep(_POLL_SECONDS)

    def refresh(self) -> None:
        """Read HASTE's records anew and show how everything stands."""
        for name, known in self._records.items():
            self._records[name] = self._storage.record(name) or known
        live, events = self._storage.live_records(), self._emulator.events()
        for number, request in enumerate(self.requests):
            shown = row(request, self._rows.get(number), self.record(number), live, events)
            self._rows[number] = with_short_names(shown, self._short_names)
            if request.shown_at is None and self._status(number) == PROCESSED:
                self.requests[number] = replace(request, shown_at=datetime.now(UTC))
        self._screen.show(list(self._rows.values()))
        self._each_look()

    def _refuse_failures(self) -> None:
        for number, request in enumerate(self.requests):
            if request.shown_at is None and self._status(number) in _BROKEN_OFF:
                raise TroubleError(f"{request.kind} is {self._status(number)}")

    def _status(self, number: int) -> object:
        return self.record(number).get(STATUS_FIELDS[self.requests[number].kind])
