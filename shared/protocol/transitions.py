"""Every next record, and nothing else makes one: (record, facts) -> the record that is written over it.

Pure functions on frozen values. `table.py` decides that a step is taken, `shared/requests` takes it, `shared/ledger`
stores what comes of it. A record that is not in a state which the step leaves is refused (ValueError).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.kinds import Entity
from shared.protocol.outcome import Outcome
from shared.protocol.record import EndReason, Loss, NodeRun, Placement, Record, Request, State

# --- from state to state --------------------------------------------------------------------------------------------


def accepted(entity: Entity, request: Request, not_before: datetime) -> Record:
    """A request's first record; whoever made it takes it on, and the timer does from `not_before` if he dies."""
    return Record(entity, request, State.WAITING, not_before=not_before, reason="accepted")


def placed(record: Record, placement: Placement, shown_task_id: str | None) -> Record:
    """Waiting to placed: pool, Batch job and task id are stored before the task is added.

    `shown_task_id` is the task that HASTE's record names now; if it is none of ours, it is older than ours.
    """
    _is_in(record, State.WAITING)
    return replace(
        record,
        state=State.PLACED,
        placement=placement,
        request=record.request.holding(shown_task_id, record.task_ids()),
        reason=placement.why,
        waits=0,
    )


def ending(record: Record, reason: EndReason, why: str, at: datetime) -> Record:
    """Placed to ending: the attempt is left only when its task id is spent."""
    _is_in(record, State.PLACED)
    return replace(record, state=State.ENDING, end_reason=reason, reason=why, ending_since=at)


def next_attempt(record: Record, not_before: datetime) -> Record:
    """Ending to waiting: the old task id is spent, so the next attempt may be placed."""
    _is_in(record, State.ENDING)
    return replace(
        record,
        state=State.WAITING,
        attempt=record.attempt + 1,
        earlier=(*record.earlier, record.placed),
        placement=None,
        node_run=None,
        end_reason=None,
        ending_since=None,
        not_before=not_before,
    )


def finishing(record: Record, outcome: Outcome, not_before: datetime) -> Record:
    """To finishing: the outcome is fixed, once."""
    _is_in(record, State.WAITING, State.PLACED, State.ENDING)
    return replace(
        record,
        state=State.FINISHING,
        outcome=outcome,
        end_reason=None,
        reason=outcome.sentence,
        not_before=not_before,
    )


def next_request(record: Record, not_before: datetime) -> Record:
    """Finishing to waiting: the newest of the requests that wait becomes the live one, and begins anew."""
    _is_in(record, State.FINISHING)
    if not record.next:
        raise ValueError(f"no request waits behind the record {record.entity.key}")
    return accepted(record.entity, record.next[-1], not_before)


# --- within a state -------------------------------------------------------------------------------------------------


def waiting_on(record: Record, why: str, not_before: datetime, *, stands_aside: bool = False) -> Record:
    """It was refused a place, or something else that it needs, and waits for it."""
    _is_in(record, State.WAITING)
    return replace(record, reason=why, waits=record.waits + 1, not_before=not_before, stands_aside=stands_aside)


def looked_at_again(record: Record, not_before: datetime, why: str | None = None) -> Record:
    """A waiting record's next look, which counts as no refusal. `why` replaces the reason."""
    _is_in(record, State.WAITING)
    return replace(record, not_before=not_before, reason=record.reason if why is None else why)


def because(record: Record, why: str) -> Record:
    """Why it is where it is, in other words."""
    return replace(record, reason=why)


def with_next(record: Record, request: Request, at: datetime) -> Record:
    """A newer request waits in `next`. A waiting record is looked at at once (`at`): that request ends it."""
    waiting = tuple(sorted((*record.next, request), key=lambda one: one.order))
    return _unwanted(replace(record, next=waiting), at)


def cancelled(record: Record, asked: datetime, at: datetime) -> Record:
    """A cancel applies, asked for then. A waiting record is looked at at once (`at`): the cancel ends it."""
    _is_in(record, State.WAITING, State.PLACED, State.ENDING)
    return _unwanted(replace(record, cancel_asked=asked), at)


def running(record: Record, run: NodeRun, why: str) -> Record:
    """Its task has been seen running on a node, for the first time or again."""
    _is_in(record, State.PLACED)
    return replace(record, node_run=run, reason=why)


def with_loss_of(record: Record, run: NodeRun | None, at: datetime) -> Record:
    """A run of this attempt was lost with its node, noticed at `at`; None = it never was on a node that we know of."""
    _is_in(record, State.PLACED)
    loss = Loss(record.placed.pool_id, record.attempt, run.started_at if run else at, at)
    return replace(record, losses=(*record.losses, loss), node_run=run)


def without_haste_record(record: Record) -> Record:
    """HASTE's record was there and has been deleted: nobody waits for this request any more."""
    return replace(record, haste_record_gone=True)


def shown(record: Record, not_before: datetime) -> Record:
    """HASTE has shown the end once; it is shown again, for good, when HASTE's late save has landed (`not_before`)."""
    _is_in(record, State.FINISHING)
    return replace(record, not_before=not_before, end_was_shown=True)


def finishing_since(record: Record, began: datetime) -> Record:
    """The record, written over one that finishes since then. For the ledger, which has the storage's times."""
    _is_in(record, State.FINISHING)
    return replace(record, finishing_since=began)


def zip_asked(record: Record) -> Record:
    """HASTE's app has been sent its request for a zip: it is sent once."""
    _is_in(record, State.FINISHING)
    return replace(record, zip_asked=True)


def _unwanted(record: Record, at: datetime) -> Record:
    """One that waits does not sit its pause out."""
    return replace(record, not_before=at) if record.state is State.WAITING else record


def _is_in(record: Record, *states: State) -> None:
    if record.state not in states:
        raise ValueError(f"the record {record.entity.key} is {record.state}, not {' or '.join(states)}")
