"""A second line only: live tasks of ours that no record names. No reachable state of the protocol needs it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import timedelta

import structlog

from shared.errors import JobOver, WorkerError
from shared.pools.readings import Readings
from shared.protocol.record import State
from shared.worker import Worker

log = structlog.get_logger(__name__)

_OLD_ENOUGH = timedelta(minutes=30)


def sweep(worker: Worker, readings: Readings, job_ids: Iterable[str], *, may_end: bool) -> list[str]:
    """Ids of orphans in these Batch jobs; terminated if `may_end` (the jobs are this tenant's alone), else reported.

    The tasks are listed first (by this run or before), then the ledger, so that a task just placed is never taken for
    one; what looks like one is asked about once more, as it may have ended since. A Batch job or task that cannot be
    read, or a task that cannot be ended, keeps no other from its turn. The task of a record that stands still is none;
    while such a record does not tell its task, nothing is ended.
    """
    old = worker.batch_now() - _OLD_ENOUGH
    live: list[tuple[str, str]] = []
    for job_id in job_ids:
        try:
            tasks = readings.live_tasks(job_id)
        except JobOver:
            continue
        except WorkerError as error:
            log.warning("Batch job not swept", batch_job=job_id, error=str(error))
            continue
        live += [
            (job_id, task.task_id)
            for task in tasks.values()
            if task.created_at and task.created_at < old and _is_ours(task.task_id)
        ]
    if not live:
        return []
    live_records = worker.ledger.live()
    named = {one.task_id for one in live_records if one.state in (State.PLACED, State.ENDING)}
    named |= {one.task_id for one in live_records.standing_still}
    may_end = may_end and live_records.names_every_task
    orphans = []
    for job_id, task_id in live:
        if task_id in named:
            continue
        try:
            if _has_ended(worker, job_id, task_id):
                continue
            log.error("orphan task", batch_job=job_id, task=task_id, ended=may_end)
            orphans.append(task_id)
            if may_end:
                worker.batch.terminate_task(job_id, task_id)
        except JobOver:
            continue  # the end of the job ends the task
        except WorkerError as error:
            log.warning("orphan task left to the next run", batch_job=job_id, task=task_id, error=str(error))
    return orphans


def _has_ended(worker: Worker, job_id: str, task_id: str) -> bool:
    try:
        task = worker.batch.task(job_id, task_id)
    except JobOver:
        return True
    return task is None or task.state == "completed"


def _is_ours(task_id: str) -> bool:
    """HASTE's own app draws random ids (uuid4) after the same prefixes; ours are derived (uuid5)."""
    try:
        return uuid.UUID(task_id.partition("-")[2]).version == 5
    except ValueError:
        return False
