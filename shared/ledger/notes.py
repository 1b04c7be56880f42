"""The blob that holds what is remembered about pools, shared by all processes of a tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import structlog
from pydantic import TypeAdapter, ValidationError

from shared.errors import Conflict
from shared.ledger.checked_times import has_naive_time
from shared.ledger.pool_notes import PoolNotes
from shared.storage.blob_container import BlobContainer

log = structlog.get_logger(__name__)

_NAME = "pools.json"
_NOTES = TypeAdapter(PoolNotes)
_MOST_TRIES = 5


class NotesStore(Protocol):
    """Notes about pools."""

    def read(self) -> PoolNotes:
        """What is remembered now."""

    def update(self, change: Callable[[PoolNotes], PoolNotes]) -> PoolNotes:
        """Apply a change to the newest notes; written only if it changes something. Raises Conflict."""


class BlobNotes:
    """`NotesStore` in the worker's container."""

    def __init__(self, container: BlobContainer) -> None:
        self._container = container

    def read(self) -> PoolNotes:
        """See `NotesStore.read`."""
        return _parsed(self._container.read(_NAME))

    def update(self, change: Callable[[PoolNotes], PoolNotes]) -> PoolNotes:
        """See `NotesStore.update`."""
        for _ in range(_MOST_TRIES):
            found = self._container.read_with_etag(_NAME)
            before = _parsed(found[0] if found is not None else None)
            after = change(before)
            if after == before:
                return after
            try:
                if found is not None:
                    self._container.replace(_NAME, _NOTES.dump_json(after), found[1])
                    return after
                if self._container.create(_NAME, _NOTES.dump_json(after)):
                    return after
            except Conflict:
                continue
        raise Conflict(f"{_NAME} is written by others all the time")


def _parsed(content: bytes | None) -> PoolNotes:
    """What cannot be read is forgotten: cool-downs are found out again, and no job may stand still for them."""
    if content is None:
        return PoolNotes()
    try:
        notes = _NOTES.validate_json(content)
    except ValidationError:
        log.exception("notes about pools are not readable: forgotten")
        return PoolNotes()
    if has_naive_time(notes):
        log.error("notes about pools are not readable: forgotten", error="a time in them has no time zone")
        return PoolNotes()
    return notes
