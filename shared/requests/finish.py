"""The end of a request: HASTE's record, what follows, what is left in the ledger; each step repeatable by anyone."""

from __future__ import annotations

from datetime import datetime

import structlog

from shared.errors import Unreadable
from shared.haste import artifacts
from shared.haste.visibility import Written, as_done
from shared.kinds import Entity
from shared.ledger.port import Versioned
from shared.protocol import transitions
from shared.protocol.record import Record, Request
from shared.requests.accept import RESUME_AFTER, accept, superseded
from shared.requests.attempt import send_resume
from shared.worker import Worker

log = structlog.get_logger(__name__)


def finish(worker: Worker, version: Versioned) -> Versioned | None:
    """Take the steps in their order. None: done with, or HASTE's late save must be waited for."""
    record = version.record
    outcome = record.end
    settled_at = _settled_at(worker, record)
    is_settled = worker.now() >= settled_at  # before HASTE's record is read: a save until then is seen
    written = worker.haste.show_end(record.entity, record)
    # one that never had a task may have met no record yet
    was_there = record.placement is not None or bool(record.earlier)
    gone = record.haste_record_gone or (written is Written.GONE and was_there)
    if not gone:
        _follow_up_if_readable(worker, version)
    if not is_settled:
        if record.not_before != settled_at or gone != record.haste_record_gone:
            worker.ledger.replace(version, transitions.shown(_known(record, gone=gone), settled_at))
        return None
    record = _known(record, gone=gone)
    if not gone:
        version = _ask_for_zip(worker, version)
    worker.ledger.add_done(record.entity, as_done(record))
    for request in record.next[:-1]:
        worker.ledger.add_done(record.entity, superseded(request, worker.now()))
    log.info("finished", result=outcome.result, sentence=outcome.sentence)
    return _leave(worker, version)


def _known(record: Record, *, gone: bool) -> Record:
    return transitions.without_haste_record(record) if gone else record


def _follow_up_if_readable(worker: Worker, version: Versioned) -> None:
    try:
        _start_follow_up(worker, version)
    except Unreadable as error:
        if not version.record.next:
            raise  # it follows once that is mended
        log.error("nothing follows: what is newer goes on", error=str(error))


def _settled_at(worker: Worker, record: Record) -> datetime:
    """When the API's save of the request, and of its cancel, has landed if it lands at all."""
    asked = max(filter(None, (record.request.asked, record.cancel_asked)))
    return asked + worker.limits.late_save


def _ask_for_zip(worker: Worker, version: Versioned) -> Versioned:
    """HASTE's own request for a zip, repeated only until the sending is recorded.

    First HASTE's record of artifacts, then the message: whoever takes the message may go by the record. Not before
    HASTE's late save has landed: it could take the output paths back, and HASTE's app reads them with the message.
    """
    record = version.record
    model = None
    if not record.zip_asked:
        model = worker.workloads[record.entity.kind].to_zip(record.run(), record.end)
    if model is None:
        return version
    change = artifacts.queued(record.entity, model, version.finishing_since)
    stored = worker.haste.put(artifacts.record_name(record.entity), change)
    worker.zip_queue.send(artifacts.message(stored))
    log.info("zip asked for")
    return worker.ledger.replace(version, transitions.zip_asked(record))


def _leave(worker: Worker, version: Versioned) -> Versioned | None:
    record = version.record
    if not record.next:
        worker.ledger.remove(version)
        return None
    waiting = transitions.next_request(record, worker.now() + RESUME_AFTER)
    version = worker.ledger.replace(version, waiting)
    send_resume(worker, waiting)
    return None


def _start_follow_up(worker: Worker, version: Versioned) -> None:
    """The next kind of work, accepted like any other request; an occupied slot is not `created`."""
    record = version.record
    kind = worker.workloads[record.entity.kind].follow_up(record.run(), record.end)
    if kind is None:
        return
    entity = Entity(kind, record.entity.project_id, record.entity.entity_id)
    request = Request(f"{record.request.request_id}+{kind.value}", version.finishing_since)
    if any(entry.entry_id == request.request_id for entry in worker.ledger.done(entity)):
        return
    accepted = accept(worker, entity, request)
    if accepted is not None:
        send_resume(worker, accepted.record)
