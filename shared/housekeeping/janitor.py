"""Keeps house in Batch, once every few minutes: jobs that have had their time, and HASTE's disabled ones.

Bounded: what is left over is done by the next run. Everything here may be repeated and may run beside another timer.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

import structlog

from shared.batch.types import JobState, JobView, TaskView
from shared.errors import JobOver, WorkerError
from shared.housekeeping import job_ends
from shared.housekeeping.job_ends import Fate
from shared.ledger.port import LiveSummary
from shared.pools.readings import Readings
from shared.protocol.record import State
from shared.worker import Worker

log = structlog.get_logger(__name__)

MOST_JOBS = 100


def tidy(worker: Worker, readings: Readings, jobs: Iterable[JobView]) -> None:
    """`jobs` are this tenant's own, as `BatchService.jobs_of` lists them. Tasks are read as `readings` has them."""
    own = {job.job_id: job for job in jobs}
    live = worker.ledger.live()
    for_tasks = {one.job_id for one in (*live, *live.standing_still)}
    if live.names_every_task:
        _end_old_jobs(worker, readings, [job for job in own.values() if job.job_id not in for_tasks])
    else:  # a task id that is freed could be used again by the record that does not name it
        log.warning("old Batch jobs are kept: a record stands still that does not name its own")
    _look_at_live_jobs(worker, readings, live, own)


def _end_old_jobs(worker: Worker, readings: Readings, unnamed: Iterable[JobView]) -> None:
    now = worker.batch_now()
    old = [job for job in unnamed if job_ends.has_had_its_time(job, now)]
    for job in old[:MOST_JOBS]:
        try:
            verdict = job_ends.judge(job, _tasks_to_judge(worker, readings, job, now), now)
            if verdict.fate is Fate.END:
                worker.batch.terminate_job(job.job_id)
            elif verdict.fate is Fate.DELETE:
                worker.batch.delete_job(job.job_id)
        except JobOver:
            continue  # it has gone meanwhile
        except WorkerError as error:
            log.warning("Batch job left to the next run", batch_job=job.job_id, error=str(error))
            continue
        log.info("Batch job of an earlier week", batch_job=job.job_id, fate=verdict.fate, why=verdict.why)


def _tasks_to_judge(worker: Worker, readings: Readings, job: JobView, now: datetime) -> list[TaskView]:
    """All that a job has held in its week are asked for once, before it is deleted."""
    if job.state is not JobState.OVER:
        return list(readings.live_tasks(job.job_id).values())
    return worker.batch.tasks(job.job_id) if job_ends.asks_for_ended_tasks(job, now) else []


def _look_at_live_jobs(worker: Worker, readings: Readings, live: Iterable[LiveSummary], own: Container[str]) -> None:
    """Each job that holds a task of a live record: has HASTE disabled it, and has the task completed days ago?"""
    by_job: dict[str, dict[str, LiveSummary]] = {}
    for one in live:
        if one.state in (State.PLACED, State.ENDING) and one.job_id is not None and one.task_id is not None:
            by_job.setdefault(one.job_id, {})[one.task_id] = one
    for job_id, named in list(by_job.items())[:MOST_JOBS]:
        try:
            found = [readings.listed(job_id, task_id) for task_id in named]
            ours = [task for task in found if task is not None]
            if job_id not in own:
                _enable_if_hastes(worker, job_id, ours)
        except WorkerError as error:
            log.warning("Batch job not looked at", batch_job=job_id, error=str(error))
            continue
        for task in ours:
            if task.ended_at is not None and job_ends.is_reconciled_late(task, worker.batch_now()):
                log.error(
                    "completed task not reconciled; Batch forgets it after 7 days",
                    record=named[task.task_id].key,
                    batch_job=job_id,
                    task=task.task_id,
                    ended_at=task.ended_at.isoformat(),
                )


def _enable_if_hastes(worker: Worker, job_id: str, ours: Iterable[TaskView]) -> None:
    """HASTE's app disables its job when one task ends, whatever else is in it; ours only an operator disables."""
    if all(task.state == "completed" for task in ours):
        return
    job = worker.batch.job(job_id)
    if job.tenant is None and job.state is JobState.DISABLED:
        worker.batch.enable_job(job_id)
        log.warning("disabled Batch job enabled again: it holds a live task of ours", batch_job=job_id)
