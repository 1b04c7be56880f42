"""What the protocol needs of its ledger. The blob ledger and the tests' in-memory one pass the same contract tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from shared.kinds import Entity
from shared.protocol import transitions
from shared.protocol.record import Done, Record, State


@dataclass(frozen=True)
class Versioned:
    """A record as it was read or written, with the version every later write is conditional on.

    `written_at` is the storage clock's time of that version.
    """

    record: Record
    etag: str
    written_at: datetime

    @property
    def finishing_since(self) -> datetime:
        """When the record began to finish: the time of the first version that did. ValueError if it does not finish."""
        if self.record.state is not State.FINISHING:
            raise ValueError(f"the record {self.record.entity.key} is {self.record.state}")
        return self.record.finishing_since or self.written_at

    def keeping_times(self, record: Record) -> Record:
        """What a ledger writes over this version for `record`: one that goes on finishing keeps when it began to."""
        if State.FINISHING is self.record.state is record.state:
            return transitions.finishing_since(record, self.finishing_since)
        return record


@dataclass(frozen=True)
class LiveSummary:
    """What one list call tells about a live record: enough to decide whether a tick must look at it."""

    key: str
    state: State
    not_before: datetime
    asked: datetime
    job_class: str
    job_id: str | None = None
    task_id: str | None = None
    pool_id: str | None = None
    is_unwanted: bool = False
    """cancelled, or a newer request waits"""
    is_running: bool = False
    """its task has been seen running"""
    has_waited: bool = False
    """it has been refused a place for lack of quota or capacity"""
    is_taken_over: bool = False
    """its task was started by HASTE's own app, and is in Batch already"""
    stands_aside: bool = False
    """it waits for something else than a place: newer jobs need not wait for it"""
    etag: str = field(default="", compare=False)
    """the version that was listed"""

    def holds_back(self, asked: datetime) -> bool:
        """A job of the same class that was asked for then comes after this one, which waits for a place."""
        return self.has_waited and not self.stands_aside and self.asked < asked

    @classmethod
    def of(cls, version: Versioned) -> LiveSummary:
        """What a list would tell about this record."""
        record, placed = version.record, version.record.placement
        return cls(
            key=record.entity.key,
            state=record.state,
            not_before=record.not_before,
            asked=record.request.asked,
            job_class=record.entity.kind.job_class,
            job_id=placed.job_id if placed else None,
            task_id=placed.task_id if placed else None,
            pool_id=placed.pool_id if placed else None,
            is_unwanted=record.is_unwanted,
            is_running=record.is_running,
            has_waited=record.waits > 0,
            is_taken_over=record.is_taken_over,
            stands_aside=record.stands_aside,
            etag=version.etag,
        )


@dataclass(frozen=True)
class StandsStill:
    """A blob among the live records that this version cannot work with. It is left as it is; `why` names it.

    `job_id` and `task_id` are what its metadata says. `may_hide_task`: a task of it may be in Batch that it does not
    name.
    """

    key: str
    why: str
    job_id: str | None
    task_id: str | None
    may_hide_task: bool


@dataclass(frozen=True)
class Listing:
    """What one list of the live records shows: those that this version can work with, and those that stand still."""

    records: tuple[LiveSummary, ...]
    standing_still: tuple[StandsStill, ...] = ()

    def __iter__(self) -> Iterator[LiveSummary]:
        return iter(self.records)

    def tasks_in(self, job_id: str) -> frozenset[str]:
        """Ids of the tasks that are named in this Batch job, by records that stand still, too."""
        named: list[LiveSummary | StandsStill] = [*self.records, *self.standing_still]
        return frozenset(one.task_id for one in named if one.job_id == job_id and one.task_id is not None)

    @property
    def names_every_task(self) -> bool:
        """No task of ours can be in Batch without being named here."""
        return not any(one.may_hide_task for one in self.standing_still)


class Ledger(Protocol):
    """Live records under `active/`, ends and cancels under `done/`."""

    def read(self, key: str) -> Versioned | None:
        """The live record of an entity (`Entity.key`); None if there is none. Raises Unreadable."""

    def read_listed(self, summary: LiveSummary) -> Versioned | None:
        """As `read`; the version that was listed may come from memory. Raises Unreadable."""

    def create(self, record: Record) -> Versioned | None:
        """Create if absent; None if somebody else's record is there."""

    def replace(self, version: Versioned, record: Record) -> Versioned:
        """Write over exactly this version; `finishing_since` is kept (`Versioned.keeping_times`). Raises Conflict."""

    def remove(self, version: Versioned) -> None:
        """Delete exactly this version. Raises Conflict."""

    def live(self) -> Listing:
        """All live records, by list calls alone."""

    def done(self, entity: Entity) -> tuple[Done, ...]:
        """Every end and every cancel of the entity, as of now. Raises Unreadable if one of them is none."""

    def add_done(self, entity: Entity, entry: Done) -> bool:
        """Create if absent, never overwrite; False if it was there."""
