"""The job objects inside HASTE's records: `preprocessJob`, `trainingJob`, and the entries of `inferenceJobs`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeGuard

from shared.haste import records
from shared.haste.log_text import timestamp
from shared.haste.status_fields import IN_PROGRESS, TERMINAL
from shared.haste.workload import JsonObject
from shared.protocol.outcome import Run

#: Makes the job object of one kind: (run, start) -> a job in progress.
NewJob = Callable[[Run, datetime], JsonObject]


def preprocess_job(run: Run, at: datetime) -> JsonObject:
    """A new ImageryPreprocessJob, in progress."""
    return {
        "projectId": run.entity.project_id,
        "imageLayerId": run.entity.entity_id,
        "jobId": run.job_id,
        "taskId": run.task_id,
        "status": IN_PROGRESS,
        "logs": None,
        "creationDate": timestamp(at),
        "completedDate": None,
        "dependsOn": ["ImageLayer", "imageLayerId"],
    }


def training_job(run: Run, at: datetime) -> JsonObject:
    """A new TrainingJob, in progress. HASTE keeps its numbers as text."""
    return {
        "trainingjobUid": None,
        "jobId": run.job_id,
        "taskId": run.task_id,
        "modelId": run.entity.entity_id,
        "projectId": run.entity.project_id,
        "status": IN_PROGRESS,
        "trainStartTime": None,
        "completedEpochs": "0",
        "approxMinutesToComplete": "",
        "totalElapsedTime": "",
        "timePerEpoch": "",
        "logs": None,
        "artifactZipJobUid": None,
        "creationDate": timestamp(at),
        "completedDate": None,
        "dependsOn": ["Model", "modelId"],
    }


def inference_job(run: Run, at: datetime) -> JsonObject:
    """A new InferenceJob, in progress."""
    return {
        "uid": None,
        "jobId": run.job_id,
        "taskId": run.task_id,
        "modelId": run.entity.entity_id,
        "projectId": run.entity.project_id,
        "status": IN_PROGRESS,
        "creationDate": timestamp(at),
        "completedDate": None,
        "logs": "",
        "artifactZipJobUid": None,
        "dependsOn": ["Model", "modelId"],
    }


def names_task(job: JsonObject | None, run: Run) -> TypeGuard[JsonObject]:
    """Is this the job of the run's task?"""
    return job is not None and run.task_id is not None and job.get("taskId") == run.task_id


def placed_job(job: JsonObject | None, new: NewJob, run: Run, at: datetime) -> JsonObject:
    """The record's job if it is the run's, else a new one, as it stands while the task is live."""
    kept = job if names_task(job, run) else new(run, at)
    return {**kept, "jobId": run.job_id, "status": IN_PROGRESS, "completedDate": None}


def ended_job(job: JsonObject | None, new: NewJob, run: Run, status: str, at: datetime) -> JsonObject | None:
    """The record's job with the end of the run. Without a task no job is made up, and one that has ended stays."""
    if run.task_id is None:
        return ended(job, status, at) if job is not None and is_open(job) else job
    return ended(job if names_task(job, run) else new(run, run.placed_at or at), status, at)


def ended(job: JsonObject, status: str, at: datetime) -> JsonObject:
    """The job with its end; its other keys stay."""
    return {**job, "status": status, "completedDate": timestamp(at)}


def is_open(job: JsonObject) -> bool:
    """Does the job still wait for its end?"""
    return records.text(job, "status") not in TERMINAL
