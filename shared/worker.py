"""What every use case works with: the services behind ports, the clocks, and the limits."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from shared.batch.task_body import TaskBodies
from shared.batch.types import BatchService
from shared.haste.visibility import Written
from shared.haste.workload import Change, JsonObject, Shown, Workload
from shared.kinds import Entity, Kind
from shared.ledger.notes import NotesStore
from shared.ledger.port import Ledger
from shared.limits import Limits, Policy
from shared.memory import Memory
from shared.protocol.record import Placement, Record


class HasteRecords(Protocol):
    """The HASTE records that show our work."""

    def shown(self, entity: Entity) -> Shown | None:
        """What HASTE's record says now; None if there is no record."""

    def is_gone(self, entity: Entity) -> bool:
        """There is no record, readable or not."""

    def show_progress(self, record: Record, change: Change) -> Written:
        """Write the progress of a live record, unless a newer run, a cancel or its own end stands there."""

    def show_end(self, entity: Entity, record: Record | None) -> Written:
        """Write the end of the newest request that has one. `record` = the one that is finishing, if any."""

    def show_failure(self, entity: Entity, change: Change) -> bool:
        """Write the failure of a request that never became a job, unless something else is shown by now."""

    def put(self, name: str, change: Callable[[JsonObject | None], JsonObject]) -> JsonObject:
        """Write a record that need not be there yet (None), or that cannot be read; what stands there now."""


class Choice(Protocol):
    """A pool that was chosen (None = wait), and why; `rejected` are the others, `pool: reason`."""

    @property
    def pool_id(self) -> str | None: ...
    @property
    def why(self) -> str: ...
    @property
    def rejected(self) -> tuple[str, ...]: ...


class Placer(Protocol):
    """Candidate pools, and Batch jobs on them for one tenant."""

    @property
    def tenant(self) -> str | None:
        """The tenant that our own jobs are marked with; None where jobs keep HASTE's names and bodies."""

    def candidates(self, kind: Kind) -> Sequence[str]:
        """Candidate pools of a kind, preferred first."""

    def job_id(self, kind: Kind, pool_id: str, at: datetime) -> str:
        """The Batch job that new tasks of this kind go to on this pool."""

    def place(
        self,
        kind: Kind,
        decision: Choice,
        task_id: str,
        at: datetime,
        earlier: Sequence[Placement] = (),
        gone: Callable[[], Container[str]] = frozenset,
    ) -> Placement:
        """Make sure the Batch job for the decision is there. Raises QuotaReached, Transient, Refused, JobDisabled."""

    def forget(self, job_id: str) -> None:
        """This job takes no tasks any more: look again before the next placement."""

    def adopted(self, job_id: str, task_id: str, at: datetime) -> Placement:
        """The placement of a task that HASTE's own app has started."""


class OwnQueue(Protocol):
    """The worker's own queue."""

    def send(self, text: str, visible_after_seconds: int = 0) -> None:
        """Put a message that shows up after some seconds and never expires."""


class ZipQueue(Protocol):
    """HASTE's queue of requests for zips."""

    def send(self, text: str) -> None:
        """Put a message that shows up at once."""


@dataclass(frozen=True)
class ManagedPools:
    """What an empty fixed pool is woken to. Without it the worker only reads pools."""

    dedicated_nodes: int
    low_priority_nodes: int


@dataclass(frozen=True)
class Worker:
    """One tenant's worker."""

    tenant: str
    ledger: Ledger
    haste: HasteRecords
    workloads: Mapping[Kind, Workload]
    batch: BatchService
    placer: Placer
    tasks: TaskBodies
    own_queue: OwnQueue
    zip_queue: ZipQueue
    limits: Limits
    recovery: Mapping[Kind, Policy]
    notes: NotesStore
    managed_pools: ManagedPools | None
    now: Callable[[], datetime]
    """the time by the storage account's clock, the same for all processes: it dates messages, blobs, and all that the
    ledger says of times, but for what happens in Batch"""
    batch_now: Callable[[], datetime]
    """the time by Batch's clock: it dates tasks, nodes, pools and Batch jobs, and so placements and losses too"""
    memory: Memory

    @property
    def pool_cool_down(self) -> timedelta:
        """How long a pool comes last: one setting, so that every kind's policy has the same."""
        return next(iter(self.recovery.values())).pool_cool_down
