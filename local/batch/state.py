"""What a Batch account holds: pools, nodes, jobs and tasks. Data only; the `*_life` modules change it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from local.batch.formula import History
from local.batch.iso8601 import parse_duration
from local.batch.runner import Failure, Place

Spec = dict[str, Any]


@dataclass
class Resource:
    """What every resource has. `revision` rises with each change and makes the ETag."""

    id: str
    number: int
    created: datetime
    modified: datetime
    revision: int
    state: str
    state_since: datetime
    previous_state: str | None = None
    previous_state_since: datetime | None = None

    @property
    def etag(self) -> str:
        return f"0x{0x8DE000000000000 + self.revision:X}"


@dataclass
class Run:
    """A task's process on a node, from start until the runner says that it ended.

    `why_stopped` is set when somebody has asked for its end: terminated, expired, requeue or deleted.
    `lost`: the process has gone with its node, which Batch has yet to notice; `stuck`: it will not notice by itself.
    """

    number: int
    job: str
    task: str
    place: Place
    slots: int
    started: datetime
    why_stopped: str = ""
    lost: bool = False
    stuck: bool = False


@dataclass
class Task(Resource):
    spec: Spec = field(default_factory=dict)
    eligible_since: datetime | None = None
    retry_count: int = 0
    last_retry: datetime | None = None
    requeue_count: int = 0
    last_requeue: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    result: str | None = None
    place: Place | None = None
    run: Run | None = None
    files_cleaned: bool = False

    @property
    def slots(self) -> int:
        return int(self.spec.get("requiredSlots") or 1)

    def constraint(self, name: str) -> Any:
        return (self.spec.get("constraints") or {}).get(name)


@dataclass
class Job(Resource):
    """`queue` holds the ids of the active tasks in the order in which they were created; `action_due` is what a failed
    task's exit conditions want of the job: none, disable or terminate."""

    spec: Spec = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    queue: list[tuple[int, str]] = field(default_factory=list)
    running: int = 0
    completed: int = 0
    succeeded: int = 0
    ends: datetime | None = None
    terminate_reason: str | None = None
    action_over: datetime | None = None
    action_due: str = "none"

    @property
    def pool_id(self) -> str:
        return str(self.spec["poolInfo"]["poolId"])

    @property
    def priority(self) -> int:
        return int(self.spec.get("priority") or 0)

    @property
    def ends_by_itself(self) -> bool:
        """Whether it is terminated once no task is left to do; a job without tasks is, too."""
        return str(self.spec.get("onAllTasksComplete", "")).lower() == "terminatejob"

    @property
    def parallel_limit(self) -> int:
        """How many of its tasks may run at once; -1 is any number."""
        limit = self.spec.get("maxParallelTasks")
        return -1 if limit is None else int(limit)

    def constraint(self, name: str) -> Any:
        return (self.spec.get("constraints") or {}).get(name)


@dataclass
class Node(Resource):
    """`leaving` is the deallocation option with which the node is being removed from its pool.

    action: what it is to do once its tasks are gone: rebooting, reimaging or deallocating.
    boot: how often it has started. disk_boot: the start since which its disk is the same.
    directories: (job, task) -> the latest run that made the task's directory here, and its place.
    """

    pool: str = ""
    dedicated: bool = False
    boot: int = 1
    allocated: datetime | None = None
    booted: datetime | None = None
    scheduling: bool = True
    leaving: str = ""
    action: str = ""
    disk_boot: int = 1
    directories: dict[tuple[str, str], tuple[int, Place]] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    recent: list[tuple[str, str]] = field(default_factory=list)
    waits_for_capacity: bool = False
    tasks_run: int = 0
    tasks_succeeded: int = 0

    @property
    def slots_used(self) -> int:
        return sum(run.slots for run in self.runs.values())

    @property
    def works(self) -> bool:
        """Whether the node is up, so that the service sees its processes."""
        return self.state in ("idle", "running", "leavingpool", "offline")


@dataclass
class ResizeError:
    code: str
    message: str


@dataclass(frozen=True)
class ScriptedAllocation:
    """How the next growth of a pool goes: it gets at most `nodes` nodes, then it fails or times out with `code`."""

    outcome: str
    nodes: int = 0
    code: str = ""


@dataclass
class Pool(Resource):
    """`shortage` are errors injected into the next resizes. `autoscale_by_rule`: by the world file's plain rule, not by
    the pool's formula. `autoscale_speed`: how many times as fast as all else its auto-scale lives. `sampled` is
    False while samples get lost; `sampling_number` is 0 while none are taken."""

    spec: Spec = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    target_dedicated: int = 0
    target_low_priority: int = 0
    allocation_state: str = "steady"
    allocation_since: datetime | None = None
    resize_number: int = 0
    resize_errors: list[ResizeError] = field(default_factory=list)
    shortage: list[ResizeError] = field(default_factory=list)
    allocations: list[ScriptedAllocation] = field(default_factory=list)
    allocated: bool = True
    autoscale: bool = False
    autoscale_by_rule: bool = False
    autoscale_min: int = 0
    autoscale_max: int = 10
    autoscale_bucket: str = "lowPriority"
    autoscale_seconds: float = 900.0
    autoscale_speed: float = 1.0
    autoscale_number: int = 0
    autoscale_enabled: datetime | None = None
    autoscale_run: Spec | None = None
    history: History = field(default_factory=History)
    sampled: bool = True
    sampling_number: int = 0
    start_seconds: float = 0.0
    return_after_seconds: float | None = 60.0
    low_priority_available: int | None = None
    nodes_made: int = 0

    @property
    def slots_per_node(self) -> int:
        return int(self.spec.get("taskSlotsPerNode") or 1)

    @property
    def packs(self) -> bool:
        """Whether tasks fill a node before they use the next one."""
        return str((self.spec.get("taskSchedulingPolicy") or {}).get("nodeFillType", "spread")).lower() == "pack"


def seconds_of(duration: Any, missing: float) -> float:
    """A wire duration in seconds, `missing` when it is absent."""
    return parse_duration(duration).total_seconds() if duration else missing
