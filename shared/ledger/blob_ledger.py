"""The ledger in blob storage: `active/<key>.json` and `done/<key>/<entry id>.json` in the worker's container."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from shared.errors import Unreadable
from shared.kinds import Entity
from shared.ledger.port import LiveSummary, Versioned
from shared.protocol.record import Done, Record, State
from shared.storage.blob_container import BlobContainer

log = structlog.get_logger(__name__)

_RECORD = TypeAdapter(Record)
_DONE = TypeAdapter(Done)
_SAFE_ID = re.compile(r"[A-Za-z0-9+_-]{1,100}")
_MOST_REMEMBERED = 1000
_T = TypeVar("_T")


class BlobLedger:
    """Conditional writes by ETag; what a tick needs is blob metadata, so that one list call shows 5,000 records.

    Records that were read or written here are remembered with their ETag: one that is listed unchanged need not be read
    again, however often its progress is looked at.
    """

    def __init__(self, container: BlobContainer) -> None:
        self._container = container
        self._remembered: dict[str, Versioned] = {}

    def read(self, key: str) -> Versioned | None:
        """See `Ledger.read`."""
        found = self._container.read_with_etag(_active(key))
        if found is None:
            return None
        return Versioned(_parsed(_RECORD, found[0], _active(key)), found[1], found[1].written_at)

    def read_listed(self, summary: LiveSummary) -> Versioned | None:
        """See `Ledger.read_listed`."""
        remembered = self._remembered.get(summary.key)
        if remembered is not None and remembered.etag == summary.etag:
            return remembered
        version = self.read(summary.key)
        if version is not None:
            self._remember(version)
        return version

    def create(self, record: Record) -> Versioned | None:
        """See `Ledger.create`."""
        written = self._container.create_with_etag(_active(record.entity.key), _dump(record), _metadata(record))
        return None if written is None else Versioned(record, written, written.written_at)

    def replace(self, version: Versioned, record: Record) -> Versioned:
        """See `Ledger.replace`."""
        name = _active(record.entity.key)
        written = self._container.replace(name, _dump(record), version.etag, _metadata(record))
        replaced = Versioned(record, written, written.written_at)
        self._remember(replaced)
        return replaced

    def remove(self, version: Versioned) -> None:
        """See `Ledger.remove`."""
        self._container.delete(_active(version.record.entity.key), version.etag)

    def live(self) -> Iterator[LiveSummary]:
        """See `Ledger.live`."""
        for name, metadata, version in self._container.list_with_metadata("active/"):
            key = name.removeprefix("active/").removesuffix(".json")
            if "state" not in metadata:
                yield from self._live_by_content(key)
                continue
            yield LiveSummary(
                key=key,
                state=State(metadata["state"]),
                not_before=datetime.fromisoformat(metadata["not_before"]),
                asked=datetime.fromisoformat(metadata["asked"]),
                job_class=metadata["job_class"],
                job_id=metadata.get("job_id"),
                task_id=metadata.get("task_id"),
                pool_id=metadata.get("pool_id"),
                is_unwanted="unwanted" in metadata,
                is_running="running" in metadata,
                has_waited="waited" in metadata,
                is_taken_over="taken_over" in metadata,
                stands_aside="aside" in metadata,
                etag=version,
            )

    def _live_by_content(self, key: str) -> Iterator[LiveSummary]:
        """A record that somebody has put back by hand, without its metadata."""
        try:
            version = self.read(key)
        except Unreadable as error:
            log.error("record not looked at", record=key, error=str(error))
            return
        if version is not None:
            yield LiveSummary.of(version)

    def placed_in(self, job_id: str) -> frozenset[str]:
        """See `Ledger.placed_in`."""
        return frozenset(one.task_id for one in self.live() if one.job_id == job_id and one.task_id is not None)

    def done(self, entity: Entity) -> tuple[Done, ...]:
        """See `Ledger.done`."""
        entries = []
        for name, _metadata_of_entry, _version in self._container.list_with_metadata(f"done/{entity.key}/"):
            content = self._container.read_with_etag(name)
            if content is not None:  # expired between list and read
                entries.append(done_entry(content[0], name))
        return tuple(entries)

    def add_done(self, entity: Entity, entry: Done) -> bool:
        """See `Ledger.add_done`."""
        name = f"done/{entity.key}/{_blob_id(entry)}.json"
        return self._container.create_with_etag(name, _DONE.dump_json(entry), {}) is not None

    def _remember(self, version: Versioned) -> None:
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[version.record.entity.key] = version


def done_entry(content: bytes, name: str) -> Done:
    """An entry below `done/`. Raises Unreadable, naming the blob."""
    return _parsed(_DONE, content, name)


def _parsed(adapter: TypeAdapter[_T], content: bytes, name: str) -> _T:
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "content"
        raise Unreadable(f"{name} cannot be read: {where}: {fault['msg']}") from None


def _active(key: str) -> str:
    return f"active/{key}.json"


def _blob_id(entry: Done) -> str:
    # a cancel and a request never share a name, and an id never shapes a path
    readable = (
        entry.entry_id if _SAFE_ID.fullmatch(entry.entry_id) else hashlib.sha256(entry.entry_id.encode()).hexdigest()
    )
    return f"cancel-{readable}" if entry.is_cancel else readable


def _dump(record: Record) -> bytes:
    return _RECORD.dump_json(record)


def _metadata(record: Record) -> dict[str, str]:
    placed = record.placement
    values = {"state": record.state.value, "not_before": record.not_before.isoformat()}
    if placed is not None:
        values |= {"job_id": placed.job_id, "task_id": placed.task_id, "pool_id": placed.pool_id}
    values |= {"asked": record.request.asked.isoformat(), "job_class": record.entity.kind.job_class}
    if record.is_unwanted:
        values["unwanted"] = "yes"
    if record.is_running:
        values["running"] = "yes"
    if record.waits:
        values["waited"] = "yes"
    if record.is_taken_over:
        values["taken_over"] = "yes"
    if record.stands_aside:
        values["aside"] = "yes"
    return values
