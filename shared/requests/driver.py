"""Moves one record on: read, observe, decide by the protocol's table, act. Handlers and timer share it.

Every write is conditional on the version the decision rests on; who loses such a write stops (Conflict).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from shared.batch.types import TaskView
from shared.errors import JobOver, NeedsOperator, NotOurs, Transient
from shared.haste.status_fields import CANCELLED
from shared.haste.visibility import Written
from shared.ledger.port import Versioned
from shared.limits import Policy
from shared.pools import care, recovery
from shared.pools.care import Blame
from shared.pools.readings import Readings
from shared.pools.verdict import judge
from shared.protocol import table, transitions
from shared.protocol.outcome import Outcome, Result, TaskEnd
from shared.protocol.record import EndReason, Record, State
from shared.protocol.table import Do, Seen, Step, Verdict
from shared.requests import attempt, finish, operator_waits, place
from shared.telemetry.logs import bound
from shared.telemetry.operator import tell_operator
from shared.worker import Worker

log = structlog.get_logger(__name__)

_BLAMED = {
    Blame.PROGRAM: Seen.ENDED_BY_ITSELF,
    Blame.NODE: Seen.ENDED_OTHERWISE,
    Blame.OPEN: Seen.NOT_JUDGED_YET,
}
_SENTENCES = {Result.CANCELLED: CANCELLED, Result.SUPERSEDED: "A newer request took its place"}


def advance(worker: Worker, version: Versioned, readings: Readings) -> None:
    """Take the record as far as it goes now. Raises Conflict (somebody else acts) or Transient (look again later)."""
    current: Versioned | None = version
    while current is not None:
        record = current.record
        with bound(
            tenant=worker.tenant,
            kind=record.entity.kind.value,
            job=record.entity.entity_id,
            attempt=record.attempt,
            pool=record.placement.pool_id if record.placement else None,
        ):
            try:
                current = _STATES[record.state](worker, current, readings)
            except NeedsOperator as fault:
                operator_waits.wait_for_operator(worker, record, fault)
                return


def _waiting(worker: Worker, version: Versioned, readings: Readings) -> Versioned | None:
    step = table.leave_waiting(version.record, worker.ledger.done(version.record.entity))
    log.info("waiting", step=step.do, why=step.why)
    if step.do is Do.PLACE:
        return place.place(worker, version, readings)
    return _finish(worker, version, step)


def _placed(worker: Worker, version: Versioned, readings: Readings) -> Versioned | None:
    record = version.record
    look = _observe(worker, record, readings)
    seen, task = look.seen, look.task
    verdict = Verdict()
    if task is not None and seen is Seen.LIVE:
        version = _noted(worker, version, task, readings)
        record = version.record
        verdict = judge(worker, record, task, readings)
    step = table.leave_placed(record, seen, verdict)
    if step.do is not Do.SHOW_PROGRESS:
        log.info("placed", step=step.do, why=step.why)
    match step.do:
        case Do.FINISH_REAL:
            return _finish_real(worker, version, look.there)
        case Do.END:
            if task is not None and seen is Seen.ENDED_OTHERWISE:
                record = transitions.with_loss_of(record, recovery.latest_run(record, task), worker.batch_now())
            return attempt.end(worker, replace(version, record=record), step.ends_because, step.why)
        case Do.CREATE_TASK:
            return attempt.submit(worker, version)
        case Do.SHOW_PROGRESS:
            if verdict.why and verdict.why != record.reason:
                log.info("queued", why=verdict.why)
                version = worker.ledger.replace(version, transitions.because(record, verdict.why))
            if attempt.show_progress(worker, version, look.there, verdict.why) is Written.GONE:
                return attempt.give_up_deleted(worker, version)
    return None


def _ending(worker: Worker, version: Versioned, readings: Readings) -> Versioned | None:
    record = version.record
    placed = record.placed
    look = _observe(worker, record, readings)
    seen, task = look.seen, look.task
    step = table.leave_ending(record, seen, _budget_left(worker, record))
    log.info("ending", step=step.do, why=step.why)
    match step.do:
        case Do.TERMINATE:
            _terminate(worker, record, task, readings)
        case Do.SPEND_ID:
            try:
                worker.batch.spend_task_id(placed.job_id, placed.task_id)
                worker.batch.terminate_task(placed.job_id, placed.task_id)
            except JobOver:
                # nobody can create in it any more, so the id can never run: as good as completed
                _note_gone(worker, placed.job_id)
                step = table.leave_ending(record, Seen.JOB_OVER, _budget_left(worker, record))
                return _left_ending(worker, version, step)
        case Do.FINISH_REAL:
            return _finish_real(worker, version, look.there)
        case Do.FINISH | Do.NEXT_ATTEMPT:
            if seen is Seen.JOB_OVER:
                _note_gone(worker, placed.job_id)
            return _left_ending(worker, version, step)
    return None


def _note_gone(worker: Worker, job_id: str) -> None:
    """Before the attempt is left: a create of it that is still under way must find no job of that id."""
    worker.notes.update(lambda notes: notes.with_job_gone(job_id, worker.now()))


def _left_ending(worker: Worker, version: Versioned, step: Step) -> Versioned | None:
    if step.do is Do.NEXT_ATTEMPT:
        attempt.next_attempt(worker, version)
        return None
    return _finish(worker, version, step)


def _finishing(worker: Worker, version: Versioned, _readings: Readings) -> Versioned | None:
    return finish.finish(worker, version)


_STATES: dict[State, Callable[[Worker, Versioned, Readings], Versioned | None]] = {
    State.WAITING: _waiting,
    State.PLACED: _placed,
    State.ENDING: _ending,
    State.FINISHING: _finishing,
}


@dataclass(frozen=True)
class _Look:
    """What a look at Batch has shown of the attempt's task: what that amounts to, and the task if it is there."""

    seen: Seen
    task: TaskView | None = None

    @property
    def there(self) -> TaskView:
        """The task. Raises LookupError if none was seen."""
        if self.task is None:
            raise LookupError(f"{self.seen}: there is no task to look at")
        return self.task


