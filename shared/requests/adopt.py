"""A task that HASTE's own queue app has started is taken over, and watched like one of ours."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import structlog

from shared.batch.types import Whose
from shared.errors import InvalidMessage
from shared.haste.messages import HasteMessage
from shared.haste.status_fields import CANCELLED, IN_PROGRESS, QUEUED
from shared.ledger.port import Versioned
from shared.protocol.record import Done, Record, Request, task_ids
from shared.requests import accept
from shared.worker import Worker

log = structlog.get_logger(__name__)

_ANOTHERS = (
    "{task!r} in Batch job {job!r} is neither a task of HASTE's own app with results in this storage account, nor one "
    "of this {kind}'s own; nothing has been read or ended there"
)


def adopt(worker: Worker, parsed: HasteMessage, message_id: str, asked: datetime) -> Versioned | None:
    """A message about a running task: take the task over if HASTE's own app has started it and HASTE's record names it.

    The record to go on with, or None if there is nothing more to do. Raises Conflict; InvalidMessage if the task is
    another tenant's.
    """
    job_id, task_id = parsed.polled
    version = worker.ledger.read(parsed.entity.key)
    record = version.record if version else None
    done = () if record is not None and _is_own_of(record, task_id) else worker.ledger.done(parsed.entity)
    if _is_own(record, done, task_id):
        log.info("message about a task of our own", task=task_id)
        return None
    whose = worker.batch.whose_task(job_id, task_id)
    if whose is Whose.ANOTHERS:
        raise InvalidMessage(_ANOTHERS.format(task=task_id, job=job_id, kind=parsed.entity.kind.value))
    shown = worker.haste.shown(parsed.entity)
    is_named = shown is not None and shown.task_id == task_id
    is_followed = _is_followed(record, done, task_id)
    if shown is None or not is_named or is_followed or shown.status not in (IN_PROGRESS, CANCELLED):
        log.info("message about another run's task", task=task_id, status=shown and shown.status)
        if (is_followed or (is_named and shown and shown.status == QUEUED)) and whose is Whose.OURS:
            worker.batch.terminate_task(job_id, task_id)  # a newer request takes its place
        return None
    # what Batch does not list any more is started again, in a Batch job of our own
    request = Request(task_id, asked, adopted_job_id=job_id if whose is Whose.OURS else None)
    version = accept.accept(worker, parsed.entity, request)
    if shown.status == CANCELLED:
        accept.cancel(worker, parsed.entity, message_id, asked)
        version = worker.ledger.read(parsed.entity.key)
    return version


def _is_own(record: Record | None, done: Iterable[Done], task_id: str) -> bool:
    """An attempt of the entity's live request, or of one that has ended, has this task. One taken over is HASTE's."""
    if record is not None and _is_own_of(record, task_id):
        return True
    return any(
        entry.run is not None and task_id in task_ids(entry.run.entity.kind, entry.entry_id, entry.run.attempt)
        for entry in done
    )


def _is_own_of(record: Record, task_id: str) -> bool:
    # until it is placed, a message about a task that is taken over is the one that took it over, come again
    return task_id in record.task_ids() and not record.is_taken_over


def _is_followed(record: Record | None, done: Iterable[Done], task_id: str) -> bool:
    """A request met this task in HASTE's record: the task is the one before it."""
    requests = () if record is None else (record.request, *record.next)
    return any(one.follows(task_id) for one in requests) or any(one.follows(task_id) for one in done)
