"""HASTE's blobs as one message needs them: what was read or listed once is not asked for again.

Checking a request, placing it, preparing its task and showing it all start from the same few records. Within the few
seconds of one message they are read once; whoever writes on such a reading does so under its ETag, and a write that is
lost forgets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from shared.storage.blob_container import BlobContainer, Version


@dataclass
class _Memory:
    blobs: dict[str, tuple[bytes, Version]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)


_memory: ContextVar[_Memory | None] = ContextVar("what was read", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """What `HasteContainer` reads inside is read once, by this thread of work alone."""
    token = _memory.set(_Memory())
    try:
        yield
    finally:
        _memory.reset(token)


class HasteContainer(BlobContainer):
    """HASTE's container. Outside of `reading_once` it is like any other; what is not there is always looked for."""

    def read_with_etag(self, name: str) -> tuple[bytes, Version] | None:
        """See `BlobContainer.read_with_etag`."""
        memory = _memory.get()
        if memory is None:
            return super().read_with_etag(name)
        found = memory.blobs.get(name) or super().read_with_etag(name)
        if found is not None:
            memory.blobs[name] = found
        return found

    def names(self, prefix: str) -> list[str]:
        """See `BlobContainer.names`."""
        memory = _memory.get()
        if memory is None:
            return super().names(prefix)
        found = memory.lists.get(prefix) or super().names(prefix)
        memory.lists[prefix] = found
        return list(found)

    def write(self, name: str, content: bytes) -> None:
        """See `BlobContainer.write`."""
        self._forget(name)
        super().write(name, content)

    def create_with_etag(self, name: str, content: bytes, metadata: Mapping[str, str] | None = None) -> Version | None:
        """See `BlobContainer.create_with_etag`."""
        self._forget(name)
        return super().create_with_etag(name, content, metadata)

    def replace(self, name: str, content: bytes, etag: str, metadata: Mapping[str, str] | None = None) -> Version:
        """See `BlobContainer.replace`."""
        self._forget(name)
        return super().replace(name, content, etag, metadata)

    def delete(self, name: str, etag: str) -> None:
        """See `BlobContainer.delete`."""
        self._forget(name)
        super().delete(name, etag)

    def _forget(self, name: str) -> None:
        memory = _memory.get()
        if memory is not None:
            memory.blobs.pop(name, None)
            memory.lists = {prefix: found for prefix, found in memory.lists.items() if not name.startswith(prefix)}
