"""Everything that is known of one job: the ledger's record and ends, HASTE's record, and what Batch says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

from operate.batch_words import NOT_IN_BATCH, enabling, read_task, read_whether_disabled, shown_state, told_disabled
from shared.haste.workload import Shown
from shared.kinds import Entity
from shared.pools.recovery import losses_by_pool
from shared.protocol.record import Done, Loss, Placement, Record, Request, State
from shared.worker import Worker

_EVERY_RUN = "with every run of the timer"


@dataclass(frozen=True)
class Attempt:
    """One task: where, why there, what was rejected and why, and what has become of it."""

    number: int
    pool: str
    batch_job: str
    task: str
    placed_at: datetime
    why: str
    rejected: tuple[str, ...]
    losses: int
    in_batch: str
    outcome: str


@dataclass(frozen=True)
class End:
    """What is left of a message: the end of a request, or a cancel."""

    message: str
    asked: datetime
    result: str
    sentence: str = ""
    ended_at: datetime | None = None
    attempts: int = 0
    batch_job: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Explanation:
    """One job. `state` is `unknown`, `ended`, or what it is at now: waiting, queued, running, ending, finishing."""

    kind: str
    project: str
    entity: str
    state: str
    why: str
    waits_for: str
    next_look: datetime | str | None
    haste: Shown | None
    request: Request | None = None
    cancel_asked: datetime | None = None
    attempts: tuple[Attempt, ...] = ()
    losses: tuple[Loss, ...] = ()
    losses_by_pool: dict[str, int] | None = None
    next_requests: tuple[Request, ...] = ()
    done: tuple[End, ...] = ()

    @property
    def is_known(self) -> bool:
        """A request for it has been accepted, and its end is not forgotten yet."""
        return self.state != "unknown"


def explain(worker: Worker, entity: Entity, most_done: int) -> Explanation:
    """Look at one entity; of its ends the newest ones, newest first."""
    version = worker.ledger.read(entity.key)
    entries = sorted(worker.ledger.done(entity), key=lambda entry: entry.order, reverse=True)
    done = tuple(_end(entry) for entry in entries[:most_done])
    about = (entity.kind.value, entity.project_id, entity.entity_id)
    haste = worker.haste.shown(entity)
    if version is None:
        newest = next((end for end in done if end.result != "cancel"), None)
        if newest is None:
            return Explanation(*about, "unknown", "no request for it is in the ledger", "", None, haste, done=done)
        return Explanation(*about, "ended", f"{newest.result}: {newest.sentence}", "", None, haste, done=done)
    record = version.record
    attempts = _attempts(worker, record)
    state = attempts[-1].outcome if record.state is State.PLACED else record.state.value
    why, waits_for = _waits_for(worker, record, attempts)
    return Explanation(
        *about,
        state,
        why,
        waits_for,
        next_look(record, worker.now()) or _EVERY_RUN,
        haste,
        record.request,
        record.cancel_asked,
        attempts,
        record.losses,
        losses_by_pool(record),
        record.next,
        done,
    )


def next_look(record: Record, now: datetime) -> datetime | None:
    """The time before which the timer lets the record be; None if it looks with every run."""
    is_let_be = record.state in (State.WAITING, State.FINISHING) and record.not_before > now
    return record.not_before if is_let_be else None


def to_json(found: Explanation) -> str:
    """One JSON object."""
    return TypeAdapter(Explanation).dump_json(found, indent=2).decode()


def _attempts(worker: Worker, record: Record) -> tuple[Attempt, ...]:
    earlier = [_attempt(worker, record, number, placed, True) for number, placed in enumerate(record.earlier, 1)]
    if record.placement is None:
        return tuple(earlier)
    return (*earlier, _attempt(worker, record, record.attempt, record.placement, False))


def _attempt(worker: Worker, record: Record, number: int, placed: Placement, is_left: bool) -> Attempt:
    task, in_batch = read_task(worker, placed)
    losses = sum(loss.attempt == number for loss in record.losses)
    if is_left:
        outcome = "lost its node, moved on" if losses else "ended, moved on"
    elif record.state is State.PLACED:
        outcome = "placed" if task is None else shown_state(task)
    elif record.outcome is not None:
        outcome = record.outcome.result.value
    else:
        outcome = f"being ended ({record.end_reason})"
    return Attempt(
        number,
        placed.pool_id,
        placed.job_id,
        placed.task_id,
        placed.at,
        placed.why,
        placed.rejected,
        losses,
        in_batch,
        outcome,
    )


def _waits_for(worker: Worker, record: Record, attempts: Sequence[Attempt]) -> tuple[str, str]:
    """Why it is where it is, and what it waits for."""
    why = record.reason
    match record.state:
        case State.WAITING:
            return why, why
        case State.ENDING:
            return why, f"the end of its task in Batch, because of: {record.end_reason}"
        case State.FINISHING:
            return why, "the time until which HASTE may still save its record"
    placed = attempts[-1]
    is_queued = placed.outcome == "queued"
    if not is_queued and placed.in_batch != NOT_IN_BATCH:
        return why, ""
    if record.is_unwanted:
        return why, "the next run of the timer, which ends this attempt"
    is_disabled, fault = read_whether_disabled(worker, placed.batch_job)
    if is_disabled:
        return told_disabled(placed.batch_job), f"the Batch job to be enabled: {enabling(placed.batch_job)}"
    what = f"a free node on {placed.pool}" if is_queued else "the next run of the timer, which adds the task again"
    return why, f"{what}; {fault}" if fault else what


def _end(entry: Done) -> End:
    if entry.outcome is None:
        return End(entry.entry_id, entry.asked, "cancel")
    outcome, run = entry.outcome, entry.run
    return End(
        entry.entry_id,
        entry.asked,
        outcome.result.value,
        outcome.sentence,
        outcome.at,
        run.attempt if run and run.task_id else 0,
        run.job_id if run else None,
        run.task_id if run else None,
    )
