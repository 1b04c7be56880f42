"""The blob that holds what is remembered about pools, shared by all processes of a tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pydantic import TypeAdapter

from shared.errors import Conflict
from shared.placement.pool_notes import PoolNotes
from shared.storage.blob_container import BlobContainer

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
        found = self._container.read(_NAME)
        return PoolNotes() if found is None else _NOTES.validate_json(found)

    def update(self, change: Callable[[PoolNotes], PoolNotes]) -> PoolNotes:
        """See `NotesStore.update`."""
        for _ in range(_MOST_TRIES):
            found = self._container.read_with_etag(_NAME)
            before = PoolNotes() if found is None else _NOTES.validate_json(found[0])
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
