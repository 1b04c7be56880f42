"""The job objects inside HASTE's records: one field for the latest run of a kind of work, or a list of all runs.

What changes a record changes the one it is given, never a job object in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeGuard

from shared.haste import records
from shared.haste.log_text import timestamp
from shared.haste.status_fields import FAILED, IN_PROGRESS, TERMINAL
from shared.haste.workload import JsonObject, Shown
from shared.protocol.outcome import Run

#: Makes the job object of one kind: (run, start) -> a job in progress.
NewJob = Callable[[Run, datetime], JsonObject]


@dataclass(frozen=True)
class LatestJob:
    """The field that holds the job object of the latest run, made by `new`."""

    field: str
    new: NewJob

    def shown(self, record: JsonObject, status_field: str) -> Shown:
        """What the record says about the work."""
        job = records.child(record, self.field) or {}
        return Shown(records.word(record, status_field), records.word(job, "taskId"), records.word(job, "status"))

    def has(self, record: JsonObject, run: Run) -> bool:
        """Is the run's task named?"""
        return _names_task(records.child(record, self.field), run)

    def place(self, record: JsonObject, run: Run, at: datetime) -> None:
        """The run's job as it stands while its task is live."""
        job = records.child(record, self.field)
        record[self.field] = _placed(job if _names_task(job, run) else self.new(run, at), run)

    def end(self, record: JsonObject, run: Run, status: str, at: datetime) -> None:
        """The end of the run. Without a task no job is made up, and one that has ended stays."""
        job = records.child(record, self.field)
        if run.task_id is not None:
            job = _ended(job if _names_task(job, run) else self.new(run, run.placed_at or at), status, at)
        elif job is not None and _is_open(job):
            job = _ended(job, status, at)
        record[self.field] = job

    def set_logs(self, record: JsonObject, run: Run, log: str) -> None:
        """The log text, in the run's job as well."""
        job = records.child(record, self.field)
        if _names_task(job, run):
            record[self.field] = {**job, "logs": log}


@dataclass(frozen=True)
class JobHistory:
    """The field that holds a list with the job object of every run, and the field that names the current run's task."""

    field: str
    current: str
    new: NewJob

    def shown(self, record: JsonObject, status_field: str) -> Shown:
        """What the record says about the work and its current run."""
        task_id = records.word(record, self.current)
        job_status = None
        for job in records.children(record, self.field):
            if task_id is not None and job.get("taskId") == task_id:
                job_status = records.word(job, "status")
        return Shown(records.word(record, status_field), task_id, job_status)

    def has(self, record: JsonObject, run: Run) -> bool:
        """Is there an entry of the run's task?"""
        return any(_names_task(job, run) for job in records.children(record, self.field))

    def place(self, record: JsonObject, run: Run, at: datetime) -> None:
        """The run's entry as it stands while its task is live. An earlier attempt has lost its task without an end."""
        entries = self._with_entry(record, run, at)
        record[self.field] = [_placed(job, run) if _names_task(job, run) else _closed(job, at) for job in entries]
        record[self.current] = run.task_id

    def end(self, record: JsonObject, run: Run, status: str, at: datetime) -> None:
        """The end of the run; its entry is added if it was lost, and no other entry stays open."""
        if run.task_id is None:
            entries = records.children(record, self.field)
            record[self.field] = [_ended(job, status, at) if _is_open(job) else job for job in entries]
            return
        entries = self._with_entry(record, run, run.placed_at or at)
        record[self.field] = [_ended(job, status, at) if _names_task(job, run) else _closed(job, at) for job in entries]
        record[self.current] = run.task_id

    def set_logs(self, record: JsonObject, run: Run, log: str) -> None:
        """The log text, in the run's entry as well."""
        entries = records.children(record, self.field)
        record[self.field] = [{**job, "logs": log} if _names_task(job, run) else job for job in entries]

    def _with_entry(self, record: JsonObject, run: Run, at: datetime) -> list[JsonObject]:
        entries = records.children(record, self.field)
        return entries if self.has(record, run) else [*entries, self.new(run, at)]


def _names_task(job: JsonObject | None, run: Run) -> TypeGuard[JsonObject]:
    return job is not None and run.task_id is not None and job.get("taskId") == run.task_id


def _is_open(job: JsonObject) -> bool:
    """Does the job still wait for its end?"""
    return records.text(job, "status") not in TERMINAL


def _placed(job: JsonObject, run: Run) -> JsonObject:
    return {**job, "jobId": run.job_id, "status": IN_PROGRESS, "completedDate": None}


def _ended(job: JsonObject, status: str, at: datetime) -> JsonObject:
    """The job with its end; its other keys stay."""
    return {**job, "status": status, "completedDate": timestamp(at)}


def _closed(job: JsonObject, at: datetime) -> JsonObject:
    return _ended(job, FAILED, at) if _is_open(job) else job
