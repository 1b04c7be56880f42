"""The life of an attempt with a placement: its task is added, shown, ended, and followed by the next one."""

from __future__ import annotations

from dataclasses import replace

import structlog

from shared.batch.types import TaskView
from shared.errors import JobOver, NotThere, NotYet, Refused
from shared.haste.visibility import Written
from shared.haste.workload import Change
from shared.ledger.port import Versioned
from shared.pools import recovery
from shared.protocol import transitions
from shared.protocol.record import EndReason, Record
from shared.requests.accept import RESUME_AFTER
from shared.requests.node_files import NodeFiles
from shared.requests.own_message import Resume, to_text
from shared.worker import Worker

log = structlog.get_logger(__name__)

RECORD_GONE = "HASTE's record was deleted"


def submit(worker: Worker, version: Versioned) -> Versioned | None:
    """Add the task of the stored placement. The same id again is the same answer, so anyone may repeat this."""
    record = version.record
    placed = record.placed
    kind = record.entity.kind
    workload = worker.workloads[kind]
    try:
        transfer = worker.tasks.transfer(kind)  # fresh credentials for every attempt to add the task
        spec = workload.prepare(record.run(), transfer.resign)
        worker.batch.create_task(placed.job_id, worker.tasks.body(placed.task_id, kind, spec, transfer))
    except JobOver as over:
        worker.placer.forget(placed.job_id)
        return end(worker, version, EndReason.MOVE, f"the Batch job is over ({over})")
    except NotYet as missing:
        return end(worker, version, EndReason.MOVE, str(missing))
    except Refused as refusal:
        return end(worker, version, EndReason.GIVE_UP, refusal.sentence)
    except NotThere:
        return give_up_deleted(worker, version)
    log.info("submitted", batch_job=placed.job_id, task=placed.task_id, why=placed.why)
    if record.reason != placed.why:  # it had to wait for something, which is over
        version = worker.ledger.replace(version, transitions.because(record, placed.why))
    written = worker.haste.show_progress(version.record, workload.submitted(record.run(), placed.at))
    return give_up_deleted(worker, version) if written is Written.GONE else None


def show_progress(worker: Worker, version: Versioned, task: TaskView, why_waiting: str) -> Written:
    """Show a live attempt in HASTE's record: that it is submitted, how far it is, or why it waits.

    HASTE's record is asked for every time, also when there is nothing new to write: so its deletion is noticed.
    """
    record = version.record
    placed = record.placed
    workload = worker.workloads[record.entity.kind]
    run, at = record.run(), worker.now()
    submitted = workload.submitted(run, placed.at)
    change: Change | None = None
    if why_waiting:
        was_lost = recovery.is_lost(record, task)
        sentence = f"{recovery.told_interruption(record)}, waiting to run again" if was_lost else "Waiting for capacity"
        noted = workload.noted(run, sentence, at)
        change = lambda shown: noted(submitted(shown))  # noqa: E731
    elif task.state == "running":
        change = workload.progress(run, NodeFiles(worker, placed.job_id, placed.task_id), at)  # submitted, and more
    return worker.haste.show_progress(record, change or submitted)


def give_up_deleted(worker: Worker, version: Versioned) -> Versioned:
    """The user has deleted the model, layer or project: nobody waits for this attempt any more."""
    gone = replace(version, record=transitions.without_haste_record(version.record))
    return end(worker, gone, EndReason.GIVE_UP, RECORD_GONE)


def end(worker: Worker, version: Versioned, reason: EndReason, why: str) -> Versioned:
    """Begin to end this attempt."""
    log.info("ending the attempt", reason=reason, why=why)
    return worker.ledger.replace(version, transitions.ending(version.record, reason, why, worker.now()))


def next_attempt(worker: Worker, version: Versioned) -> None:
    """The old id is spent: the next attempt waits, and goes through the worker's own queue."""
    record = version.record
    waiting = transitions.next_attempt(record, worker.now() + RESUME_AFTER)
    version = worker.ledger.replace(version, waiting)
    run = replace(waiting.run(), attempt=record.attempt, task_id=record.placed.task_id)
    sentence = f"{recovery.told_interruption(record)}, moving to other hardware"
    note = worker.workloads[record.entity.kind].noted(run, sentence, worker.now())
    worker.haste.show_progress(waiting, note)
    send_resume(worker, waiting)


def send_resume(worker: Worker, record: Record, after_seconds: int = 0) -> None:
    """Ask, through the worker's own queue, that this waiting attempt be taken up."""
    message = Resume(record.entity, record.request.request_id, record.attempt)
    worker.own_queue.send(to_text(message), after_seconds)
