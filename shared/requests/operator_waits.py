"""A job that cannot go on before an operator has mended something: it stays where it is, and says so."""

from __future__ import annotations

from datetime import timedelta

import structlog

from shared.errors import NeedsOperator, WorkerError
from shared.protocol import transitions
from shared.protocol.record import Record, State
from shared.requests.place import pause_after
from shared.telemetry.operator import tell_operator
from shared.worker import Worker

log = structlog.get_logger(__name__)

#: What is mended is noticed within this time; what waits costs little.
_LONGEST_WAIT = timedelta(minutes=10)


def wait_for_operator(worker: Worker, record: Record, fault: NeedsOperator) -> None:
    """The record stays where it is and says what has to be mended. One without a task pauses, like any that waits."""
    reason = tell_operator(fault)
    latest = worker.ledger.read(record.entity.key)
    if latest is None:
        return
    waiting = transitions.because(latest.record, reason)
    is_the_one = (waiting.request.request_id, waiting.attempt) == (record.request.request_id, record.attempt)
    is_wanted = is_the_one and not waiting.is_unwanted
    pauses = waiting.state is State.WAITING and is_wanted
    if pauses:
        not_before = worker.now() + pause_after(waiting, _LONGEST_WAIT)
        waiting = transitions.waiting_on(waiting, reason, not_before, stands_aside=True)
    if pauses or reason != latest.record.reason:
        worker.ledger.replace(latest, waiting)
    if pauses or (waiting.state is State.PLACED and is_wanted and waiting.node_run is None):
        _show(worker, waiting)


def _show(worker: Worker, record: Record) -> None:
    """The user is told that it waits, and not more: what has to be mended is the operator's affair."""
    note = worker.workloads[record.entity.kind].noted(record.run(), "Waiting for an operator", worker.now())
    try:
        worker.haste.show_progress(record, note)
    except WorkerError as error:  # what denies the job may deny this as well
        log.warning("not shown", error=str(error))
