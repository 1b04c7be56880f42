"""What Batch says about tasks and nodes, read once per tick (a timer) or just for one task (a handler)."""

from __future__ import annotations

from shared.batch.types import BatchService, NodeView, TaskView
from shared.errors import JobOver, Transient


class Readings:
    """Caches within one tick. A reading that failed stays failed for that tick and is never a source of a decision."""

    def __init__(self, batch: BatchService, *, by_list: bool) -> None:
        self._batch = batch
        self._by_list = by_list
        self._tasks: dict[str, dict[str, TaskView] | JobOver | Transient] = {}
        self._nodes: dict[str, dict[str, NodeView] | None] = {}
        self._suspect_pools: set[str] | None = None

    def task(self, job_id: str, task_id: str) -> TaskView | None:
        """The task; None if Batch does not list it. Raises JobOver or Transient."""
        if not self._by_list:
            return self._batch.task(job_id, task_id)
        if job_id not in self._tasks:
            try:
                self._tasks[job_id] = {task.task_id: task for task in self._batch.tasks(job_id)}
            except (JobOver, Transient) as error:
                self._tasks[job_id] = error
        tasks = self._tasks[job_id]
        if isinstance(tasks, Exception):
            raise tasks
        return tasks.get(task_id)

    def nodes_if_suspect(self, pool_id: str, task: TaskView) -> dict[str, NodeView] | None:
        """The pool's nodes, if its counts or the task give reason to look; None if not looked at or not readable."""
        if task.state == "running" and pool_id not in self._pools_with_lost_nodes():
            return None
        if task.state == "active" and task.previous_state != "running":
            return None
        if pool_id not in self._nodes:
            try:
                self._nodes[pool_id] = self._batch.nodes(pool_id)
            except Transient:
                self._nodes[pool_id] = None
        return self._nodes[pool_id]

    def _pools_with_lost_nodes(self) -> set[str]:
        if self._suspect_pools is None:
            try:
                counts = self._batch.pool_counts()
            except Transient:
                return set()
            # a running task without any running node: its node has left the pool
            self._suspect_pools = {pool for pool, count in counts.items() if count.lost or not count.running}
        return self._suspect_pools
