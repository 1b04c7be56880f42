"""The ledger in blob storage: `active/<key>.json` and `done/<key>/<entry id>.json` in the worker's container."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from shared.errors import Unreadable
from shared.kinds import Entity, JobClass, Kind
from shared.ledger.checked_times import has_naive_time
from shared.ledger.port import Listing, LiveSummary, StandsStill, Versioned
from shared.protocol.record import Done, Record, State
from shared.storage.blob_container import BlobContainer

_RECORD = TypeAdapter(Record)
_DONE = TypeAdapter(Done)
_KEY = re.compile(rf"({'|'.join(Kind)})/[0-9a-f]{{32}}")
#: A record in one of these has no task in Batch, or a task that has ended.
_WITHOUT_TASK = (State.WAITING, State.FINISHING)
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
        record = _parsed(_RECORD, found[0], _active(key))
        if record.entity.key != key:
            raise _unreadable(_active(key), "it is another job's")
        return Versioned(record, found[1], found[1].written_at)

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
        record = version.keeping_times(record)
        name = _active(record.entity.key)
        written = self._container.replace(name, _dump(record), version.etag, _metadata(record))
        replaced = Versioned(record, written, written.written_at)
        self._remember(replaced)
        return replaced

    def remove(self, version: Versioned) -> None:
        """See `Ledger.remove`."""
        self._container.delete(_active(version.record.entity.key), version.etag)

    def live(self) -> Listing:
        """See `Ledger.live`."""
        records, standing_still = [], []
        for name, metadata, version in self._container.list_with_metadata("active/"):
            if metadata.get("hdi_isfolder") == "true":  # an account with directories lists them as well
                continue
            key = name.removeprefix("active/").removesuffix(".json")
            try:
                if name != _active(key) or _KEY.fullmatch(key) is None:
                    raise _unreadable(name, "this version knows no job of that name")
                summary = _told(metadata, key, version) if "state" in metadata else self._told_by_content(key)
            except Unreadable as error:
                standing_still.append(_standing_still(key, metadata, str(error)))
            else:
                records += [summary] if summary is not None else []
        return Listing(tuple(records), tuple(standing_still))

    def _told_by_content(self, key: str) -> LiveSummary | None:
        """A record that somebody has put back by hand, without its metadata."""
        version = self.read(key)
        return None if version is None else LiveSummary.of(version)

    def done(self, entity: Entity) -> tuple[Done, ...]:
        """See `Ledger.done`."""
        entries = []
        for name, _metadata_of_entry, _version in self._container.list_with_metadata(f"done/{entity.key}/"):
            content = self._container.read_with_etag(name)
            if content is None:  # expired between list and read
                continue
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


def _told(metadata: Mapping[str, str], key: str, version: str) -> LiveSummary:
    """What the metadata of a live record says. Raises Unreadable if another version, or somebody, has written it."""
    try:
        return LiveSummary(
            key=key,
            state=State(metadata["state"]),
            not_before=_time(metadata["not_before"]),
            asked=_time(metadata["asked"]),
            job_class=JobClass(metadata["job_class"]),
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
    except KeyError as error:
        raise _unreadable(_active(key), f"its metadata lacks {error}, or this version does not know that") from None
    except ValueError as error:
        raise _unreadable(_active(key), f"its metadata: {error}") from None


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at


def _standing_still(key: str, metadata: Mapping[str, str], why: str) -> StandsStill:
    job_id, task_id = metadata.get("job_id"), metadata.get("task_id")
    is_named = bool(job_id and task_id)
    return StandsStill(key, why, job_id, task_id, not is_named and metadata.get("state") not in _WITHOUT_TASK)


def _parsed(adapter: TypeAdapter[_T], content: bytes, name: str) -> _T:
    try:
        value = adapter.validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "content"
        raise _unreadable(name, f"{where}: {fault['msg'].removeprefix('Value error, ')}") from None
    if has_naive_time(value):
        raise _unreadable(name, "a time in it has no time zone")
    return value


def _unreadable(name: str, fault: str) -> Unreadable:
    return Unreadable(f"{name} cannot be read: {fault}")


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
