"""How resources look on the wire."""

from datetime import datetime

from local.batch.iso8601 import UNLIMITED, format_time
from local.batch.request import Json
from local.batch.runner import Failure
from local.batch.state import Job, Node, Pool, Resource, Task


def _present(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None


def _common(resource: Resource, url: str) -> Json:
    return {
        "id": resource.id,
        "url": url,
        "eTag": resource.etag,
        "lastModified": _time(resource.modified),
        "creationTime": _time(resource.created),
        "state": resource.state,
        "stateTransitionTime": _time(resource.state_since),
    }


def _history(resource: Resource) -> Json:
    return {
        "previousState": resource.previous_state,
        "previousStateTransitionTime": _time(resource.previous_state_since),
    }


def pool(pool: Pool, base_url: str) -> Json:
    nodes = pool.nodes.values()
    errors = [{"code": error.code, "message": error.message, "values": []} for error in pool.resize_errors]
    shown = {"resizeTimeout": "PT15M", "enableInterNodeCommunication": False} | pool.spec
    shown |= _common(pool, f"{base_url}/pools/{pool.id}") | {
        "allocationState": pool.allocation_state,
        "allocationStateTransitionTime": _time(pool.allocation_since),
        "resizeErrors": errors if errors and pool.allocation_state == "steady" else None,
        "currentDedicatedNodes": sum(1 for node in nodes if node.dedicated),
        "currentLowPriorityNodes": sum(1 for node in nodes if not node.dedicated),
        "targetDedicatedNodes": pool.target_dedicated,
        "targetLowPriorityNodes": pool.target_low_priority,
        "enableAutoScale": pool.autoscale,
        "autoScaleRun": pool.autoscale_run,
        "taskSlotsPerNode": pool.slots_per_node,
    }
    if not pool.autoscale:
        shown |= {"autoScaleFormula": None, "autoScaleEvaluationInterval": None, "autoScaleRun": None}
    else:
        shown["resizeTimeout"] = None
    return _present(shown)


def node(node: Node, pool: Pool, tasks: list[tuple[str, Task]], base_url: str) -> Json:
    """`tasks` are the node's latest (job id, task) that still exist."""
    url = f"{base_url}/pools/{pool.id}/nodes/{node.id}"
    recent = [
        _present(
            {
                "taskUrl": f"{base_url}/jobs/{job}/tasks/{task.id}",
                "jobId": job,
                "taskId": task.id,
                "taskState": task.state,
                "executionInfo": execution(task),
            }
        )
        for job, task in tasks
    ]
    return _present(
        {
            "id": node.id,
            "url": url,
            "state": node.state,
            "schedulingState": "enabled" if node.scheduling else "disabled",
            "stateTransitionTime": _time(node.state_since),
            "lastBootTime": _time(node.booted),
            "allocationTime": _time(node.allocated),
            "ipAddress": "10.0.0.4",
            "affinityId": f"TVM:{node.id}",
            "vmSize": pool.spec["vmSize"],
            "totalTasksRun": node.tasks_run,
            "totalTasksSucceeded": node.tasks_succeeded,
            "runningTasksCount": len(node.runs),
            "runningTaskSlotsCount": node.slots_used,
            "recentTasks": recent or None,
            "isDedicated": node.dedicated,
            "endpointConfiguration": {"inboundEndpoints": []},
            "nodeAgentInfo": {"version": "1.0.0", "lastUpdateTime": _time(node.booted)} if node.booted else None,
            "virtualMachineInfo": {},
        }
    )


_COUNTED = {
    "starttaskfailed": "startTaskFailed",
    "leavingpool": "leavingPool",
    "waitingforstarttask": "waitingForStartTask",
    "upgradingos": "upgradingOS",
}
_NODE_STATES = (
    *("creating", "idle", "offline", "preempted", "rebooting", "reimaging", "running", "starting", "starttaskfailed"),
    *("leavingpool", "unknown", "unusable", "waitingforstarttask", "deallocated", "deallocating", "upgradingos"),
)


def node_counts(pool: Pool) -> Json:
    """How many nodes of each kind are in which state."""
    counts: dict[bool, dict[str, int]] = {}
    for dedicated in (True, False):
        states = [node.state for node in pool.nodes.values() if node.dedicated == dedicated]
        counts[dedicated] = {_COUNTED.get(state, state): states.count(state) for state in _NODE_STATES}
        counts[dedicated]["total"] = len(states)
    return {"poolId": pool.id, "dedicated": counts[True], "lowPriority": counts[False]}


def job(job: Job, base_url: str) -> Json:
    done = job.state == "completed"
    constraints = {"maxWallClockTime": UNLIMITED, "maxTaskRetryCount": 0} | _present(job.spec.get("constraints") or {})
    defaults = {
        "priority": 0,
        "maxParallelTasks": -1,
        "allowTaskPreemption": False,
        "usesTaskDependencies": False,
        "onAllTasksComplete": "noaction",
        "onTaskFailure": "noaction",
    }
    return _present(
        defaults
        | _present(job.spec)
        | _common(job, f"{base_url}/jobs/{job.id}")
        | _history(job)
        | {
            "constraints": constraints,
            "executionInfo": _present(
                {
                    "startTime": _time(job.created),
                    "endTime": _time(job.ends) if done else None,
                    "poolId": job.pool_id,
                    "terminateReason": job.terminate_reason if done else None,
                }
            ),
        }
    )


def task(task: Task, job: Job, base_url: str) -> Json:
    constraints = {
        "maxWallClockTime": UNLIMITED,
        "retentionTime": "P7D",
        "maxTaskRetryCount": job.constraint("maxTaskRetryCount") or 0,
    } | _present(task.spec.get("constraints") or {})
    defaults = {"requiredSlots": 1, "userIdentity": {"autoUser": {"scope": "pool", "elevationLevel": "nonadmin"}}}
    return _present(
        defaults
        | _present(task.spec)
        | _common(task, f"{base_url}/jobs/{job.id}/tasks/{task.id}")
        | _history(task)
        | {"constraints": constraints, "executionInfo": execution(task), "nodeInfo": _node_info(task, base_url)}
    )


def execution(task: Task) -> Json:
    """A task's executionInfo."""
    container = task.spec.get("containerSettings") and task.exit_code is not None
    return _present(
        {
            "startTime": _time(task.start_time),
            "endTime": _time(task.end_time),
            "exitCode": task.exit_code,
            "containerInfo": {"containerId": f"{task.number:064x}", "state": "exited"} if container else None,
            "failureInfo": _failure(task.failure) if task.failure else None,
            "retryCount": task.retry_count,
            "lastRetryTime": _time(task.last_retry),
            "requeueCount": task.requeue_count,
            "lastRequeueTime": _time(task.last_requeue),
            "result": task.result,
        }
    )


def _failure(failure: Failure) -> Json:
    details = [{"name": name, "value": value} for name, value in (failure.details or {}).items()]
    return {"category": failure.category, "code": failure.code, "message": failure.message, "details": details}


def _node_info(task: Task, base_url: str) -> Json | None:
    place = task.place
    if place is None:
        return None
    node_url = f"{base_url}/pools/{place.pool}/nodes/{place.node}"
    folder = f"workitems/{place.job}/job-1/{task.id}"
    return {
        "affinityId": f"TVM:{place.node}",
        "nodeUrl": node_url,
        "poolId": place.pool,
        "nodeId": place.node,
        "taskRootDirectory": folder,
        "taskRootDirectoryUrl": f"{node_url}/files/{folder}",
    }
