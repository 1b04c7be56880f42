"""Writing HASTE's records: read with ETag, change owned fields only, write with If-Match, never over a newer run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from shared.errors import Conflict, Transient
from shared.haste import records
from shared.haste.workload import Change, JsonObject, Shown, Workload
from shared.kinds import Entity, Kind
from shared.ledger.port import Ledger
from shared.protocol.record import Done, Record
from shared.protocol.showing import end_to_show, may_show_end, may_show_progress

log = structlog.get_logger(__name__)

_MOST_TRIES = 6
_NOT_STARTED = frozenset({"Queued"})


class RecordBlobs(Protocol):
    """HASTE's container, as far as conditional writes go."""

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        """Content and ETag; None if the blob does not exist."""

    def replace(self, name: str, content: bytes, etag: str) -> str:
        """Write over exactly this version. Raises Conflict."""


class HasteRecords:
    """The HASTE records that show our work."""

    def __init__(self, blobs: RecordBlobs, ledger: Ledger, workloads: Mapping[Kind, Workload]) -> None:
        self._blobs = blobs
        self._ledger = ledger
        self._workloads = workloads

    def shown(self, entity: Entity) -> Shown | None:
        """What HASTE's record says now; None if there is no record."""
        workload = self._workloads[entity.kind]
        found = self._read(workload.record_name(entity))
        return None if found is None else workload.shown(found[0])

    def show_progress(self, record: Record, change: Change) -> bool:
        """Write the progress of a live record, unless a newer run, a cancel or its own end stands there."""

        def decide(done: tuple[Done, ...], shown: Shown) -> Change | None:
            return change if may_show_progress(record, done, shown) else None

        return self._patch(record.entity, decide)

    def show_end(self, entity: Entity, record: Record | None) -> bool:
        """Write the end of the newest request that has one. `record` = the one that is finishing, if any."""
        workload = self._workloads[entity.kind]

        def decide(done: tuple[Done, ...], shown: Shown) -> Change | None:
            end = end_to_show(record, done)
            if end is None or not may_show_end(end, shown):
                return None
            return workload.finished(end.run, end.outcome)

        return self._patch(entity, decide)

    def show_failure(self, entity: Entity, change: Change) -> bool:
        """Write the failure of a request that never became a job, unless something else is shown by now."""
        return self._patch(entity, lambda _done, shown: change if shown.status in _NOT_STARTED else None)

    def _patch(self, entity: Entity, decide: Callable[[tuple[Done, ...], Shown], Change | None]) -> bool:
        """`decide` is asked again with fresh readings (ends first, then HASTE's record) whenever the write is lost."""
        workload = self._workloads[entity.kind]
        name = workload.record_name(entity)
        for _ in range(_MOST_TRIES):
            done = self._ledger.done(entity)
            found = self._read(name)
            if found is None:
                return False
            record = found[0]
            change = decide(done, workload.shown(record))
            changed = record if change is None else change(copy.deepcopy(record))
            if changed == record:
                return False
            try:
                self._blobs.replace(name, records.dump(changed), found[1])
                return True
            except Conflict:
                continue
        raise Transient(f"{name} is written by others all the time")

    def _read(self, name: str) -> tuple[JsonObject, str] | None:
        """The record and its version. One that cannot be read as a record is left alone, and told to an operator."""
        found = self._blobs.read_with_etag(name)
        if found is None:
            return None
        try:
            return records.parse(found[0]), found[1]
        except ValueError:
            log.error("HASTE's record is not a JSON object", name=name)
            return None
