"""The timer's tick: one ledger list, one task list per Batch job, and a look at what is due. Idempotent and bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from shared import driver
from shared.errors import Conflict, Transient
from shared.ledger.port import LiveSummary
from shared.protocol.record import State
from shared.readings import Readings
from shared.submitting import send_resume
from shared.worker import Worker

log = structlog.get_logger(__name__)

#: A tick begins no new record after this; the rest is looked at by the next one.
MOST_SECONDS = 90
_WOKEN_AGAIN_AFTER = timedelta(minutes=5)


def tick(worker: Worker, monotonic_seconds: Callable[[], float]) -> int:
    """Look at every live record that is due. Returns how many are live.

    A record that cannot be dealt with now never keeps the others waiting; what went wrong unexpectedly is raised at
    the end, so that the invocation shows as failed.
    """
    until = monotonic_seconds() + MOST_SECONDS
    now = worker.now()
    readings = Readings(worker.batch, by_list=True)
    live = list(worker.ledger.live())
    faults: list[Exception] = []
    for summary in sorted(live, key=lambda one: one.not_before):
        if monotonic_seconds() > until:
            log.warning("tick cut short", live=len(live))
            break
        if not _is_due(summary, now) or _is_calm(worker, summary, readings, now):
            continue
        try:
            _look_at(worker, summary, readings)
        except (Conflict, Transient) as error:
            log.warning("left for the next tick", record=summary.key, error=str(error))
        except Exception as error:  # one broken record must not stop the others; raised below
            log.exception("record not looked at", record=summary.key)
            faults.append(error)
    if faults:
        raise ExceptionGroup("records that could not be looked at", faults)
    return len(live)


def _is_due(summary: LiveSummary, now: datetime) -> bool:
    return summary.state in (State.PLACED, State.ENDING) or summary.not_before <= now


def _is_calm(worker: Worker, summary: LiveSummary, readings: Readings, now: datetime) -> bool:
    """A live task about which nothing is new: its record need not be read before its progress is due again."""
    if summary.state is not State.PLACED or summary.is_unwanted:
        return False
    if summary.job_id is None or summary.task_id is None or summary.pool_id is None:
        return False
    state = readings.is_calm(summary.job_id, summary.task_id, summary.pool_id)
    return state is not None and not worker.progress_pace.is_due(f"{summary.task_id} {state}", now)


def _look_at(worker: Worker, summary: LiveSummary, readings: Readings) -> None:
    version = worker.ledger.read(summary.key)
    if version is None:
        return
    record = version.record
    if record.state is not State.WAITING:
        driver.advance(worker, version, readings)
    elif record.not_before <= worker.now():
        if record.is_unwanted:
            driver.advance(worker, version, readings)  # it ends here, or is ended from where it is
            return
        # first the next look, then the message: a handler that takes it up must not lose its write to us
        waiting = replace(record, not_before=worker.now() + _WOKEN_AGAIN_AFTER)
        worker.ledger.replace(version, waiting)
        send_resume(worker, waiting)
