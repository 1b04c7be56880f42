"""What Batch says about tasks and their jobs, in words that an operator reads; Batch not answering is an answer too."""

from __future__ import annotations

from dataclasses import dataclass

from shared.batch.types import JobState, TaskView
from shared.errors import JobOver, WorkerError
from shared.protocol.record import Placement
from shared.retry import at_most
from shared.worker import Worker

NOT_IN_BATCH = "not in Batch"
_PATIENCE_SECONDS = 15


@dataclass(frozen=True)
class InBatch:
    """What some Batch jobs hold: shown state by task id; `faults` says which jobs could not be read."""

    states: dict[str, str]
    disabled_jobs: frozenset[str]
    faults: tuple[str, ...]


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
    return task, NOT_IN_BATCH if task is None else told(task)


def told(task: TaskView) -> str:
    """State, node, and how it ended."""
    where = f" on node {task.node_id}" if task.node_id else ""
    if task.state != "completed":
        interrupted = " after an interruption" if task.state == "active" and task.previous_state == "running" else ""
        return f"{shown_state(task)}{interrupted}{where}"
    if task.succeeded:
        return f"ended with success{where}"
    return f"ended with {task.failure_code or 'a failure'}, exit code {task.exit_code}{where}"


def read_jobs(worker: Worker, job_ids: set[str]) -> InBatch:
    """All tasks in these Batch jobs, and which of the jobs are disabled."""
    states: dict[str, str] = {}
    disabled, faults = set(), []
    for job_id in sorted(job_ids):
        try:
            with at_most(_PATIENCE_SECONDS):
                states |= {task.task_id: shown_state(task) for task in worker.batch.tasks(job_id)}
                if worker.batch.job(job_id).state is JobState.DISABLED:
                    disabled.add(job_id)
        except WorkerError as error:
            faults.append(_not_read(job_id, error))
    return InBatch(states, frozenset(disabled), tuple(faults))


def read_whether_disabled(worker: Worker, job_id: str) -> tuple[bool, str]:
    """Whether this Batch job is disabled, and a sentence if that could not be read."""
    try:
        with at_most(_PATIENCE_SECONDS):
            return worker.batch.job(job_id).state is JobState.DISABLED, ""
    except WorkerError as error:
        return False, _not_read(job_id, error)


def told_disabled(job_id: str) -> str:
    """Why no task of this Batch job starts, although nodes may be free."""
    return f"Batch job {job_id} is disabled, so that none of its tasks starts"


def enabling(job_id: str) -> str:
    """The operator's command, in the account of `az batch account login`."""
    return f"az batch job enable --job-id {job_id}"


def _not_read(job_id: str, error: WorkerError) -> str:
    return f"Batch job {job_id} not read: {error}"
