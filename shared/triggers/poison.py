"""Empties the poison queues: every message is kept, and no request among them ends in silence.

A timer does this, not triggers: a failing trigger on a poison queue would hide its message for ten minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import structlog

from shared.errors import Conflict, InvalidMessage, Transient, Unreadable
from shared.haste.by_kind import parse_message
from shared.haste.messages import HasteMessage, Wish
from shared.haste.status_fields import CANCELLED, QUEUED
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result, Run
from shared.protocol.record import Record, Request
from shared.requests import accept, adopt
from shared.requests.own_message import CancelLater, Resume, from_bytes
from shared.retry import at_most
from shared.storage.queues import QueueReader, TakenMessage
from shared.storage.rejected import Rejected
from shared.worker import Worker

log = structlog.get_logger(__name__)

_MOST_AT_ONCE = 32
#: After this no call is begun: the timer has jobs to look after. A message that was taken comes back in a minute.
_MOST_SECONDS = 30
_SENTENCE = "The request could not be taken in; please start it again"
_STANDS_STILL = "The request could not be taken in: an operator has to look at an earlier run first"


def empty(worker: Worker, rejected: Rejected, queues: QueueReader, names: Mapping[str, Kind | None]) -> None:
    """Keep and account for what lies in the poison queues. `names`: queue -> HASTE kind, None for our own queue.

    A message that cannot be dealt with now comes back, and keeps the others from nothing; what went wrong unexpectedly
    is raised at the end.
    """
    faults: list[Exception] = []
    with at_most(_MOST_SECONDS):
        for queue_name, kind in names.items():
            for message in queues.take(f"{queue_name}-poison", _MOST_AT_ONCE):
                try:
                    reason = _account_for(worker, kind, message)
                    text = f"from {message.queue_name}: {reason}"
                    rejected.keep(queue_name, message.message_id, message.text.encode(), text)
                    queues.delete(message)
                except (Conflict, Transient) as error:
                    log.warning("left for a later run", message=message.message_id, error=str(error))
                except Exception as error:  # it must not stop the others; raised below
                    log.exception("message not looked at", message=message.message_id)
                    faults.append(error)
    if faults:
        raise ExceptionGroup("messages in poison queues that could not be looked at", faults)


def _account_for(worker: Worker, kind: Kind | None, message: TakenMessage) -> str:
    """What the message's request has come to; a request that never became a job is shown as failed."""
    body = message.text.encode()
    try:
        if kind is None:
            return _account_for_own(worker, from_bytes(body))
        return _account_for_request(worker, parse_message(body, kind), message)
    except (InvalidMessage, Unreadable) as error:  # the message, or a record that it is about
        return str(error)


def _account_for_own(worker: Worker, message: Resume | CancelLater) -> str:
    if isinstance(message, CancelLater):
        accept.cancel(worker, message.entity, message.cancel_id, message.asked)
        return "it failed too often; the cancel has been looked at again"
    return "it failed too often; the timer takes its job up"


def _account_for_request(worker: Worker, parsed: HasteMessage, message: TakenMessage) -> str:
    try:
        return _has_come_to(worker, parsed, message)
    except Unreadable as error:
        return f"{error}; {_show_failure(worker, parsed, _STANDS_STILL)}"


def _has_come_to(worker: Worker, parsed: HasteMessage, message: TakenMessage) -> str:
    asked = message.inserted_on or worker.now()
    if parsed.wish is Wish.CANCEL:
        return _cancel(worker, parsed.entity, message.message_id, asked)
    live = worker.ledger.read(parsed.entity.key)
    if live is not None and parsed.wish is Wish.START and _is_asked_again(worker, live.record):
        accept.accept(worker, parsed.entity, Request(message.message_id, asked))
        return "it failed too often; it comes after the run that was cancelled before it"
    if live is not None:
        worker.ledger.done(parsed.entity)  # where these cannot be read, nothing is taken in beside it
        return "its job is live and goes on"
    if parsed.wish is Wish.POLL:
        taken_over = adopt.adopt(worker, parsed, message.message_id, asked)
        return f"a poll message that failed too often; {'its task is taken over' if taken_over else 'nothing to do'}"
    return f"it failed too often before it became a job; {_show_failure(worker, parsed, _SENTENCE)}"


def _show_failure(worker: Worker, parsed: HasteMessage, sentence: str) -> str:
    """Show a request as failed, if HASTE's record waits for one; what was done, in words."""
    outcome = Outcome(Result.FAILED, sentence, worker.now())
    change = worker.workloads[parsed.entity.kind].finished(Run(parsed.entity, request_id=""), outcome)
    if parsed.wish is Wish.START and worker.haste.show_failure(parsed.entity, change):
        return "HASTE's record shows the failure"
    return "HASTE's record does not wait for it"


def _is_asked_again(worker: Worker, record: Record) -> bool:
    """The live run is cancelled, and HASTE's record shows that the user has started another one since."""
    shown = worker.haste.shown(record.entity)
    return record.cancel_asked is not None and shown is not None and shown.status == QUEUED


def _cancel(worker: Worker, entity: Entity, cancel_id: str, asked: datetime) -> str:
    """The copy is newer than the cancel was, so it counts only where nothing that came after it took its place."""
    shown = worker.haste.shown(entity)
    if shown is None or shown.status != CANCELLED:
        return "a cancel message that failed too often; HASTE's record does not show a cancel any more"
    accept.cancel(worker, entity, cancel_id, asked)
    return "a cancel message that failed too often; it has been carried out"
