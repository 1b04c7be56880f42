"""A request meets the ledger: it becomes a record, waits behind another, or turns out to be known."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from shared.errors import Conflict
from shared.kinds import Entity
from shared.ledger.port import Versioned
from shared.protocol import table, transitions
from shared.protocol.outcome import Outcome, Result
from shared.protocol.record import Done, Request
from shared.protocol.table import Accept, Cancel
from shared.requests.own_message import CancelLater, to_text
from shared.worker import Worker

log = structlog.get_logger(__name__)

#: A waiting job whose handler has died is taken up again by the timer after this.
RESUME_AFTER = timedelta(minutes=1)
_CANCEL_AGAIN_SECONDS = 30


def accept(worker: Worker, entity: Entity, request: Request) -> Versioned | None:
    """Take a start request in. The record to go on with, or None if there is nothing more to do for this request.

    Once this returns, the request's effect is stored. Raises Conflict if somebody else wrote meanwhile.
    """
    request = _knowing_haste(worker, entity, request)
    created = worker.ledger.create(transitions.accepted(entity, request, worker.now() + RESUME_AFTER))
    version = created or worker.ledger.read(entity.key)
    if version is None:
        raise Conflict("another record was there, and has gone")
    decision = Accept.CREATE if created else table.accept(version.record, request)
    log.info("start message", decision=decision, request=request.request_id)
    match decision:
        case Accept.CONTINUE if version.record.waits:
            return None  # it has its place among those that wait, and the timer takes it up in its turn
        case Accept.CREATE | Accept.CONTINUE:
            return version
        case Accept.LIST_DONE:
            _beside(worker, version, request)
    return None


def _beside(worker: Worker, version: Versioned, request: Request) -> None:
    record = version.record
    decision = table.accept_beside(record, request, worker.ledger.done(record.entity))
    log.info("another request is live", decision=decision, request=request.request_id, live=record.request.request_id)
    if decision is Accept.SUPERSEDED:
        worker.ledger.add_done(record.entity, superseded(request, worker.now()))
    elif decision is Accept.ADD_NEXT:
        worker.ledger.replace(version, transitions.with_next(record, request, worker.now()))


def cancel(worker: Worker, entity: Entity, cancel_id: str, asked: datetime) -> None:
    """Carry out a cancel message: its entry first, then whatever is live. Raises Conflict."""
    worker.ledger.add_done(entity, Done(cancel_id, asked))
    version = worker.ledger.read(entity.key)
    decision = table.cancel(version.record if version else None, asked)
    log.info("cancel message", decision=decision, cancel=cancel_id)
    match decision:
        case Cancel.FLAG if version is not None:
            worker.ledger.replace(version, transitions.cancelled(version.record, asked, worker.now()))
        case Cancel.LATER:
            _later(worker, entity, cancel_id, asked)
        case Cancel.REASSERT if worker.now() < asked + worker.limits.late_save:
            _later(worker, entity, cancel_id, asked)
        case Cancel.REASSERT:
            worker.haste.show_end(entity, None)


def _later(worker: Worker, entity: Entity, cancel_id: str, asked: datetime) -> None:
    # a delayed message of our own, put before the present one is deleted; an exception would poison it
    worker.own_queue.send(to_text(CancelLater(entity, cancel_id, asked)), _CANCEL_AGAIN_SECONDS)


def superseded(request: Request, at: datetime) -> Done:
    """What is left of a request that never ran because a newer one came."""
    outcome = Outcome(Result.SUPERSEDED, "A newer request took its place", at)
    return Done(request.request_id, request.asked, outcome, held_task_ids=request.held_task_ids)


def _knowing_haste(worker: Worker, entity: Entity, request: Request) -> Request:
    """The request with the task id that HASTE's record names now: whatever it is, it is older than this request."""
    shown = worker.haste.shown(entity)
    return request if shown is None else request.holding(shown.task_id, ())