def _observe(worker: Worker, record: Record, readings: Readings) -> _Look:
    placed = record.placed
    try:
        task = readings.task(placed.job_id, placed.task_id)
    except JobOver:
        return _Look(Seen.JOB_OVER)
    except Transient as error:
        log.warning("task not read", error=str(error))
        return _Look(Seen.READ_FAILED)
    except NotOurs:
        raise  # told in the record: no later look finds out more
    except NeedsOperator as error:  # what the task does is not known, so nothing follows from it for the job
        tell_operator(error)
        return _Look(Seen.READ_FAILED)
    seen = recovery.seen(task, _policy(worker, record))
    if seen is Seen.ENDED_BY_ITSELF and task is not None and record.state is State.PLACED:
        seen = _BLAMED[care.blame(worker, record, task, readings)]
    return _Look(seen, task)


def _noted(worker: Worker, version: Versioned, task: TaskView, readings: Readings) -> Versioned:
    """The record with what is new about the task's runs: a new run, or the loss of the latest one."""
    record = version.record
    nodes = readings.nodes_if_suspect(record.placed.pool_id, task)
    why = recovery.find_loss(record, task, nodes, worker.batch_now())
    if why is not None:
        log.warning("preempted", why=why)
        lost = transitions.with_loss_of(record, recovery.latest_run(record, task), worker.batch_now())
        return worker.ledger.replace(version, transitions.because(lost, why))
    run = recovery.latest_run(record, task)
    if task.state != "running" or run is None or run == record.node_run:
        return version
    if recovery.was_interrupted_unseen(record, run):
        log.warning("was interrupted and runs again", since=run.started_at.isoformat())
        record = transitions.with_loss_of(record, record.node_run, worker.batch_now())
        sentence = f"{recovery.told_interruption(record)}, running again"
        note = worker.workloads[record.entity.kind].noted(record.run(), sentence, worker.now())
        worker.haste.show_progress(record, note)
    log.info("runs", node=run.node_id, since=run.started_at.isoformat())
    reason = f"running since {run.started_at:%Y-%m-%d %H:%M:%S} UTC"
    return worker.ledger.replace(version, transitions.running(record, run, reason))


def _budget_left(worker: Worker, record: Record) -> bool:
    most = _policy(worker, record).most_losses_per_pool
    losses = recovery.losses_by_pool(record)
    return any(losses.get(pool, 0) < most for pool in worker.placer.candidates(record.entity.kind))


def _policy(worker: Worker, record: Record) -> Policy:
    return worker.recovery[record.entity.kind]


def _terminate(worker: Worker, record: Record, task: TaskView | None, readings: Readings) -> None:
    placed = record.placed
    try:
        worker.batch.terminate_task(placed.job_id, placed.task_id)
    except JobOver:
        return  # the end of the job ends the task
    since = record.ending_since
    if task is None or task.state != "running" or since is None:
        return
    if worker.now() - since < worker.limits.stuck:
        return
    if recovery.is_stuck(record, task, readings.nodes(placed.pool_id)):
        log.warning("stuck in running on a node that is lost: deleted", task=placed.task_id)
        worker.batch.delete_stuck_task(placed.job_id, placed.task_id)


def _finish_real(worker: Worker, version: Versioned, task: TaskView) -> Versioned:
    """The task ended by itself: what that amounts to is judged by the results it left."""
    record = version.record
    end = TaskEnd(task.succeeded, task.exit_code, task.failure_code, task.ended_at or worker.batch_now())
    outcome = worker.workloads[record.entity.kind].outcome(record.run(), end)
    log.info("ended", result=outcome.result, exit_code=task.exit_code, failure=task.failure_code)
    return _store_outcome(worker, version, outcome)


def _finish(worker: Worker, version: Versioned, step: Step) -> Versioned:
    """An end that no result is needed for."""
    if step.outcome is not None:
        return _store_outcome(worker, version, step.outcome)
    result = step.ends_as
    sentence = _SENTENCES.get(result, step.why)
    if result is Result.FAILED and version.record.end_reason is EndReason.MOVE:
        sentence = f"Interrupted too often ({recovery.told_losses(version.record)})"
    return _store_outcome(worker, version, Outcome(result, sentence, worker.now()))


def _store_outcome(worker: Worker, version: Versioned, outcome: Outcome) -> Versioned:
    record = transitions.finishing(version.record, outcome, worker.now() + timedelta(seconds=30))
    return worker.ledger.replace(version, record)
