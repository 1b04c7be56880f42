"""Old entries of the worker's container: deleted when their time is over, a bounded share of each kind in each run."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from shared.errors import WorkerError
from shared.storage.blob_container import Version

log = structlog.get_logger(__name__)

#: Ends and cancels: 7 days for a message, 7 for its poison copy, 1 to spare. Rejected messages: for an operator.
KEPT = {"done/": timedelta(days=15), "rejected/": timedelta(days=30)}
#: For each of these, in one run. With a run every ten minutes the deletions suffice for 40,000 entries a day.
MOST_DELETIONS = 300
MOST_SECONDS = 10
_MOST_REMEMBERED = 10_000


class OldBlobs(Protocol):
    """The worker's container, as far as old entries go."""

    def page(self, prefix: str, token: str | None) -> tuple[list[tuple[str, Version]], str | None]:
        """Blobs below `prefix` in name order, up to 5,000, and the token of the next page."""

    def delete(self, name: str, etag: str) -> None:
        """Delete exactly this version. Raises Conflict."""


class OldEntries:
    """Remembers, in this process only, where a list that was too long for one run was left, and what it has told."""

    def __init__(self, blobs: OldBlobs, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._blobs = blobs
        self._monotonic_seconds = monotonic_seconds
        self._left_at: dict[str, tuple[str | None, str]] = {}
        self._told: set[str] = set()

    def expire(self, now: datetime) -> None:
        """One run. Neither an entry that cannot be deleted nor a list that cannot be read keeps another from going."""
        for prefix, kept in KEPT.items():
            refused: dict[str, WorkerError] = {}
            try:
                self._expire(prefix, now - kept, refused)
            except WorkerError as error:
                log.error("old entries not listed", prefix=prefix, error=str(error))
            self._tell(prefix, refused)

    def _expire(self, prefix: str, before: datetime, refused: dict[str, WorkerError]) -> None:
        until = self._monotonic_seconds() + MOST_SECONDS
        token, done_to = self._left_at.pop(prefix, (None, ""))
        tried = 0
        while True:
            entries, next_token = self._blobs.page(prefix, token)
            for name, version in entries:
                if name <= done_to or version.written_at >= before:
                    continue
                if tried == MOST_DELETIONS or self._monotonic_seconds() > until:
                    self._left_at[prefix] = token, done_to
                    return
                tried, done_to = tried + 1, name
                try:
                    self._blobs.delete(name, version)
                except WorkerError as error:
                    refused[name] = error
            if next_token is None:
                return
            token = next_token
            if self._monotonic_seconds() > until:
                self._left_at[prefix] = token, done_to
                return

    def _tell(self, prefix: str, refused: dict[str, WorkerError]) -> None:
        """Once of each: a legal hold lasts, and a lease may."""
        new = [name for name in refused if name not in self._told]
        if len(self._told) >= _MOST_REMEMBERED:
            self._told.clear()
        self._told.update(new)
        if new:
            error = str(refused[new[0]])
            log.error("old entries that cannot be deleted", prefix=prefix, first=new[0], count=len(new), error=error)
