"""What the worker knows of Azure Batch, free of the SDK: frozen values in Batch's own words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol


@dataclass(frozen=True)
class TaskView:
    """A task as Batch lists it. States are Batch's: active, preparing, running, completed."""

    task_id: str
    state: str
    previous_state: str | None = None
    state_changed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    succeeded: bool = False
    failure_code: str | None = None
    pool_id: str | None = None
    node_id: str | None = None
    created_at: datetime | None = None


class JobState(StrEnum):
    """Whether tasks can be created in a Batch job."""

    ABSENT = "absent"
    USABLE = "usable"
    DISABLED = "disabled"
    OVER = "over"


@dataclass(frozen=True)
class JobView:
    """A Batch job; `pool_id` is None if it is absent, `tenant` if it was not created by a worker in shared mode.

    `account` is the storage account of the worker that created it; None for jobs of version 0.1.0, too. `ended_at` is
    set once it is completed: no task of it runs, and none can be added any more.
    """

    state: JobState
    pool_id: str | None = None
    tenant: str | None = None
    job_id: str = ""
    created_at: datetime | None = None
    ended_at: datetime | None = None
    account: str | None = None


@dataclass(frozen=True)
class PoolCounts:
    """Nodes of a pool by state, dedicated and low-priority together, as Batch counts them (may lag by seconds)."""

    pool_id: str
    idle: int
    running: int
    starting: int
    lost: int
    """preempted, unusable, start task failed, unknown, offline: listed, but no capacity"""


@dataclass(frozen=True)
class PoolView:
    """A pool's settings and allocation, as routing needs them."""

    pool_id: str
    state: str
    allocation_state: str
    auto_scales: bool
    target_nodes: int
    current_nodes: int
    task_slots_per_node: int
    resize_error_codes: tuple[str, ...] = ()
    allocation_changed_at: datetime | None = None
    maximum_nodes: int | None = None
    auto_scale_formula: str | None = None
    auto_scale_every: timedelta | None = None
    auto_scaled_at: datetime | None = None
    auto_scale_error: str | None = None
    target_low_priority_nodes: int = 0
    """of `target_nodes`"""


@dataclass(frozen=True)
class NodeView:
    """A compute node; `last_boot_at` moves when a preempted node comes back under its old id."""

    node_id: str
    state: str
    last_boot_at: datetime | None = None
    state_changed_at: datetime | None = None


@dataclass(frozen=True)
class TaskBody:
    """All of a task's body that the worker decides. Resource and output files are in wire shape."""

    task_id: str
    command_line: str
    image_name: str
    container_run_options: str
    resource_files: tuple[dict[str, Any], ...]
    output_files: tuple[dict[str, Any], ...]
    environment: dict[str, str]
    retention_time: timedelta
    user_scope: str
    max_run: timedelta | None = None
    bind_mounts: tuple[str, ...] = ()


class Whose(StrEnum):
    """Whose task HASTE's own app has started, as far as Batch tells."""

    OURS = "ours"
    ANOTHERS = "another's"
    NOBODYS = "nobody's"
    """Batch does not list it"""


class BatchService(Protocol):
    """Azure Batch as the worker uses it. Every method raises Transient or QuotaReached as documented in errors.py.

    On an account that tenants share, what takes a job's id raises NotOurs if the job is another tenant's.
    """

    def job(self, job_id: str) -> JobView:
        """State of a job, whosever it is."""

    def is_ours(self, job: JobView) -> bool:
        """Whether this job, which exists, was created for this storage account."""

    def whose_task(self, job_id: str, task_id: str) -> Whose:
        """Whether a task of HASTE's own app may be taken over: its results go to this storage account."""

    def unclaimed(self) -> list[JobView]:
        """Of the jobs listed last, those of version 0.1.0 with our tenant's name in which nothing of ours is live."""

    def claim(self, job: JobView) -> None:
        """An unclaimed job is ours: a request of ours has run in it."""

    def create_job(self, job_id: str, pool_id: str, priority: int | None, tenant: str | None) -> bool:
        """Create a job; False (and nothing changed) if it exists. Look whose it is then."""

    def enable_job(self, job_id: str) -> None:
        """Enable a disabled job."""

    def jobs_of(self, tenant: str) -> list[JobView]:
        """The jobs of this tenant and storage account, those that are over included, in one paged call."""

    def terminate_job(self, job_id: str) -> None:
        """Begin to end a job, without waiting; success if it is over or gone. Its name stays taken."""

    def delete_job(self, job_id: str) -> None:
        """Begin to delete a job with all its tasks, without waiting; success if it is being deleted or gone."""

    def create_task(self, job_id: str, body: TaskBody) -> None:
        """Add a task; success if a task of that id exists. Raises JobOver, Refused."""

    def spend_task_id(self, job_id: str, task_id: str) -> None:
        """Make sure the id can never run: add a task of that id that can only fail. Success if it exists."""

    def task(self, job_id: str, task_id: str) -> TaskView | None:
        """One task; None if Batch does not list it. Raises JobOver if the job is gone."""

    def live_tasks(self, job_id: str) -> list[TaskView]:
        """The tasks of a job that have not completed. Raises JobOver if the job is gone."""

    def tasks(self, job_id: str) -> list[TaskView]:
        """All tasks of a job: in a week they become thousands. Raises JobOver if the job is gone."""

    def terminate_task(self, job_id: str, task_id: str) -> None:
        """End a task; success if it is completed or absent."""

    def delete_stuck_task(self, job_id: str, task_id: str) -> None:
        """Delete a task unless it has completed meanwhile (conditional)."""

    def pool_counts(self) -> dict[str, PoolCounts]:
        """Node counts of all pools, in one call."""

    def pools(self) -> dict[str, PoolView]:
        """All pools, in one paged call."""

    def pool(self, pool_id: str) -> PoolView | None:
        """One pool; None if it does not exist."""

    def resize_pool(self, pool_id: str, dedicated_nodes: int, low_priority_nodes: int) -> None:
        """Begin to resize a fixed pool, without waiting. Success if it is being resized already."""

    def evaluate_auto_scale_now(self, pool: PoolView) -> None:
        """Enable the pool's own formula once more, which makes Batch evaluate it at once."""

    def disable_node(self, pool_id: str, node_id: str) -> None:
        """Let Batch start no more tasks on a node. Success if it is so already, or the node is gone."""

    def nodes(self, pool_id: str) -> dict[str, NodeView]:
        """Nodes of a pool by id; empty if the pool is gone."""

    def read_task_file(self, job_id: str, task_id: str, path: str, offset: int, most_bytes: int) -> bytes | None:
        """Part of a file of a running task from its node, empty at or behind its end; None if it cannot be had now."""

    def task_file_names(self, job_id: str, task_id: str, prefix: str) -> Iterable[str]:
        """Paths of a task's files on its node below a prefix; empty if they cannot be had now."""
