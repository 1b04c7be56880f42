"""What every method of the SDK's client is refused, and how the SDK says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from tests.batch_contract.stand import AUTO, POOL, Stand

_REASON: Any = {"terminateReason": "over"}
_NODE_OPTIONS: dict[str, Any] = {
    "begin_reboot_node": {"nodeRebootOption": "requeue"},
    "begin_reimage_node": {"nodeReimageOption": "requeue"},
    "begin_deallocate_node": {"nodeDeallocateOption": "requeue"},
}
_ERRORS: dict[int, type[HttpResponseError]] = {404: ResourceNotFoundError, 409: ResourceExistsError}


def _nothing(_stand: Stand) -> None:
    """No step before the call."""


@dataclass(frozen=True)
class Refusal:
    """One call that fails. `code` is None where the answer has no body, as with HEAD."""

    method: str
    status: int
    code: str | None
    call: Callable[[BatchClient], Any]
    before: Callable[[Stand], None] = _nothing

    @property
    def error(self) -> type[HttpResponseError]:
        """The class that the SDK raises; all it shows is the status."""
        return _ERRORS.get(self.status, HttpResponseError)

    def __str__(self) -> str:
        return f"{self.method}-{self.code or self.status}"


def _all(items: Iterable[Any]) -> list[Any]:
    return list(items)


def _pool(pool_id: str, **options: Any) -> models.BatchPoolCreateOptions:
    return models.BatchPoolCreateOptions(id=pool_id, vm_size="standard_d2s_v3", **options)


def _job(job_id: str = "job", **options: Any) -> models.BatchJobCreateOptions:
    return models.BatchJobCreateOptions(id=job_id, pool_info=models.BatchPoolInfo(pool_id=POOL), **options)


def _task(task_id: str = "task", **options: Any) -> models.BatchTaskCreateOptions:
    return models.BatchTaskCreateOptions(id=task_id, **({"command_line": "program"} | options))


def _resize(**options: Any) -> models.BatchPoolResizeOptions:
    return models.BatchPoolResizeOptions(**({"target_low_priority_nodes": 1} | options))


def _formula(text: str = "$TargetDedicatedNodes = 1;", **options: Any) -> models.BatchPoolEnableAutoScaleOptions:
    return models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=text, **options)


def _no_node(method: str) -> Refusal:
    options = _NODE_OPTIONS[method]
    return Refusal(method, 404, "NodeNotFound", lambda c: getattr(c, method)(POOL, _NO_NODE, options))


def _closed(stand: Stand) -> None:
    stand.job()
    stand.client.begin_terminate_job("job", options=_REASON, polling_interval=1).wait(30)


def _two(stand: Stand) -> None:
    stand.job()
    stand.task()


_AGAIN = models.BatchTaskGroup(task_values=[_task(f"t{number}") for number in range(101)])
_REPLACE_POOL = models.BatchPoolReplaceOptions(application_package_references=[], metadata=[])
_DISABLE = models.BatchJobDisableOptions(disable_tasks="requeue")
_NO_NODE = "tvmps_none"
_NO_POOL, _NO_JOB, _NO_TASK = (404, "PoolNotFound"), (404, "JobNotFound"), (404, "TaskNotFound")
_WRONG_QUERY, _WRONG_VALUE = (400, "InvalidQueryParameterValue"), (400, "InvalidPropertyValue")
_WRONG_STATE = (409, "OperationInvalidForCurrentState")

POOLS = [
    Refusal("get_pool", *_NO_POOL, lambda c: c.get_pool("none")),
    Refusal("get_pool", *_WRONG_QUERY, lambda c: c.get_pool(POOL, select=["colour"])),
    Refusal("list_pools", *_WRONG_QUERY, lambda c: _all(c.list_pools(filter="colour eq 'red'"))),
    Refusal("pool_exists", 404, None, lambda c: c.pool_exists("none")),
    Refusal("create_pool", 409, "PoolExists", lambda c: c.create_pool(_pool(POOL))),
    Refusal("create_pool", *_WRONG_VALUE, lambda c: c.create_pool(_pool("a b"))),
    Refusal("create_pool", *_WRONG_VALUE, lambda c: c.create_pool(_pool("new", resize_timeout=timedelta(minutes=4)))),
    Refusal(
        "create_pool", 400, "MissingRequiredProperty", lambda c: c.create_pool(_pool("new", enable_auto_scale=True))
    ),
    Refusal("update_pool", *_NO_POOL, lambda c: c.update_pool("none", models.BatchPoolUpdateOptions(metadata=[]))),
    Refusal(
        "update_pool",
        409,
        "OperationNotValidOnPool",
        lambda c: c.update_pool(POOL, models.BatchPoolUpdateOptions(task_slots_per_node=1)),
    ),
    Refusal("replace_pool_properties", *_NO_POOL, lambda c: c.replace_pool_properties("none", _REPLACE_POOL)),
    Refusal("begin_delete_pool", *_NO_POOL, lambda c: c.begin_delete_pool("none")),
    Refusal("begin_resize_pool", *_NO_POOL, lambda c: c.begin_resize_pool("none", _resize())),
    Refusal(
        "begin_resize_pool", 409, "PoolBeingResized", lambda c: c.begin_resize_pool(POOL, _resize()), Stand.leaving
    ),
    Refusal(
        "begin_resize_pool",
        409,
        "OperationNotValidOnPool",
        lambda c: c.begin_resize_pool(AUTO, _resize()),
        Stand.auto_scaling,
    ),
    Refusal(
        "begin_resize_pool",
        *_WRONG_VALUE,
        lambda c: c.begin_resize_pool(POOL, _resize(resize_timeout=timedelta(minutes=4))),
    ),
    Refusal("begin_stop_pool_resize", *_NO_POOL, lambda c: c.begin_stop_pool_resize("none")),
    Refusal("begin_stop_pool_resize", *_WRONG_STATE, lambda c: c.begin_stop_pool_resize(POOL)),
    Refusal(
        "begin_remove_nodes",
        *_NO_POOL,
        lambda c: c.begin_remove_nodes("none", models.BatchNodeRemoveOptions(node_ids=[_NO_NODE])),
    ),
    Refusal(
        "begin_remove_nodes",
        *_WRONG_VALUE,
        lambda c: c.begin_remove_nodes(POOL, models.BatchNodeRemoveOptions(node_ids=[_NO_NODE] * 101)),
    ),
    Refusal(
        "begin_remove_nodes",
        409,
        "PoolBeingResized",
        lambda c: c.begin_remove_nodes(POOL, models.BatchNodeRemoveOptions(node_ids=[_NO_NODE])),
        Stand.leaving,
    ),
    Refusal("enable_pool_auto_scale", *_NO_POOL, lambda c: c.enable_pool_auto_scale("none", _formula())),
    Refusal(
        "enable_pool_auto_scale",
        409,
        "PoolBeingResized",
        lambda c: c.enable_pool_auto_scale(POOL, _formula()),
        Stand.leaving,
    ),
    Refusal(
        "enable_pool_auto_scale",
        503,
        "TooManyEnableAutoScaleRequests",
        lambda c: [c.enable_pool_auto_scale(POOL, _formula("$TargetLowPriorityNodes = 2;")) for _ in range(2)],
    ),
    Refusal(
        "enable_pool_auto_scale",
        400,
        "AutoScalingFormulaSyntaxError",
        lambda c: c.enable_pool_auto_scale(POOL, _formula("$TargetDedicatedNodes = (1;")),
    ),
    Refusal("disable_pool_auto_scale", *_NO_POOL, lambda c: c.disable_pool_auto_scale("none")),
    Refusal(
        "evaluate_pool_auto_scale",
        *_NO_POOL,
        lambda c: c.evaluate_pool_auto_scale(
            "none", models.BatchPoolEvaluateAutoScaleOptions(auto_scale_formula="$TargetDedicatedNodes = 1;")
        ),
    ),
    Refusal("list_pool_node_counts", *_WRONG_QUERY, lambda c: _all(c.list_pool_node_counts(filter="id eq 'x'"))),
    Refusal("list_supported_images", *_WRONG_QUERY, lambda c: _all(c.list_supported_images(filter="colour eq 'x'"))),
]

NODES = [
    Refusal("list_nodes", *_NO_POOL, lambda c: _all(c.list_nodes("none"))),
    Refusal("list_nodes", *_WRONG_QUERY, lambda c: _all(c.list_nodes(POOL, filter="colour eq 'red'"))),
    Refusal("get_node", 404, "NodeNotFound", lambda c: c.get_node(POOL, _NO_NODE)),
    Refusal("get_node", *_NO_POOL, lambda c: c.get_node("none", _NO_NODE)),
    Refusal(
        "disable_node_scheduling",
        404,
        "NodeNotFound",
        lambda c: c.disable_node_scheduling(
            POOL, _NO_NODE, models.BatchNodeDisableSchedulingOptions(node_disable_scheduling_option="requeue")
        ),
    ),
    Refusal("enable_node_scheduling", 404, "NodeNotFound", lambda c: c.enable_node_scheduling(POOL, _NO_NODE)),
    Refusal(
        "enable_node_scheduling",
        409,
        "NodeAlreadyInTargetSchedulingState",
        lambda c: c.enable_node_scheduling(POOL, next(iter(c.list_nodes(POOL))).id),
    ),
    *(_no_node(method) for method in _NODE_OPTIONS),
    Refusal("begin_start_node", 404, "NodeNotFound", lambda c: c.begin_start_node(POOL, _NO_NODE)),
]

JOBS = [
    Refusal("create_job", 409, "JobExists", lambda c: c.create_job(_job("JOB")), Stand.job),
    Refusal("create_job", *_WRONG_VALUE, lambda c: c.create_job(_job("x" * 65))),
    Refusal("create_job", 400, "OutOfRangePriority", lambda c: c.create_job(_job(priority=1001))),
    Refusal("get_job", *_NO_JOB, lambda c: c.get_job("job")),
    Refusal("list_jobs", *_WRONG_QUERY, lambda c: _all(c.list_jobs(filter="metadata eq 'x'"))),
    Refusal("list_jobs", *_WRONG_QUERY, lambda c: _all(c.list_jobs(max_results=1001))),
    Refusal("update_job", *_NO_JOB, lambda c: c.update_job("job", models.BatchJobUpdateOptions(priority=1))),
    Refusal(
        "update_job",
        *_WRONG_STATE,
        lambda c: c.update_job("job", models.BatchJobUpdateOptions(pool_info=models.BatchPoolInfo(pool_id="other"))),
        Stand.job,
    ),
    Refusal(
        "update_job",
        409,
        "JobCompleted",
        lambda c: c.update_job("job", models.BatchJobUpdateOptions(priority=1)),
        _closed,
    ),
    Refusal(
        "replace_job",
        *_NO_JOB,
        lambda c: c.replace_job("job", models.BatchJob(pool_info=models.BatchPoolInfo(pool_id=POOL))),
    ),
    Refusal(
        "replace_job",
        *_WRONG_STATE,
        lambda c: c.replace_job("job", models.BatchJob(pool_info=models.BatchPoolInfo(pool_id="other"))),
        Stand.job,
    ),
    Refusal("begin_disable_job", *_NO_JOB, lambda c: c.begin_disable_job("job", _DISABLE)),
    Refusal("begin_disable_job", 409, "JobCompleted", lambda c: c.begin_disable_job("job", _DISABLE), _closed),
    Refusal("begin_enable_job", *_NO_JOB, lambda c: c.begin_enable_job("job")),
    Refusal("begin_enable_job", *_WRONG_STATE, lambda c: c.begin_enable_job("job"), Stand.job),
    Refusal("begin_terminate_job", *_NO_JOB, lambda c: c.begin_terminate_job("job", options=_REASON)),
    Refusal(
        "begin_terminate_job", 409, "JobCompleted", lambda c: c.begin_terminate_job("job", options=_REASON), _closed
    ),
    Refusal("begin_delete_job", *_NO_JOB, lambda c: c.begin_delete_job("job")),
    Refusal(
        "list_job_preparation_and_release_task_status",
        409,
        "JobPreparationTaskNotSpecified",
        lambda c: _all(c.list_job_preparation_and_release_task_status("job")),
        Stand.job,
    ),
    Refusal(
        "list_job_preparation_and_release_task_status",
        *_NO_JOB,
        lambda c: _all(c.list_job_preparation_and_release_task_status("job")),
    ),
    Refusal("get_job_task_counts", *_NO_JOB, lambda c: c.get_job_task_counts("job")),
]

TASKS = [
    Refusal("create_task", *_NO_JOB, lambda c: c.create_task("job", _task())),
    Refusal("create_task", 409, "TaskExists", lambda c: c.create_task("job", _task("TASK")), _two),
    Refusal("create_task", 409, "JobCompleted", lambda c: c.create_task("job", _task()), _closed),
    Refusal("create_task", *_WRONG_VALUE, lambda c: c.create_task("job", _task("a.b")), Stand.job),
    Refusal("create_task", *_WRONG_VALUE, lambda c: c.create_task("job", _task(command_line="x" * 32769)), Stand.job),
    Refusal(
        "create_task", 400, "OutOfRangeInput", lambda c: c.create_task("job", _task(required_slots=257)), Stand.job
    ),
    Refusal(
        "create_task",
        *_WRONG_VALUE,
        lambda c: c.create_task(
            "job", _task(exit_conditions=models.ExitConditions(default=models.ExitOptions(job_action="terminate")))
        ),
        Stand.job,
    ),
    Refusal("create_task_collection", *_WRONG_VALUE, lambda c: c.create_task_collection("job", _AGAIN), Stand.job),
    Refusal("create_task_collection", *_NO_JOB, lambda c: c.create_task_collection("job", _AGAIN)),
    Refusal("get_task", *_NO_JOB, lambda c: c.get_task("job", "task")),
    Refusal("get_task", *_NO_TASK, lambda c: c.get_task("job", "task"), Stand.job),
    Refusal("list_tasks", *_NO_JOB, lambda c: _all(c.list_tasks("job"))),
    Refusal("list_tasks", *_WRONG_QUERY, lambda c: _all(c.list_tasks("job", filter="state eq")), Stand.job),
    Refusal("list_subtasks", *_NO_TASK, lambda c: _all(c.list_subtasks("job", "task")), Stand.job),
    Refusal("replace_task", *_NO_TASK, lambda c: c.replace_task("job", "task", models.BatchTask()), Stand.job),
    Refusal("terminate_task", *_NO_TASK, lambda c: c.terminate_task("job", "task"), Stand.job),
    Refusal("terminate_task", 409, "TaskCompleted", lambda c: c.terminate_task("job", "task"), Stand.ended),
    Refusal("reactivate_task", *_NO_TASK, lambda c: c.reactivate_task("job", "task"), Stand.job),
    Refusal("reactivate_task", 409, "TaskNotCompleted", lambda c: c.reactivate_task("job", "task"), _two),
    Refusal("reactivate_task", 409, "TaskSucceeded", lambda c: c.reactivate_task("job", "task"), Stand.ended),
    Refusal("delete_task", *_NO_TASK, lambda c: c.delete_task("job", "task"), Stand.job),
]

FILES = [
    Refusal("list_task_files", *_NO_TASK, lambda c: _all(c.list_task_files("job", "task")), Stand.job),
    Refusal(
        "list_task_files", *_WRONG_QUERY, lambda c: _all(c.list_task_files("job", "task", filter="size gt 1")), _two
    ),
    Refusal("get_task_file_properties", 404, None, lambda c: c.get_task_file_properties("job", "task", "none"), _two),
    Refusal("download_task_file", 404, "FileNotFound", lambda c: _all(c.download_task_file("job", "task", "x")), _two),
    Refusal(
        "download_task_file",
        416,
        "InvalidRange",
        lambda c: _all(c.download_task_file("job", "task", "stdout.txt", ocp_range="bytes=1-2")),
        _two,
    ),
    Refusal("delete_task_file", 404, "FileNotFound", lambda c: c.delete_task_file("job", "task", "none"), _two),
]

REFUSALS = [*POOLS, *NODES, *JOBS, *TASKS, *FILES]
