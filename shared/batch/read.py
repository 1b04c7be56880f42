"""Between the SDK's models and our own values. Unknown states stay what Batch calls them."""

from __future__ import annotations

from typing import Any

import isodate

from shared.batch.types import JobState, JobView, NodeView, PoolCounts, PoolView, TaskBody, TaskView

_OVER = frozenset({"terminating", "completed", "deleting"})
_MAXIMUM_NODES_METADATA = "maximumNodes"
TENANT_METADATA = "haste-worker-tenant"
#: The tenant is a label that an operator chose; the storage account is whose the job is.
ACCOUNT_METADATA = "haste-worker-account"


def _metadata(job: Any, name: str) -> str | None:
    return next((item.value for item in job.metadata or [] if item.name == name), None)


def job_state(job: Any) -> JobState:
    """`BatchJob` -> whether tasks can be added and will be scheduled."""
    state = str(getattr(job.state, "value", job.state))
    if state in _OVER:
        return JobState.OVER
    return JobState.DISABLED if state in ("disabled", "disabling") else JobState.USABLE


def job(job: Any) -> JobView:
    """`BatchJob` -> `JobView`."""
    return JobView(
        job_state(job),
        job.pool_info.pool_id if job.pool_info else None,
        _metadata(job, TENANT_METADATA),
        job_id=job.id,
        created_at=job.creation_time,
        ended_at=job.execution_info.end_time if job.execution_info else None,
        account=_metadata(job, ACCOUNT_METADATA),
    )


def task(task: Any) -> TaskView:
    """`BatchTask` -> `TaskView`."""
    execution, node = task.execution_info, task.node_info
    failure = execution.failure_info if execution else None
    return TaskView(
        task_id=task.id,
        state=_word(task.state) or "",
        previous_state=_word(task.previous_state),
        state_changed_at=task.state_transition_time,
        started_at=execution.start_time if execution else None,
        ended_at=execution.end_time if execution else None,
        exit_code=execution.exit_code if execution else None,
        succeeded=_word(task.state) == "completed" and failure is None and bool(execution) and not execution.exit_code,
        failure_code=(failure.code or "Unknown") if failure else None,
        pool_id=node.pool_id if node else None,
        node_id=node.node_id if node else None,
        created_at=task.creation_time,
    )


def output_containers(task: Any) -> tuple[str, ...]:
    """The containers that a task's results go to, as URLs with whatever query they have."""
    return tuple(file.destination.container.container_url for file in task.output_files or [])


def counts(counts: Any) -> PoolCounts:
    """`BatchPoolNodeCounts` -> `PoolCounts`, both node kinds together."""
    both = [part for part in (counts.dedicated, counts.low_priority) if part is not None]

    def total(*names: str) -> int:
        return sum(getattr(part, name) or 0 for part in both for name in names)

    return PoolCounts(
        pool_id=counts.pool_id,
        idle=total("idle"),
        running=total("running"),
        starting=total("creating", "starting", "waiting_for_start_task", "rebooting", "reimaging"),
        lost=total("preempted", "unusable", "start_task_failed", "unknown", "offline"),
    )


def pool(pool: Any) -> PoolView:
    """`BatchPool` -> `PoolView`."""
    metadata = {item.name: item.value for item in pool.metadata or []}
    maximum = metadata.get(_MAXIMUM_NODES_METADATA, "")
    return PoolView(
        pool_id=pool.id,
        state=_word(pool.state) or "",
        allocation_state=_word(pool.allocation_state) or "",
        auto_scales=bool(pool.enable_auto_scale),
        target_nodes=(pool.target_dedicated_nodes or 0) + (pool.target_low_priority_nodes or 0),
        current_nodes=(pool.current_dedicated_nodes or 0) + (pool.current_low_priority_nodes or 0),
        task_slots_per_node=pool.task_slots_per_node or 1,
        resize_error_codes=tuple(error.code or "" for error in pool.resize_errors or []),
        allocation_changed_at=pool.allocation_state_transition_time,
        maximum_nodes=int(maximum) if maximum.isdigit() else None,
        auto_scale_formula=pool.auto_scale_formula,
        auto_scale_every=pool.auto_scale_evaluation_interval,
        auto_scaled_at=pool.auto_scale_run.timestamp if pool.auto_scale_run else None,
        auto_scale_error=_auto_scale_error(pool),
        target_low_priority_nodes=pool.target_low_priority_nodes or 0,
    )


def _auto_scale_error(pool: Any) -> str | None:
    run = pool.auto_scale_run
    return None if run is None or run.error is None else (run.error.code or "Unknown")


def node(node: Any) -> NodeView:
    """`BatchNode` -> `NodeView`."""
    return NodeView(node.id, _word(node.state) or "", node.last_boot_time, node.state_transition_time)


def task_body(body: TaskBody) -> dict[str, Any]:
    """`TaskBody` -> wire shape. What a mode does not set is left out, as HASTE leaves it out."""
    container: dict[str, Any] = {"containerRunOptions": body.container_run_options, "imageName": body.image_name}
    if body.bind_mounts:
        container["containerHostBatchBindMounts"] = [
            {"source": source, "isReadOnly": False} for source in body.bind_mounts
        ]
    constraints: dict[str, Any] = {"retentionTime": iso8601(body.retention_time)}
    if body.max_run is not None:
        constraints["maxWallClockTime"] = iso8601(body.max_run)
    return {
        "id": body.task_id,
        "commandLine": body.command_line,
        "containerSettings": container,
        "resourceFiles": list(body.resource_files),
        "outputFiles": list(body.output_files),
        "environmentSettings": [{"name": name, "value": value} for name, value in body.environment.items()],
        "constraints": constraints,
        "userIdentity": {"autoUser": {"scope": body.user_scope, "elevationLevel": "admin"}},
    }


def iso8601(span: Any) -> str:
    """A timedelta as Batch reads it."""
    return str(isodate.duration_isoformat(span))


def _word(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))
