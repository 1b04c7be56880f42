"""Requests about jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch import job_life, render, shapes
from local.batch.errors import BatchError
from local.batch.listing import check_conditions, one, page, resource_headers
from local.batch.properties import JOB, JOB_FILTERS
from local.batch.request import Call, Json, Response, json_response
from local.batch.state import Job

if TYPE_CHECKING:
    from local.batch.world import World

_REFUSED = {"completed": "JobCompleted", "terminating": "JobBeingTerminated", "deleting": "JobBeingDeleted"}


def refuse_unless_open(job: Job) -> None:
    """409 for a job that is completed or on its way there."""
    if job.state in _REFUSED:
        raise BatchError(_REFUSED[job.state])


def list_jobs(world: World, call: Call) -> Response:
    entries = [(f"{job.number:012d}", job) for job in world.jobs.values()]
    base_url, size = call.request.base_url, world.config.page_size
    return page(call, "jobs", entries, lambda job: render.job(job, base_url), JOB_FILTERS, JOB, size)


def create(world: World, call: Call) -> Response:
    spec = call.request.json()
    shapes.NEW_JOB("", spec)
    existing = world.jobs.get(spec["id"].lower())
    if existing:
        raise BatchError("JobBeingDeleted" if existing.state == "deleting" else "JobExists")
    if sum(map(job_life.counts_for_quota, world.jobs.values())) >= world.config.quotas.active_jobs:
        raise BatchError("ActiveJobAndScheduleQuotaReached")
    job = job_life.create(world, spec)
    return Response(201, resource_headers(job) | {"Location": f"{call.request.base_url}/jobs/job-1"})


def get(world: World, call: Call) -> Response:
    job = _job(world, call)
    return one(call, "jobs", render.job(job, call.request.base_url), JOB, job)


def patch(world: World, call: Call) -> Response:
    job = _open_job(world, call)
    changes = {name: value for name, value in call.request.json().items() if value is not None}
    shapes.JOB_PATCH("", changes)
    _check_changes(job, changes)
    return _change(world, job, changes)


def replace(world: World, call: Call) -> Response:
    """What the body leaves out goes back to its default."""
    job = _open_job(world, call)
    changes = {name: value for name, value in call.request.json().items() if value is not None}
    shapes.JOB_REPLACEMENT("", changes)
    _check_changes(job, {"onAllTasksComplete": "noaction"} | changes)
    for name in ("priority", "allowTaskPreemption", "maxParallelTasks", "onAllTasksComplete", "metadata"):
        job.spec.pop(name, None)
    return _change(world, job, {"constraints": {}} | changes)


def _check_changes(job: Job, changes: Json) -> None:
    pool_info = changes.get("poolInfo")
    if pool_info and pool_info["poolId"].lower() != job.pool_id.lower() and job.state != "disabled":
        raise BatchError("OperationInvalidForCurrentState", "The pool can change only while the job is disabled.")
    if str(changes.get("onAllTasksComplete", "")).lower() == "noaction" and job.ends_by_itself:
        raise BatchError(
            "InvalidPropertyValue", PropertyName="onAllTasksComplete", Reason="terminatejob is irreversible"
        )


def _change(world: World, job: Job, changes: Json) -> Response:
    job.spec.update(changes)
    world.touch(job)
    if "constraints" in changes:
        job_life.watch_wall_clock(world, job)
    return Response(200, resource_headers(job))


def delete(world: World, call: Call) -> Response:
    job = _job(world, call)
    if job.state == "deleting":
        raise BatchError("JobBeingDeleted")
    job_life.delete(world, job)
    return Response(202)


def disable(world: World, call: Call) -> Response:
    job = _open_job(world, call)
    body = call.request.json()
    shapes.JOB_DISABLE("", body)
    if job.state in ("disabling", "disabled"):
        raise BatchError("JobDisabled")
    job_life.disable(world, job, body["disableTasks"].lower())
    return Response(202, resource_headers(job))


def enable(world: World, call: Call) -> Response:
    job = _open_job(world, call)
    if job.state != "disabled":
        raise BatchError("OperationInvalidForCurrentState", f"The job is {job.state}, not disabled.")
    job_life.enable(world, job)
    return Response(202, resource_headers(job))


def terminate(world: World, call: Call) -> Response:
    job = _open_job(world, call)
    body = call.request.json() if call.request.body else {}
    shapes.JOB_TERMINATE("", body)
    job_life.terminate(world, job, body.get("terminateReason") or "UserTerminate")
    return Response(202, resource_headers(job))


def task_counts(world: World, call: Call) -> Response:
    job = world.job(call.job)
    states = ("active", "running", "completed", "succeeded", "failed")
    tasks, slots = dict.fromkeys(states, 0), dict.fromkeys(states, 0)
    for task in job.tasks.values():
        counted = [task.state]
        if task.state == "completed":
            counted.append("succeeded" if task.result == "success" else "failed")
        for state in counted:
            tasks[state] += 1
            slots[state] += task.slots
    metadata = f"{call.request.base_url}/$metadata#taskcounts/@Element"
    return json_response(200, {"odata.metadata": metadata, "taskCounts": tasks, "taskSlotCounts": slots})


def preparation_status(world: World, call: Call) -> Response:
    """Jobs with a preparation or release task are not emulated, so no job has one."""
    _job(world, call)
    raise BatchError("JobPreparationTaskNotSpecified")


def _job(world: World, call: Call) -> Job:
    job = world.job(call.job)
    check_conditions(call, job)
    return job


def _open_job(world: World, call: Call) -> Job:
    job = _job(world, call)
    refuse_unless_open(job)
    return job
