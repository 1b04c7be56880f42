"""Which end HASTE's record must show, and whether it may be written over what stands there.

HASTE's API saves whole records late and without conditions, so what stands there may be older or newer than we are.
A record that names a task we do not know of was written for a newer run: it is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from shared.haste.status_fields import CANCELLED, STATUS_OF_RESULT, TERMINAL
from shared.haste.workload import Shown
from shared.protocol.outcome import Outcome, Result, Run
from shared.protocol.record import Done, Record, task_ids


class Written(Enum):
    """What became of a write to HASTE's record."""

    DONE = auto()
    NOT = auto()
    """nothing was to be written"""
    GONE = auto()
    """there is no record: the storage service itself has said so"""


@dataclass(frozen=True)
class End:
    """The end that HASTE's record must show: whose, how, and the task ids that are not newer than it."""

    request_id: str
    outcome: Outcome
    run: Run
    own_task_ids: tuple[str, ...]
    known_task_ids: frozenset[str]
    is_mine: bool
    haste_record_gone: bool = False


def end_to_show(record: Record | None, done: Iterable[Done]) -> End | None:
    """The end of the newest request that has one; None if nothing has ended that shows."""
    ends = sorted((entry for entry in done if not entry.is_cancel), key=lambda entry: entry.order)
    candidates: list[Done] = [entry for entry in ends if entry.shows]
    if record is not None and record.outcome is not None and record.outcome.result is not Result.SUPERSEDED:
        candidates.append(as_done(record))
    # a task that was taken over comes before whoever met it, although its message may be newer
    candidates = [entry for entry in candidates if not any(other.follows(entry.entry_id) for other in candidates)]
    if not candidates:
        return None
    newest = max(candidates, key=lambda entry: entry.order)
    outcome, run = newest.shown
    own = _ids(newest)
    known = {*own, *newest.held_task_ids}
    older = [*ends, as_done(record)] if record is not None else ends
    for entry in older:
        if entry.order < newest.order:
            known.update(_ids(entry))
    is_mine = record is not None and newest.entry_id == record.request.request_id
    gone = newest.haste_record_gone
    return End(newest.entry_id, outcome, run, own, frozenset(known), is_mine, gone)


def may_show_end(end: End, shown: Shown) -> bool:
    """May this end be written over what HASTE's record shows now?

    One whose record was deleted only if HASTE has saved that very record again: ids of models are used again.
    """
    if end.haste_record_gone and shown.task_id not in end.own_task_ids:
        return False
    if shown.task_id is not None and shown.task_id not in end.known_task_ids:
        return False
    if shows(end, shown):
        return False
    return end.is_mine or shown.status == CANCELLED


def shows(end: End, shown: Shown) -> bool:
    """HASTE's record shows this end already."""
    wanted = STATUS_OF_RESULT[end.outcome.result]
    # the API writes Cancelled itself; only the job object tells that the cancel has been carried out
    return shown.task_id in end.own_task_ids and shown.status == wanted and shown.job_status == wanted


def may_show_progress(record: Record, done: Iterable[Done], shown: Shown) -> bool:
    """May the progress of this live record be written? Never over a cancel, an end of its own, or a newer run.

    A `Cancelled` of an older run is no cancel of this one: the user has asked again since.
    """
    own = record.task_ids()
    if shown.task_id in own:
        return shown.status not in TERMINAL
    done = list(done)
    if shown.status == CANCELLED and not _is_of_an_older_run(record, done):
        return False
    known = {*record.request.held_task_ids}
    for entry in done:
        if not entry.is_cancel and entry.order < record.request.order:
            known.update(_ids(entry))
    return shown.task_id is None or shown.task_id in known


def progress_needs_ends(record: Record, shown: Shown) -> bool:
    """Whether `may_show_progress` depends on the ends: HASTE shows a cancel, or a task that is not known here."""
    if shown.task_id in record.task_ids():
        return False
    is_known = shown.task_id is None or shown.task_id in record.request.held_task_ids
    return shown.status == CANCELLED or not is_known


def _is_of_an_older_run(record: Record, done: Iterable[Done]) -> bool:
    """There has been a cancel before this request, and none since. A cancel leaves its entry before anything else."""
    cancels = [entry.asked for entry in done if entry.is_cancel]
    return bool(cancels) and max(cancels) < record.request.asked


def as_done(record: Record) -> Done:
    """What is left of a record's request when it has ended."""
    return Done(
        entry_id=record.request.request_id,
        asked=record.request.asked,
        outcome=record.outcome,
        run=record.run(),
        held_task_ids=record.request.held_task_ids,
        haste_record_gone=record.haste_record_gone,
    )


def _ids(entry: Done) -> tuple[str, ...]:
    return task_ids(entry.run.entity.kind, entry.entry_id, entry.run.attempt) if entry.run else ()
