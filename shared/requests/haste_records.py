"""Writing HASTE's records: read with ETag, change owned fields only, write with If-Match, never over a newer run."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from shared.errors import Conflict, NotThere, Transient
from shared.haste import records
from shared.haste.status_fields import QUEUED
from shared.haste.visibility import Written, end_to_show, may_show_end, may_show_progress, progress_needs_ends
from shared.haste.workload import Change, JsonObject, Shown, Workload
from shared.kinds import Entity, Kind
from shared.ledger.port import Ledger
from shared.protocol.record import Done, Record

log = structlog.get_logger(__name__)

_MOST_TRIES = 6
_MOST_REMEMBERED = 500
_NOT_STARTED = frozenset({QUEUED})

#: HASTE's record with its ETag.
Found = tuple[JsonObject, str]
#: Ends, then HASTE's record (None = it cannot be read). Raises NotThere without a record.
Reading = Callable[[], tuple[tuple[Done, ...], Found | None]]
Decision = Callable[[tuple[Done, ...], Shown], Change | None]


class RecordBlobs(Protocol):
    """HASTE's container, as far as conditional writes go."""

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        """Content and ETag; None if the blob does not exist."""

    def create(self, name: str, content: bytes) -> bool:
        """Create; False (and nothing changed) if it exists."""

    def replace(self, name: str, content: bytes, etag: str) -> str:
        """Write over exactly this version. Raises Conflict."""


class HasteRecords:
    """The HASTE records that show our work.

    What progress was written last is remembered with its ETag. So the next progress is one conditional write; it is
    lost if somebody else has written since, and HASTE's record is read then.
    """

    def __init__(self, blobs: RecordBlobs, ledger: Ledger, workloads: Mapping[Kind, Workload]) -> None:
        self._blobs = blobs
        self._ledger = ledger
        self._workloads = workloads
        self._written: dict[str, Found] = {}

    def shown(self, entity: Entity) -> Shown | None:
        """What HASTE's record says now; None if there is no record."""
        workload = self._workloads[entity.kind]
        with contextlib.suppress(NotThere):
            found = self._read(workload.record_name(entity))
            return None if found is None else workload.shown(found[0])
        return None

    def is_gone(self, entity: Entity) -> bool:
        """There is no record, readable or not."""
        return self._blobs.read_with_etag(self._workloads[entity.kind].record_name(entity)) is None

    def show_progress(self, record: Record, change: Change) -> Written:
        """Write the progress of a live record, unless a newer run, a cancel or its own end stands there."""
        workload = self._workloads[record.entity.kind]
        name = workload.record_name(record.entity)

        def decide(done: tuple[Done, ...], shown: Shown) -> Change | None:
            return change if may_show_progress(record, done, shown) else None

        def needs_ends(found: Found) -> bool:
            return progress_needs_ends(record, workload.shown(found[0]))

        def read() -> tuple[tuple[Done, ...], Found | None]:
            found = self._read(name)
            if found is None or not needs_ends(found):
                return (), found
            return self._ledger.done(record.entity), self._read(name)

        try:
            written = self._on_remembered(record, name, needs_ends, decide) or self._patch(record.entity, read, decide)
        except NotThere:
            return Written.GONE
        if written is None:
            return Written.NOT
        self._remember(name, written)
        return Written.DONE

    def show_end(self, entity: Entity, record: Record | None) -> Written:
        """Write the end of the newest request that has one. `record` = the one that is finishing, if any."""
        workload = self._workloads[entity.kind]

        def decide(done: tuple[Done, ...], shown: Shown) -> Change | None:
            end = end_to_show(record, done)
            if end is None or not may_show_end(end, shown):
                return None
            is_first = end.is_mine and record is not None and not record.end_was_shown
            return workload.finished(end.run, end.outcome, shown_before=not is_first)

        name = workload.record_name(entity)
        return self._patched(entity, lambda: (self._ledger.done(entity), self._read(name)), decide)

    def show_failure(self, entity: Entity, change: Change) -> bool:
        """Write the failure of a request that never became a job, unless something else is shown by now."""

        def decide(_done: tuple[Done, ...], shown: Shown) -> Change | None:
            return change if shown.status in _NOT_STARTED else None

        name = self._workloads[entity.kind].record_name(entity)
        return self._patched(entity, lambda: ((), self._read(name)), decide) is Written.DONE

    def put(self, name: str, change: Callable[[JsonObject | None], JsonObject]) -> JsonObject:
        """Write a record that need not be there yet (None), or that cannot be read; what stands there now."""
        for _ in range(_MOST_TRIES):
            found = self._blobs.read_with_etag(name)
            before = None if found is None else _parsed(found[0])
            after = change(copy.deepcopy(before))
            if after == before:
                return after
            if found is None:
                if self._blobs.create(name, records.dump(after)):
                    return after
                continue
            with contextlib.suppress(Conflict):
                self._blobs.replace(name, records.dump(after), found[1])
                return after
        raise Transient(f"HASTE's record {name} is written by others all the time")

    def _on_remembered(
        self, record: Record, name: str, needs_ends: Callable[[Found], bool], decide: Decision
    ) -> Found | None:
        """None if nothing is remembered, or nothing is to be written on it, or somebody else has written since."""
        remembered = self._written.pop(name, None)
        if remembered is None or needs_ends(remembered):
            return None
        with contextlib.suppress(Conflict):
            return self._write(record.entity, remembered, (), decide)
        return None

    def _patched(self, entity: Entity, read: Reading, decide: Decision) -> Written:
        try:
            written = self._patch(entity, read, decide)
        except NotThere:
            return Written.GONE
        return Written.NOT if written is None else Written.DONE

    def _patch(self, entity: Entity, read: Reading, decide: Decision) -> Found | None:
        """What was written; None if nothing had to be. Raises NotThere without a record.

        After a lost write both are asked again (ends, then record).
        """
        for _ in range(_MOST_TRIES):
            done, found = read()
            if found is None:
                return None
            try:
                return self._write(entity, found, done, decide)
            except Conflict:
                continue
        raise Transient(f"{entity.kind} {entity.entity_id}: HASTE's record is written by others all the time")

    def _write(self, entity: Entity, found: Found, done: tuple[Done, ...], decide: Decision) -> Found | None:
        """Raises Conflict if `found` is not HASTE's record any more."""
        workload = self._workloads[entity.kind]
        record, etag = found
        change = decide(done, workload.shown(record))
        changed = record if change is None else change(copy.deepcopy(record))
        if changed == record:
            return None
        return changed, self._blobs.replace(workload.record_name(entity), records.dump(changed), etag)

    def _remember(self, name: str, written: Found) -> None:
        if len(self._written) >= _MOST_REMEMBERED:
            self._written.clear()
        self._written[name] = written

    def _read(self, name: str) -> Found | None:
        """The record and its version. One that cannot be read as a record is left alone, and told to an operator.

        Raises NotThere without one.
        """
        found = self._blobs.read_with_etag(name)
        if found is None:
            raise NotThere(name)
        record = _parsed(found[0])
        if record is None:
            log.error("HASTE's record is not a JSON object", name=name)
            return None
        return record, found[1]


def _parsed(content: bytes) -> JsonObject | None:
    try:
        return records.parse(content)
    except ValueError:
        return None
