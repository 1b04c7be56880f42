"""From waiting to a placement: checks, the pool, the Batch job; or why the request waits on, or ends."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import structlog

from shared.errors import JobDisabled, JobOver, NotThere, NotYet, QuotaReached, Refused, Transient
from shared.ledger.port import Versioned
from shared.pools import waking
from shared.pools.choosing import choose, make_sure_of_job
from shared.pools.readings import Readings
from shared.protocol import transitions
from shared.protocol.outcome import Outcome, Result
from shared.protocol.record import Placement, Record, State, task_id
from shared.requests.accept import RESUME_AFTER
from shared.requests.attempt import RECORD_GONE, send_resume, submit
from shared.telemetry.operator import FOR_OPERATOR
from shared.worker import Worker

log = structlog.get_logger(__name__)

#: A HASTE record that is not there yet is looked for this often.
_LOOK_AGAIN = timedelta(seconds=5)
#: Why a job waits where a tenant's live tasks are limited: the timer alone counts them.
_AWAITS_ADMISSION = "waits for its turn: WORKER_TENANT_MAX_LIVE_TASKS limits the tenant's live tasks"
_FIRST_WAIT = timedelta(minutes=1)
_LONGEST_WAIT = timedelta(hours=1)


def place(worker: Worker, version: Versioned, readings: Readings) -> Versioned | None:
    """Check, route, make sure of the Batch job, store the placement, and only then add the task."""
    record = version.record
    kind = record.entity.kind
    name = task_id(kind, record.request.request_id, record.attempt)
    adopted_job_id = record.request.adopted_job_id if record.is_taken_over else None
    if adopted_job_id is not None:
        placement = worker.placer.adopted(adopted_job_id, name, worker.batch_now())
    else:
        try:
            worker.workloads[kind].check(record.entity)
        except NotThere as missing:
            return _wait_for_record(worker, version, missing)
        except NotYet as missing:
            return wait(worker, version, str(missing), aside_for=str(missing))
        except Refused as refusal:
            if record.request.is_follow_up and worker.now() < record.request.asked + worker.limits.record_patience:
                # the run before has just succeeded: what says otherwise is a late save, and is mended
                _look_again(worker, version, refusal.sentence)
                return None
            return _refused(worker, version, refusal)
        if worker.limits.most_live_tasks and not readings.may_admit:
            return wait(worker, version, _AWAITS_ADMISSION, timedelta(0))
        ahead = _ahead(record, readings)
        if ahead:
            why = f"{ahead} older jobs of its class wait for a place: they are tried first"
            return wait(worker, version, why, timedelta(0))
        try:
            found = _find_place(worker, record, readings, name)
        except QuotaReached as quota:
            return wait(worker, version, f"waiting for quota ({quota.code})")
        except Refused as refusal:
            return _refused(worker, version, refusal)
        except (Transient, JobOver) as fault:
            _look_again(worker, version, str(fault))
            return None
        if isinstance(found, str):
            return wait(worker, version, found)
        placement = found
    shown = worker.haste.shown(record.entity)
    placed = transitions.placed(record, placement, None if shown is None else shown.task_id)
    version = worker.ledger.replace(version, placed)
    # a task that was taken over is in Batch already: it is looked at first, and nothing is prepared for it
    return version if adopted_job_id is not None else submit(worker, version)


def _find_place(worker: Worker, record: Record, readings: Readings, name: str) -> Placement | str:
    """A pool with a Batch job that takes the task; or why the job must wait. Raises Refused, Transient and others."""
    closed: dict[str, JobDisabled | QuotaReached] = {}
    while True:
        decision = choose(worker, record, readings, closed)
        if decision.pool_id is None:
            why = "; ".join((decision.why, *decision.rejected, *waking.advice(decision)))
            if decision.never:
                raise Refused(why)
            return why
        if decision.pool_id in closed:
            raise closed[decision.pool_id]
        pool = waking.managed_pool(worker, decision.pool_id)
        if isinstance(pool, str):
            return pool
        try:
            placement = make_sure_of_job(worker, record, decision, readings, name)
        except (JobDisabled, QuotaReached) as fault:
            closed[decision.pool_id] = fault
            continue
        unready = waking.make_ready(worker, pool)
        if unready is not None:
            return unready
        log.info("routed", chosen=decision.pool_id, why=decision.why, rejected=list(decision.rejected))
        return placement


def _ahead(record: Record, readings: Readings) -> int:
    """How many older jobs of its class wait for a place, when this one comes for the first time.

    It is due in the next run of the timer, which tries those first. After that it is not held back again, so that a job
    which no free pool suits holds nobody up.
    """
    if record.waits:
        return 0
    return sum(
        one.state is State.WAITING
        and not one.is_unwanted
        and one.job_class == record.entity.kind.job_class
        and one.holds_back(record.request.asked)
        for one in readings.live()
    )


def wait(
    worker: Worker, version: Versioned, why: str, pause: timedelta | None = None, aside_for: str = ""
) -> Versioned | None:
    """Stay waiting, with the reason and the time of the next look (doubling and jittered, unless it is given).

    `aside_for`: what it waits for, in words for the user, if that is no place.
    """
    record = version.record
    if pause is None:
        pause = pause_after(record, _LONGEST_WAIT)
    log.warning("waits", why=why, seconds=round(pause.total_seconds()))
    not_before = worker.now() + pause
    waiting = transitions.waiting_on(record, why, not_before, stands_aside=bool(aside_for))
    worker.ledger.replace(version, waiting)
    if record.waits == 0 or record.reason.startswith(FOR_OPERATOR):
        note = worker.workloads[record.entity.kind].noted(
            record.run(), aside_for or "Waiting for capacity", worker.now()
        )
        worker.haste.show_progress(record, note)
    return None


def pause_after(record: Record, longest: timedelta) -> timedelta:
    """How long a job that waits is left alone: twice as long each time, jittered."""
    pause: timedelta = min(_FIRST_WAIT * 2 ** min(record.waits, 10), longest)
    return pause * random.uniform(0.9, 1.1)  # noqa: S311  (spreads load, guards nothing)


def _look_again(worker: Worker, version: Versioned, why: str) -> None:
    """Batch does not answer: that passes, so the next look is soon."""
    log.warning("waits", why=why)
    again = transitions.looked_at_again(version.record, worker.now() + RESUME_AFTER, why)
    worker.ledger.replace(version, again)


def _wait_for_record(worker: Worker, version: Versioned, missing: NotThere) -> Versioned | None:
    """HASTE's API saves its record after its message, so a record that is not there may still come."""
    record = version.record
    # both times are of the storage's clock: that of this host may be ahead of it
    if version.written_at - record.request.asked >= worker.limits.record_patience:
        was_there = record.attempt > 1 or record.waits > 0 or record.request.is_follow_up
        why = RECORD_GONE if was_there else "HASTE's record never came"
        if was_there:
            version = replace(version, record=transitions.without_haste_record(record))
        return _refused(worker, version, Refused(f"{why} ({missing})"))
    log.info("HASTE's record is not there yet", name=missing.name)
    waiting = transitions.looked_at_again(record, worker.now() + RESUME_AFTER, str(missing))
    worker.ledger.replace(version, waiting)
    send_resume(worker, record, int(_LOOK_AGAIN.total_seconds()))
    return None


def _refused(worker: Worker, version: Versioned, refusal: Refused) -> Versioned:
    log.warning("refused", why=refusal.sentence)
    outcome = Outcome(Result.FAILED, refusal.sentence, worker.now())
    return worker.ledger.replace(version, transitions.finishing(version.record, outcome, outcome.at))
