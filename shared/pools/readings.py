"""What Batch says about tasks, nodes and pools, read once per tick (a timer) or just for one task (a handler)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import structlog

from shared.batch.types import JobState, NodeView, PoolCounts, TaskView
from shared.errors import JobOver, NeedsOperator, WorkerError
from shared.ledger.pool_notes import PoolNotes
from shared.ledger.port import Listing, LiveSummary
from shared.pools import recovery
from shared.pools.placer import read_counts, read_pools
from shared.pools.routing import PoolReading, takes_a_slot
from shared.protocol.record import LIVE_STATES, State
from shared.worker import Worker

log = structlog.get_logger(__name__)

#: A handler that lists nothing asks for so many tasks one by one, to learn whether they take a slot still.
_MOST_LOOKED_UP = 5
#: If more tasks than this have left a job's list of live ones at once, the whole job is listed instead.
_MOST_ENDS_ASKED_FOR = 5


class Readings:
    """Caches within one tick. A reading that failed stays failed for that tick and is never a source of a decision."""

    def __init__(self, worker: Worker, *, by_list: bool) -> None:
        self._worker = worker
        self._batch = worker.batch
        self._by_list = by_list
        self._live: Listing | None = None
        self._taken: Counter[str] | None = None
        self._looked_up = 0
        self._notes: PoolNotes | None = None
        self._looked_at: dict[str, bool] = {}
        self._tasks: dict[str, dict[str, TaskView] | WorkerError] = {}
        self._ends: dict[tuple[str, str], TaskView | WorkerError | None] = {}
        self._nodes: dict[str, dict[str, NodeView] | None] = {}
        self._counts: PoolReading | NeedsOperator | None = None
        self._pools: PoolReading | NeedsOperator | None = None
        self._states: dict[str, JobState] | None = None
        self._over: dict[str, bool] = {}

    @property
    def may_admit(self) -> bool:
        """These are the timer's, which alone admits jobs where the live tasks are limited."""
        return self._by_list

    def task(self, job_id: str, task_id: str) -> TaskView | None:
        """The task; None if Batch does not list it. Raises JobOver, Transient or NeedsOperator.

        A task that is queued in a job that is over stays queued for ever: that is JobOver too.
        """
        task = self.listed(job_id, task_id)
        if task is not None and task.state == "active" and self._is_over(job_id):
            raise JobOver(f"{job_id} is over with the task still queued")
        return task

    def listed(self, job_id: str, task_id: str) -> TaskView | None:
        """The same, whatever has become of the job: what Batch lists, ended tasks included."""
        if not self._by_list:
            return self._batch.task(job_id, task_id)
        return self.live_tasks(job_id).get(task_id) or self._ended(job_id, task_id)

    def live_tasks(self, job_id: str) -> Mapping[str, TaskView]:
        """The tasks of a job that had not completed when this was first asked. Raises JobOver, Transient or others."""
        if job_id not in self._tasks:
            try:
                self._tasks[job_id] = {task.task_id: task for task in self._batch.live_tasks(job_id)}
            except WorkerError as error:
                self._tasks[job_id] = error
        tasks = self._tasks[job_id]
        if isinstance(tasks, WorkerError):
            raise tasks
        return tasks

    def _ended(self, job_id: str, task_id: str) -> TaskView | None:
        """A task that is not among the live ones: it has completed, or is not in Batch; each is asked for once."""
        if (job_id, task_id) not in self._ends:
            self._ask_for_ends(job_id, task_id)
        found = self._ends[job_id, task_id]
        if isinstance(found, WorkerError):
            raise found
        return found

    def _ask_for_ends(self, job_id: str, task_id: str) -> None:
        """For this task alone; for all of the job's that are missed if they are many."""
        named = {
            one.task_id for one in self.live() if one.job_id == job_id and one.state in LIVE_STATES and one.task_id
        }
        missed = named - self.live_tasks(job_id).keys()
        asked = {task_id} if len(missed) <= _MOST_ENDS_ASKED_FOR else missed | {task_id}
        found: dict[str, TaskView | None] = {}
        try:
            if len(asked) == 1:
                found[task_id] = self._batch.task(job_id, task_id)
            else:
                found |= {task.task_id: task for task in self._batch.tasks(job_id)}
        except WorkerError as error:
            self._ends |= {(job_id, one): error for one in asked}
        else:
            self._ends |= {(job_id, one): found.get(one) for one in asked}

    def calm_task(self, job_id: str, task_id: str, pool_id: str) -> TaskView | None:
        """The task if nothing about it or its node gives reason to look closer; None otherwise."""
        try:
            task = self.task(job_id, task_id)
        except WorkerError:
            return None
        if task is None or task.state == "completed":
            return None
        if not self._is_suspect(pool_id, task):
            return task
        nodes = None if task.state == "active" else self.nodes(pool_id)
        return None if nodes is None or recovery.is_without_node(task, nodes) else task

    def nodes_if_suspect(self, pool_id: str, task: TaskView) -> dict[str, NodeView] | None:
        """The pool's nodes, if its counts or the task give reason to look; None if not looked at or not readable."""
        return self.nodes(pool_id) if self._is_suspect(pool_id, task) else None

    def nodes(self, pool_id: str) -> dict[str, NodeView] | None:
        """The pool's nodes by id; None if they could not be read."""
        if pool_id not in self._nodes:
            try:
                self._nodes[pool_id] = self._batch.nodes(pool_id)
            except NeedsOperator as error:
                log.error("waits for an operator", error=f"nodes of {pool_id} not read ({error})")
                self._nodes[pool_id] = None
            except WorkerError:
                self._nodes[pool_id] = None
        return self._nodes[pool_id]

    def pools(self) -> PoolReading:
        """Node counts and settings of all pools. Raises NeedsOperator: nothing is decided on what is denied."""
        if self._pools is None:
            self._pools = _or_denial(lambda: read_pools(self._batch, self.counted()))
        return _granted(self._pools)

    def counts(self, pool_id: str) -> PoolCounts | None:
        """Node counts of one pool; None if it does not exist or was not counted."""
        try:
            return (self.counted().counts or {}).get(pool_id)
        except NeedsOperator:  # told where a decision needs them
            return None

    def counted(self) -> PoolReading:
        """Node counts of all pools, without their settings. Raises NeedsOperator, as `pools`."""
        if self._counts is None:
            self._counts = _or_denial(lambda: read_counts(self._batch))
        return _granted(self._counts)

    def notes(self) -> PoolNotes:
        """What is remembered about pools."""
        if self._notes is None:
            self._notes = self._worker.notes.read()
        return self._notes

    def live(self) -> Listing:
        """All live records, as they were when this was first asked."""
        if self._live is None:
            self._live = self._worker.ledger.live()
        return self._live

    def on_their_way(self) -> int:
        """How many records of ours stand before a placement, and will take a slot somewhere."""
        return sum(
            not one.is_unwanted and (one.state is State.ENDING or (one.state is State.WAITING and not one.has_waited))
            for one in self.live()
        )

    def tasks_placed_on(self, pool_id: str) -> Iterator[tuple[LiveSummary, TaskView]]:
        """Tasks of ours on a pool that this tick can see by its lists; none for a handler, which lists nothing."""
        for one in self.live() if self._by_list else ():
            if one.state is not State.PLACED or one.pool_id != pool_id or not (one.job_id and one.task_id):
                continue
            try:
                task = self.listed(one.job_id, one.task_id)
            except WorkerError:
                continue
            if task is not None:
                yield one, task

    def taken(self) -> Counter[str]:
        """Slots per pool that tasks of ours will take before a new one, or have taken without the counts showing it."""
        if self._taken is None:
            self._taken = Counter(one.pool_id for one in self.live() if one.pool_id and self._is_on_its_way(one))
        return self._taken

    def _is_on_its_way(self, one: LiveSummary) -> bool:
        if one.state is not State.PLACED or one.is_running or not (one.job_id and one.task_id and one.pool_id):
            return False
        if self._by_list and not isinstance(self._tasks.get(one.job_id), dict):
            return True  # not listed yet, or not readable
        if not self._by_list:
            counts = self.counts(one.pool_id)
            if counts is None or counts.idle == 0 or self._looked_up >= _MOST_LOOKED_UP:
                return True  # that it takes a slot changes nothing, or must be assumed
            self._looked_up += 1
        try:
            return takes_a_slot(self.listed(one.job_id, one.task_id), self._worker.batch_now())
        except WorkerError:
            return True

    def _is_over(self, job_id: str) -> bool:
        if job_id not in self._over:
            state = self._states_of_ours().get(job_id) or self._batch.job(job_id).state
            self._over[job_id] = state in (JobState.OVER, JobState.ABSENT)
        return self._over[job_id]

    def _states_of_ours(self) -> dict[str, JobState]:
        """All jobs of our own by one list; none for a handler, and where jobs have HASTE's names."""
        if self._states is None:
            tenant = self._worker.placer.tenant if self._by_list else None
            self._states = {job.job_id: job.state for job in self._batch.jobs_of(tenant)} if tenant else {}
        return self._states

    def _is_suspect(self, pool_id: str, task: TaskView) -> bool:
        """The task or its pool gives reason to look at its node, or nobody has for long."""
        if recovery.is_suspect(task, None):
            return True
        if task.state == "active":
            return False
        if recovery.is_suspect(task, self.counts(pool_id)):
            return True
        # other tenants' nodes can hide that ours is gone, so every pool is looked at now and then
        if pool_id not in self._looked_at:
            self._looked_at[pool_id] = self._worker.memory.nodes.is_due(pool_id, self._worker.now())
        return self._looked_at[pool_id]


def _or_denial(read: Callable[[], PoolReading]) -> PoolReading | NeedsOperator:
    try:
        return read()
    except NeedsOperator as denial:
        return denial


def _granted(reading: PoolReading | NeedsOperator) -> PoolReading:
    if isinstance(reading, NeedsOperator):
        raise reading
    return reading
