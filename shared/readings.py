"""What Batch says about tasks, nodes and pools, read once per tick (a timer) or just for one task (a handler)."""

from __future__ import annotations

from shared.batch.types import BatchService, JobState, NodeView, TaskView
from shared.errors import JobOver, Transient, WorkerError
from shared.placement.placer import read_pools
from shared.placement.routing import PoolReading


class Readings:
    """Caches within one tick. A reading that failed stays failed for that tick and is never a source of a decision."""

    def __init__(self, batch: BatchService, *, by_list: bool) -> None:
        self._batch = batch
        self._by_list = by_list
        self._tasks: dict[str, dict[str, TaskView] | WorkerError] = {}
        self._nodes: dict[str, dict[str, NodeView] | None] = {}
        self._pools: PoolReading | None = None
        self._over: dict[str, bool] = {}

    def task(self, job_id: str, task_id: str) -> TaskView | None:
        """The task; None if Batch does not list it. Raises JobOver, Transient or NeedsOperator.

        A task that is queued in a job that is over stays queued for ever: that is JobOver too.
        """
        task = self._task(job_id, task_id)
        if task is not None and task.state == "active" and self._is_over(job_id):
            raise JobOver(f"{job_id} is over with the task still queued")
        return task

    def _task(self, job_id: str, task_id: str) -> TaskView | None:
        if not self._by_list:
            return self._batch.task(job_id, task_id)
        if job_id not in self._tasks:
            try:
                self._tasks[job_id] = {task.task_id: task for task in self._batch.tasks(job_id)}
            except WorkerError as error:
                self._tasks[job_id] = error
        tasks = self._tasks[job_id]
        if isinstance(tasks, WorkerError):
            raise tasks
        return tasks.get(task_id)

    def is_calm(self, job_id: str, task_id: str, pool_id: str) -> str | None:
        """The task's state if nothing about it gives reason to look closer; None otherwise."""
        try:
            task = self.task(job_id, task_id)
        except WorkerError:
            return None
        if task is None or task.state == "completed" or self._is_suspect(pool_id, task):
            return None
        return task.state

    def nodes_if_suspect(self, pool_id: str, task: TaskView) -> dict[str, NodeView] | None:
        """The pool's nodes, if its counts or the task give reason to look; None if not looked at or not readable."""
        return self.nodes(pool_id) if self._is_suspect(pool_id, task) else None

    def nodes(self, pool_id: str) -> dict[str, NodeView] | None:
        """The pool's nodes by id; None if they could not be read."""
        if pool_id not in self._nodes:
            try:
                self._nodes[pool_id] = self._batch.nodes(pool_id)
            except Transient:
                self._nodes[pool_id] = None
        return self._nodes[pool_id]

    def pools(self) -> PoolReading:
        """Node counts and settings of all pools."""
        if self._pools is None:
            self._pools = read_pools(self._batch)
        return self._pools

    def _is_over(self, job_id: str) -> bool:
        if job_id not in self._over:
            self._over[job_id] = self._batch.job(job_id).state in (JobState.OVER, JobState.ABSENT)
        return self._over[job_id]

    def _is_suspect(self, pool_id: str, task: TaskView) -> bool:
        """It ran and is queued again; or it is called running in a pool that has lost nodes, or runs none at all."""
        if task.state == "active":
            return task.previous_state == "running"
        counts = (self.pools().counts or {}).get(pool_id)
        return counts is not None and (counts.lost > 0 or counts.running == 0)
