"""A ledger in memory for tests of the protocol; passes the same contract tests as the blob ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from shared.errors import Conflict
from shared.kinds import Entity
from shared.ledger.port import Listing, LiveSummary, Versioned
from shared.protocol.record import Done, Record


class MemoryLedger:
    """Live records and ends in dictionaries; every write makes a new ETag."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._live: dict[str, Versioned] = {}
        self._done: dict[str, dict[str, Done]] = {}
        self._writes = 0

    def read(self, key: str) -> Versioned | None:
        """See `Ledger.read`."""
        return self._live.get(key)

    def read_listed(self, summary: LiveSummary) -> Versioned | None:
        """See `Ledger.read_listed`."""
        return self.read(summary.key)

    def create(self, record: Record) -> Versioned | None:
        """See `Ledger.create`."""
        return None if record.entity.key in self._live else self._store(record)

    def replace(self, version: Versioned, record: Record) -> Versioned:
        """See `Ledger.replace`."""
        self._held(version)
        return self._store(version.keeping_times(record))

    def remove(self, version: Versioned) -> None:
        """See `Ledger.remove`."""
        self._held(version)
        del self._live[version.record.entity.key]

    def live(self) -> Listing:
        """See `Ledger.live`."""
        return Listing(tuple(LiveSummary.of(version) for _key, version in sorted(self._live.items())))

    def done(self, entity: Entity) -> tuple[Done, ...]:
        """See `Ledger.done`."""
        return tuple(self._done.get(entity.key, {}).values())

    def add_done(self, entity: Entity, entry: Done) -> bool:
        """See `Ledger.add_done`."""
        entries = self._done.setdefault(entity.key, {})
        name = f"{'cancel' if entry.is_cancel else 'end'}-{entry.entry_id}"
        if name in entries:
            return False
        entries[name] = entry
        return True

    def _held(self, version: Versioned) -> None:
        current = self._live.get(version.record.entity.key)
        if current is None or current.etag != version.etag:
            raise Conflict("the record was written by somebody else")

    def _store(self, record: Record) -> Versioned:
        self._writes += 1
        self._live[record.entity.key] = Versioned(record, f'"{self._writes}"', self._now())
        return self._live[record.entity.key]
