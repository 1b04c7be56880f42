"""The ledger's values: one live record per entity, and what is left of every request after its end.

The states and who may leave them are drawn in docs/architecture.md; `table.py` decides, `shared/ledger` stores.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result, Run

_TASK_NAMESPACE = uuid.UUID("5f4b3c0e-7f0c-5c55-9d0e-6a2d0f6f7a11")


def task_id(kind: Kind, request_id: str, attempt: int) -> str:
    """Batch task id of one attempt: HASTE's prefix + uuid5, 40 characters, the same whoever computes it.

    A request taken over from HASTE's own app is named by the task that runs it already.
    """
    prefix = f"{kind.task_prefix}-"
    if attempt == 1 and request_id.startswith(prefix):
        return request_id
    return prefix + str(uuid.uuid5(_TASK_NAMESPACE, f"{request_id}/{attempt}"))


def task_ids(kind: Kind, request_id: str, attempts: int) -> tuple[str, ...]:
    """The task ids of attempts 1 to `attempts`."""
    return tuple(task_id(kind, request_id, n) for n in range(1, attempts + 1))


#: No request has so many; all their task ids are made when an end is compared with what HASTE shows.
_MOST_ATTEMPTS = 10_000


class State(StrEnum):
    """Where a live record is. Shown to people as queued or running while placed, by Batch's own state."""

    WAITING = "waiting"
    PLACED = "placed"
    ENDING = "ending"
    FINISHING = "finishing"


#: A record in one of these has a task that may be in Batch.
LIVE_STATES = frozenset({State.PLACED, State.ENDING})


class EndReason(StrEnum):
    """Why an attempt is being ended."""

    CANCEL = "cancel"
    NEXT = "next"
    MOVE = "move"
    GIVE_UP = "give up"


@dataclass(frozen=True)
class Request:
    """One wish of HASTE. `asked` is the message's insertion time on the storage clock.

    `held_task_ids` are the tasks HASTE's record named when we met the request: they are older than ours.
    `adopted_job_id` names the Batch job of a task that HASTE's own app has started.
    """

    request_id: str
    asked: datetime
    held_task_ids: tuple[str, ...] = ()
    adopted_job_id: str | None = None

    @property
    def order(self) -> tuple[datetime, str]:
        """Requests of an entity are ordered by insertion time, ties by id."""
        return (self.asked, self.request_id)

    @property
    def is_follow_up(self) -> bool:
        """It was asked for by the end of another request, not by a message."""
        return "+" in self.request_id

    def follows(self, other_id: str) -> bool:
        """The other is a task of HASTE's own app that was there when this was asked for: it comes before this one."""
        return other_id in self.held_task_ids and other_id != self.request_id

    def holding(self, named: str | None, own: tuple[str, ...]) -> Request:
        """The request, knowing also the task that HASTE's record names now (unless it is one of its own)."""
        if named is None or named in own or named in self.held_task_ids:
            return self
        return replace(self, held_task_ids=(*self.held_task_ids, named))


@dataclass(frozen=True)
class Placement:
    """Where an attempt runs. Never changed once stored."""

    pool_id: str
    job_id: str
    task_id: str
    at: datetime
    why: str
    rejected: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeRun:
    """The latest run of the attempt's task that was seen on a node."""

    node_id: str
    started_at: datetime


@dataclass(frozen=True)
class Loss:
    """A run that was lost together with its node."""

    pool_id: str
    attempt: int
    started_at: datetime
    noticed_at: datetime


