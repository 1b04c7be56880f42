"""What the queue triggers do: one message in, its effect stored, or an exception that brings the message back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from shared.errors import Conflict, InvalidMessage, Transient
from shared.haste.by_kind import parse_message
from shared.haste.messages import HasteMessage, Wish
from shared.kinds import Entity, Kind
from shared.ledger.port import Versioned
from shared.pools.readings import Readings
from shared.protocol.record import Request, State
from shared.requests import accept, adopt, driver
from shared.requests.own_message import CancelLater, Resume, from_bytes
from shared.retry import at_most
from shared.storage.reading_once import reading_once
from shared.storage.rejected import Rejected
from shared.telemetry.logs import bound
from shared.worker import Worker

log = structlog.get_logger(__name__)

_MOST_TRIES = 3
#: After this a handler begins no further call to Batch: the timer goes on with the record.
_SECONDS_FOR_A_MESSAGE = 45


@dataclass(frozen=True)
class QueueMessage:
    """A message as the trigger delivers it."""

    queue_name: str
    message_id: str
    inserted_on: datetime
    body: bytes


def haste_message(worker: Worker, rejected: Rejected, kind: Kind, message: QueueMessage) -> None:
    """A message of HASTE's API, or one that HASTE's own queue app has left behind."""
    try:
        parsed = parse_message(message.body, kind)
        entity = parsed.entity
        with bound(tenant=worker.tenant, kind=entity.kind.value, job=entity.entity_id):
            _repeated(worker, lambda: _act(worker, parsed, message))
    except InvalidMessage as invalid:
        rejected.keep(message.queue_name, message.message_id, message.body, invalid.reason)


def own_message(worker: Worker, rejected: Rejected, message: QueueMessage) -> None:
    """A message of ours: resume an attempt, or look at a cancel again."""
    try:
        parsed = from_bytes(message.body)
    except InvalidMessage as invalid:
        rejected.keep(message.queue_name, message.message_id, message.body, invalid.reason)
        return
    entity = parsed.entity
    with bound(tenant=worker.tenant, kind=entity.kind.value, job=entity.entity_id):
        match parsed:
            case Resume():
                _resume(worker, parsed)
            case CancelLater():
                _repeated(worker, lambda: _cancel(worker, entity, parsed.cancel_id, parsed.asked))


def _act(worker: Worker, parsed: HasteMessage, message: QueueMessage) -> Versioned | None:
    match parsed.wish:
        case Wish.START:
            return accept.accept(worker, parsed.entity, Request(message.message_id, message.inserted_on))
        case Wish.CANCEL:
            return _cancel(worker, parsed.entity, message.message_id, message.inserted_on)
        case Wish.POLL:
            return adopt.adopt(worker, parsed, message.message_id, message.inserted_on)


def _cancel(worker: Worker, entity: Entity, cancel_id: str, asked: datetime) -> Versioned | None:
    """What a cancel leads to is left to the timer, which looks at the record within seconds."""
    accept.cancel(worker, entity, cancel_id, asked)
    return None


def _resume(worker: Worker, resume: Resume) -> None:
    version = worker.ledger.read(resume.entity.key)
    if version is None:
        return
    record = version.record
    is_meant = (record.request.request_id, record.attempt) == (resume.request_id, resume.attempt)
    if is_meant and record.state in (State.WAITING, State.PLACED):
        with reading_once():
            _advance(worker, version)


def _repeated(worker: Worker, act: Callable[[], Versioned | None]) -> None:
    """Store the message's effect, then go on with the record it leads to.

    After a lost write everything is looked at afresh, a few times; then the message is left for its next delivery.
    """
    for attempt in range(1, _MOST_TRIES + 1):
        with reading_once():
            try:
                version = act()
            except Conflict as conflict:
                log.info("lost a write", error=str(conflict), attempt=attempt)
                if attempt == _MOST_TRIES:
                    raise
                continue
            if version is not None:
                _advance(worker, version)
            return


def _advance(worker: Worker, version: Versioned) -> None:
    """Take the record on. It exists, so the timer goes on with it where this fails: the message is done with."""
    try:
        with at_most(_SECONDS_FOR_A_MESSAGE):
            driver.advance(worker, version, Readings(worker, by_list=False))
    except (Conflict, Transient) as error:
        log.warning("left to the timer", error=str(error), error_type=type(error).__name__)
