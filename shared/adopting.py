"""A task that HASTE's own queue app has started is taken over, and watched like one of ours."""

from __future__ import annotations

from datetime import datetime

import structlog

from shared import accepting
from shared.haste.messages import HasteMessage
from shared.ledger.port import Versioned
from shared.protocol.record import Request
from shared.worker import Worker

log = structlog.get_logger(__name__)


def adopt(worker: Worker, parsed: HasteMessage, message_id: str, asked: datetime) -> Versioned | None:
    """A poll message of HASTE's own app: take its running task over, if HASTE's record still names it.

    The record to go on with, or None if there is nothing more to do. Raises Conflict.
    """
    assert parsed.task_id is not None
    assert parsed.job_id is not None
    shown = worker.haste.shown(parsed.entity)
    is_named = shown is not None and shown.task_id == parsed.task_id
    if shown is None or not is_named or shown.status not in ("InProgress", "Cancelled"):
        log.info("poll message for another run's task", task=parsed.task_id, status=shown and shown.status)
        if (is_named and shown and shown.status == "Queued") or _is_followed(worker, parsed):
            worker.batch.terminate_task(parsed.job_id, parsed.task_id)  # a newer request takes its place
        return None
    request = Request(parsed.task_id, asked, adopted_job_id=parsed.job_id)
    version = accepting.accept(worker, parsed.entity, request)
    if shown.status == "Cancelled":
        accepting.cancel(worker, parsed.entity, message_id, asked)
        version = worker.ledger.read(parsed.entity.key)
    return version


def _is_followed(worker: Worker, parsed: HasteMessage) -> bool:
    """The live request met this task in HASTE's record: it is the one before."""
    version = worker.ledger.read(parsed.entity.key)
    return version is not None and parsed.task_id in version.record.request.held_task_ids