@dataclass(frozen=True)
class Record:
    """The live record of an entity.

    `reason` says what the job waits for, or why it is where it is; `not_before` is when somebody looks again.
    `waits` counts refusals in a row (back-off). It `stands_aside` if it waits for something else than a place: newer
    jobs need not wait for it. `ending_since` is when the present attempt began to end; `finishing_since` (storage
    clock) is kept by the ledger when a record that finishes is written again; `end_was_shown`: HASTE has shown the end
    once; `zip_asked`: HASTE's app has been sent its request for a zip.
    `haste_record_gone`: HASTE's record was there and has been deleted. Nobody waits for this request any more: its
    attempt is ended, nothing follows from it, and a record that is made under the same id is not its own.
    """

    entity: Entity
    request: Request
    state: State
    not_before: datetime
    attempt: int = 1
    placement: Placement | None = None
    earlier: tuple[Placement, ...] = ()
    node_run: NodeRun | None = None
    losses: tuple[Loss, ...] = ()
    cancel_asked: datetime | None = None
    next: tuple[Request, ...] = ()
    end_reason: EndReason | None = None
    ending_since: datetime | None = None
    finishing_since: datetime | None = None
    outcome: Outcome | None = None
    reason: str = ""
    waits: int = 0
    stands_aside: bool = False
    end_was_shown: bool = False
    haste_record_gone: bool = False
    zip_asked: bool = False

    def __post_init__(self) -> None:
        """Refuse what no transition makes (ValueError); so a stored record that says it cannot be read."""
        fault = _fault(self)
        if fault is not None:
            raise ValueError(fault)

    @property
    def placed(self) -> Placement:
        """Where this attempt runs. Raises ValueError for a record without a placement."""
        if self.placement is None:
            raise ValueError(f"the record {self.entity.key} is {self.state} and has no placement")
        return self.placement

    @property
    def end(self) -> Outcome:
        """The outcome that is fixed. Raises ValueError for a record that does not finish."""
        if self.outcome is None:
            raise ValueError(f"the record {self.entity.key} is {self.state} and has no outcome")
        return self.outcome

    @property
    def is_unwanted(self) -> bool:
        """Cancelled, or a newer request waits."""
        return self.cancel_asked is not None or bool(self.next)

    @property
    def is_running(self) -> bool:
        """Its task has been seen running, and that run is not lost."""
        run = self.node_run
        return run is not None and not any(
            loss.attempt == self.attempt and loss.started_at == run.started_at for loss in self.losses
        )

    @property
    def is_taken_over(self) -> bool:
        """This attempt's task was started by HASTE's own app, and is in Batch already."""
        return self.request.adopted_job_id is not None and self.attempt == 1

    def run(self) -> Run:
        """This attempt as HASTE's records name it."""
        placed = self.placement
        return Run(
            entity=self.entity,
            request_id=self.request.request_id,
            attempt=self.attempt,
            job_id=placed.job_id if placed else None,
            task_id=placed.task_id if placed else None,
            placed_at=placed.at if placed else None,
        )

    def task_ids(self) -> tuple[str, ...]:
        """Every task id this request may have used."""
        return task_ids(self.entity.kind, self.request.request_id, self.attempt)


def _fault(record: Record) -> str | None:
    """Why no record can be like this, in a sentence; None if it can."""
    state, placement = record.state, record.placement
    if state in LIVE_STATES and placement is None:
        return f"it is {state} without a placement"
    if state is State.WAITING and (placement is not None or record.node_run is not None):
        return "it is waiting with a placement or a run"
    if (record.outcome is not None) is not (state is State.FINISHING):
        return f"it is {state} {'without' if record.outcome is None else 'with'} an outcome"
    if (record.end_reason is not None) is not (state is State.ENDING):
        return f"it is {state} {'without' if record.end_reason is None else 'with'} a reason to end"
    if record.finishing_since is not None and state is not State.FINISHING:
        return f"it is {state}, and has begun to finish"
    if record.attempt != len(record.earlier) + 1:
        return f"it is attempt {record.attempt} after {len(record.earlier)} earlier ones"
    if record.waits < 0:
        return f"it has waited {record.waits} times"
    return None


@dataclass(frozen=True)
class Done:
    """What is left of a message: the end of a request (`outcome`), or a cancel message (`outcome` is None)."""

    entry_id: str
    asked: datetime
    outcome: Outcome | None = None
    run: Run | None = None
    held_task_ids: tuple[str, ...] = ()
    haste_record_gone: bool = False

    def __post_init__(self) -> None:
        """An end that shows names its run, and no run is one of more attempts than there can be (ValueError)."""
        if self.shows and self.run is None:
            raise ValueError("it is an end without a run")
        if self.run is not None and not 1 <= self.run.attempt <= _MOST_ATTEMPTS:
            raise ValueError(f"its run is attempt {self.run.attempt}")

    @property
    def is_cancel(self) -> bool:
        """A cancel entry, not the end of a request."""
        return self.outcome is None

    @property
    def order(self) -> tuple[datetime, str]:
        """As for requests."""
        return (self.asked, self.entry_id)

    def follows(self, other_id: str) -> bool:
        """As for requests."""
        return other_id in self.held_task_ids and other_id != self.entry_id

    @property
    def shown(self) -> tuple[Outcome, Run]:
        """The end that is shown, and the run it is of. Raises ValueError if nothing is."""
        if self.outcome is None or self.run is None or not self.shows:
            raise ValueError(f"{self.entry_id} shows no end")
        return self.outcome, self.run

    @property
    def shows(self) -> bool:
        """This end is shown in HASTE's record (a superseded request shows nothing)."""
        return self.outcome is not None and self.outcome.result is not Result.SUPERSEDED
