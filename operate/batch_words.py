"""What Batch says about tasks, in words that an operator reads; Batch not answering is an answer too."""

from __future__ import annotations

from shared.batch.types import TaskView
from shared.errors import JobOver, WorkerError
from shared.protocol.record import Placement
from shared.retry import at_most
from shared.worker import Worker

_PATIENCE_SECONDS = 15


def shown_state(task: TaskView) -> str:
    """`queued`, `running` or `ended`: how users see a task that Batch lists."""
    return {"active": "queued", "completed": "ended"}.get(task.state, "running")


def read_task(worker: Worker, placed: Placement) -> tuple[TaskView | None, str]:
    """A task and what is to be said about it; None if it is not listed or could not be read."""
    try:
        with at_most(_PATIENCE_SECONDS):
            task = worker.batch.task(placed.job_id, placed.task_id)
    except JobOver:
        return None, "its Batch job is gone"
    except WorkerError as error:
        return None, f"not read: {error}"
    return task, "not in Batch" if task is None else told(task)


def told(task: TaskView) -> str:
    """State, node, and how it ended."""
    where = f" on node {task.node_id}" if task.node_id else ""
    if task.state != "completed":
        interrupted = " after an interruption" if task.state == "active" and task.previous_state == "running" else ""
        return f"{shown_state(task)}{interrupted}{where}"
    if task.succeeded:
        return f"ended with success{where}"
    return f"ended with {task.failure_code or 'a failure'}, exit code {task.exit_code}{where}"


def read_states(worker: Worker, job_ids: set[str]) -> tuple[dict[str, str], list[str]]:
    """Task id -> shown state, of all tasks in these Batch jobs; and what could not be read."""
    states: dict[str, str] = {}
    faults = []
    for job_id in sorted(job_ids):
        try:
            with at_most(_PATIENCE_SECONDS):
                states |= {task.task_id: shown_state(task) for task in worker.batch.tasks(job_id)}
        except WorkerError as error:
            faults.append(f"Batch job {job_id} not read: {error}")
    return states, faults
