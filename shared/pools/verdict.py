"""Whether a live attempt goes on where it is: gathers what recovery decides on, for one record."""

from __future__ import annotations

from collections.abc import Mapping

from shared.batch.types import TaskView
from shared.errors import JobDisabled, NeedsOperator, QuotaReached, WorkerError
from shared.pools import recovery
from shared.pools.choosing import choose, make_sure_of_job
from shared.pools.readings import Readings
from shared.pools.routing import Decision
from shared.protocol.record import EndReason, Record
from shared.protocol.table import Verdict
from shared.telemetry.operator import tell_operator
from shared.worker import Worker


def judge(worker: Worker, record: Record, task: TaskView, readings: Readings) -> Verdict:
    """Whether a live attempt should go on where it is."""
    policy, now = worker.recovery[record.entity.kind], worker.batch_now()
    if recovery.credentials_run_out(record, task, policy, now):
        return Verdict(EndReason.MOVE, "its run has begun so late, if at all, that its credentials could end first")
    is_lost = recovery.is_lost(record, task) or recovery.budget_is_spent(record, policy)
    if not is_lost and not recovery.is_queued_too_long(record, task, policy, now):
        return Verdict()
    try:
        return _judge_elsewhere(worker, record, task, readings, is_lost=is_lost)
    except NeedsOperator as fault:  # nothing follows for the job from what is denied
        reason = tell_operator(fault)
        return Verdict(None, "" if task.state == "running" else reason)


def _judge_elsewhere(worker: Worker, record: Record, task: TaskView, readings: Readings, *, is_lost: bool) -> Verdict:
    """Whether an attempt that is lost, or queued too long, goes where there is room."""
    policy, now = worker.recovery[record.entity.kind], worker.batch_now()
    candidates = worker.placer.candidates(record.entity.kind)
    exists = _pool_exists(record, readings)
    closed: dict[str, WorkerError] = {}
    while True:
        elsewhere = _elsewhere(worker, record, readings, closed)
        if is_lost:
            is_stuck = recovery.is_stuck_for(worker.limits.stuck, record, task, now)
            verdict = recovery.judge_lost(
                record, elsewhere, candidates, policy, now, pool_exists=exists, is_stuck=is_stuck
            )
        else:
            verdict = recovery.judge_queued(record, elsewhere, pool_exists=exists)
        if verdict.end_reason is not EndReason.MOVE or elsewhere is None or elsewhere.pool_id is None:
            return verdict
        try:
            make_sure_of_job(worker, record, elsewhere, readings)
        except (JobDisabled, QuotaReached) as fault:
            closed[elsewhere.pool_id] = fault
        else:
            readings.taken()[elsewhere.pool_id] += 1  # no more jobs move in one tick than there are free slots
            return verdict


def _pool_exists(record: Record, readings: Readings) -> bool:
    """Whether the attempt's pool is there; a reading that failed does not say that it is not."""
    pools = readings.pools().pools
    return pools is None or record.placed.pool_id in pools


def _elsewhere(
    worker: Worker, record: Record, readings: Readings, closed: Mapping[str, WorkerError]
) -> Decision | None:
    """Where the next attempt would go; None if that is here, or a pool that takes no task of ours."""
    here = record.placed.pool_id
    if list(worker.placer.candidates(record.entity.kind)) == [here]:
        return None
    decision = choose(worker, record, readings, closed, but=here)
    return None if decision.pool_id == here or decision.pool_id in closed else decision
