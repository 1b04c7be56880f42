"""Notes about pools in memory, for tests; they pass the same contract tests as those in blob storage."""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import Conflict
from shared.ledger.pool_notes import PoolNotes


class MemoryNotes:
    """See `NotesStore`."""

    def __init__(self) -> None:
        self._notes = PoolNotes()

    def read(self) -> PoolNotes:
        """See `NotesStore.read`."""
        return self._notes

    def update(self, change: Callable[[PoolNotes], PoolNotes]) -> PoolNotes:
        """See `NotesStore.update`."""
        for _ in range(5):
            before = self._notes
            after = change(before)
            if after == before:
                return after
            if self._notes is before:
                self._notes = after
                return after
        raise Conflict("the notes are written by others all the time")
