"""Requests about tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from local.batch import job_routes, render, shapes, task_life
from local.batch.errors import BatchError
from local.batch.iso8601 import format_time
from local.batch.listing import check_conditions, one, page, resource_headers
from local.batch.properties import TASK, TASK_FILTERS
from local.batch.request import Call, Json, Response, json_response
from local.batch.state import Job, Task

if TYPE_CHECKING:
    from local.batch.world import World

_LARGEST_BODY_BYTES = 1024 * 1024


def list_tasks(world: World, call: Call) -> Response:
    job = world.job(call.job)
    entries = ((f"{task.number:012d}", task) for task in job.tasks.values())
    base_url, size = call.request.base_url, world.config.page_size
    return page(call, "tasks", entries, lambda task: render.task(task, job, base_url), TASK_FILTERS, TASK, size)


def create(world: World, call: Call) -> Response:
    job = _job_for_new_tasks(world, call)
    spec = call.request.json()
    task = _add(world, job, spec)
    location = f"{call.request.base_url}/jobs/{job.id}/tasks/{task.id}"
    return Response(201, resource_headers(task) | {"Location": location})


def create_collection(world: World, call: Call) -> Response:
    if len(call.request.body) > _LARGEST_BODY_BYTES:
        raise BatchError("RequestBodyTooLarge")
    job = _job_for_new_tasks(world, call)
    body = call.request.json()
    shapes.TASK_COLLECTION("", body)
    results = [_add_one(world, job, spec, call.request.base_url) for spec in body["value"]]
    metadata = f"{call.request.base_url}/$metadata#taskaddresult"
    return json_response(200, {"odata.metadata": metadata, "value": results})


def get(world: World, call: Call) -> Response:
    task = _task(world, call)
    job = world.job(call.job)
    return one(call, "tasks", render.task(task, job, call.request.base_url), TASK, task)


def delete(world: World, call: Call) -> Response:
    task = _task(world, call)
    job = world.job(call.job)
    if job.state == "deleting":
        raise BatchError("JobBeingDeleted")
    task_life.remove(world, job, task)
    return Response(200)


def terminate(world: World, call: Call) -> Response:
    """End a task. One that waits is completed at once; one that runs when its process is gone."""
    task = _task(world, call)
    job = world.job(call.job)
    if job.state == "deleting":
        raise BatchError("JobBeingDeleted")
    if task.state == "completed":
        raise BatchError("TaskCompleted")
    if task.run:
        task_life.stop(world, task.run, "terminated")
        world.touch(task)
    else:
        task_life.complete(world, job, task, None, task_life.ended_failure(world, "terminated"))
    return Response(204, resource_headers(task))


def replace(world: World, call: Call) -> Response:
    """New constraints; what the body leaves out goes back to its default. A running task keeps its start time."""
    task = _task(world, call)
    job = world.job(call.job)
    body = call.request.json()
    shapes.TASK_REPLACEMENT("", body)
    if job.state == "deleting":
        raise BatchError("JobBeingDeleted")
    if task.state == "completed":
        raise BatchError("TaskCompleted")
    task.spec = task.spec | {"constraints": body.get("constraints")}
    world.touch(task)
    if task.run:
        task_life.watch_wall_clock(world, task, task.run)
    return Response(200, resource_headers(task))


def subtasks(world: World, call: Call) -> Response:
    """Only multi-instance tasks have subtasks, and those are not emulated."""
    _task(world, call)
    return json_response(200, {"odata.metadata": f"{call.request.base_url}/$metadata#subtasks", "value": []})


def reactivate(world: World, call: Call) -> Response:
    task = _task(world, call)
    job = world.job(call.job)
    job_routes.refuse_unless_open(job)
    if task.state != "completed":
        raise BatchError("TaskNotCompleted")
    if task.result == "success":
        raise BatchError("TaskSucceeded")
    task_life.reactivate(world, job, task)
    return Response(204, resource_headers(task))


def _task(world: World, call: Call) -> Task:
    task = world.task(call.job, call.task)
    check_conditions(call, task)
    return task


def _job_for_new_tasks(world: World, call: Call) -> Job:
    job = world.job(call.job)
    job_routes.refuse_unless_open(job)
    if job.state in ("disabling", "disabled") and not world.config.assumptions.disabled_job_accepts_tasks:
        raise BatchError("JobDisabled")
    return job


def _add(world: World, job: Job, spec: Json) -> Task:
    shapes.NEW_TASK("", spec)
    _check_exit_conditions(job, spec)
    for index, file in enumerate(spec.get("resourceFiles") or ()):
        if bool(file.get("httpUrl")) == bool(file.get("storageContainerUrl")):
            raise BatchError(
                "InvalidPropertyValue",
                PropertyName=f"resourceFiles[{index}]",
                Reason="exactly one of httpUrl and storageContainerUrl is needed",
            )
        if file.get("httpUrl") and not file.get("filePath"):
            raise BatchError("MissingRequiredProperty", PropertyName=f"resourceFiles[{index}].filePath")
    if spec["id"].lower() in job.tasks:
        raise BatchError("TaskExists")
    return task_life.create(world, job, spec)


def _check_exit_conditions(job: Job, spec: Json) -> None:
    wants_action = "jobAction" in _keys(spec.get("exitConditions") or {})
    if wants_action and str(job.spec.get("onTaskFailure", "")).lower() != "performexitoptionsjobaction":
        raise BatchError("InvalidPropertyValue", PropertyName="exitConditions", Reason="the job has no onTaskFailure")


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_keys(part) for part in value.values()))
    return set().union(*(_keys(part) for part in value)) if isinstance(value, list) else set()


def _add_one(world: World, job: Job, spec: Any, base_url: str) -> Json:
    task_id = str(spec.get("id") or "") if isinstance(spec, dict) else ""
    try:
        task = _add(world, job, spec)
    except BatchError as error:
        message = {"lang": "en-US", "value": error.message}
        values = [{"key": key, "value": value} for key, value in error.details.items()]
        failure = {"code": error.code, "message": message, "values": values}
        return {"taskId": task_id, "status": "clienterror", "error": failure}
    return {
        "taskId": task.id,
        "status": "success",
        "eTag": task.etag,
        "lastModified": format_time(task.modified),
        "location": f"{base_url}/jobs/{job.id}/tasks/{task.id}",
    }
