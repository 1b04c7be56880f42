"""When a Batch job of ours has had its time: pure decisions with their reasons.

A job holds the tasks of one ISO week. New work goes to this week's jobs only, so one whose week has been over for a
day gets no more of it: a placement that was decided before has been stored, or its handler is long dead (handlers live
for minutes). Ending such a job can therefore meet no task on its way; if it did, that task's record would see the job
over and move on.

Deleting a job frees its id, and the ids of its tasks with it. Nobody makes the job id again, because it names a week
that is past (the clocks of the worker and of Batch would have to differ by more than a day), and nobody adds a task to
it that could run twice, because that takes the job. The 24 hours are for whoever acted on the job last and has stalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shared.batch.types import JobState, JobView, TaskView
from shared.pools.job_names import week_named, week_of

_WEEK = timedelta(days=7)
#: A job is left alone until its week has been over for so long.
WEEK_OVER_FOR = timedelta(days=1)
#: Neither a task id nor a job id is freed sooner after the last attempt in the job has ended.
KEPT_AFTER_LAST_ATTEMPT = timedelta(hours=24)
#: Batch forgets a completed task after seven days; by then its record must have seen it.
RECONCILED_WITHIN = timedelta(days=5)


class Fate(StrEnum):
    """What is done with a job."""

    KEEP = "keep"
    END = "end"
    DELETE = "delete"


@dataclass(frozen=True)
class Verdict:
    """What is done with a job, and why."""

    fate: Fate
    why: str


def has_had_its_time(job: JobView, now: datetime) -> bool:
    """The job's week, by its name and by the day it was made (whichever is later), has been over for a day."""
    weeks = [week for week in (week_named(job.job_id), job.created_at and week_of(job.created_at)) if week is not None]
    return bool(weeks) and now >= max(weeks) + _WEEK + WEEK_OVER_FOR


def asks_for_ended_tasks(job: JobView, now: datetime) -> bool:
    """Whether the verdict depends on tasks that have ended: never of a job that is open, or ended lately itself."""
    return job.state is JobState.OVER and job.ended_at is not None and now - job.ended_at >= KEPT_AFTER_LAST_ATTEMPT


def judge(job: JobView, tasks: Sequence[TaskView], now: datetime) -> Verdict:
    """The fate of a job that has had its time and that no live record names. `tasks` are its live ones, or all."""
    if job.state is not JobState.OVER:
        if any(task.state != "completed" for task in tasks):
            return Verdict(Fate.KEEP, "it holds a task that has not ended")
        return Verdict(Fate.END, "its week is over and it holds no live task")
    if job.ended_at is None:
        return Verdict(Fate.KEEP, "it is ending or being deleted")
    last_end = max([job.ended_at, *(task.ended_at for task in tasks if task.ended_at is not None)])
    if now - last_end < KEPT_AFTER_LAST_ATTEMPT:
        return Verdict(Fate.KEEP, f"its last attempt ended at {last_end:%Y-%m-%d %H:%M}")
    return Verdict(Fate.DELETE, f"it ended, with its last attempt, at {last_end:%Y-%m-%d %H:%M}")


def is_reconciled_late(task: TaskView, now: datetime) -> bool:
    """A live record still waits for this task, although it completed days ago."""
    return task.state == "completed" and task.ended_at is not None and now - task.ended_at > RECONCILED_WITHIN
