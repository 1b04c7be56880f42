"""Places an attempt: reads the pools, decides, and makes sure the Batch job is there (before anything is stored)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.batch.types import BatchService, JobState
from shared.errors import Transient
from shared.kinds import Kind
from shared.placement.job_names import legacy_job_id, pool_scoped_job_id, shared_job_id, with_successors
from shared.placement.routing import Avoid, Decision, PoolReading, route
from shared.protocol.record import Placement

#: Tasks of these jobs start first when a pool is full: a person waits for them.
PRIORITY = {"interactive": 100, "training": 0}


class JobNames(Protocol):
    """How Batch jobs are named in this deployment."""

    @property
    def tenant(self) -> str | None:
        """Stored with jobs we create; None in a deployment that keeps HASTE's job bodies."""

    def job_id(self, kind: Kind, pool_id: str, at: datetime) -> str:
        """The job that new tasks of this kind go to on this pool."""

    def priority(self, kind: Kind) -> int | None:
        """Job priority; None = not set."""


@dataclass(frozen=True)
class SharedNames:
    """`<tenant>-<class>-<pool>-<week>`: many tenants in one account."""

    tenant: str

    def job_id(self, kind: Kind, pool_id: str, at: datetime) -> str:
        """See `JobNames.job_id`."""
        return shared_job_id(self.tenant, kind.job_class, pool_id, at)

    def priority(self, kind: Kind) -> int | None:
        """See `JobNames.priority`."""
        return PRIORITY[kind.job_class]


@dataclass(frozen=True)
class LegacyNames:
    """HASTE's own rule and bare job bodies."""

    base_ids: dict[Kind, str]
    candidates: dict[Kind, tuple[str, ...]]
    tenant: None = None

    def job_id(self, kind: Kind, pool_id: str, at: datetime) -> str:  # noqa: ARG002  (same shape as SharedNames)
        """See `JobNames.job_id`."""
        return legacy_job_id(self.base_ids[kind], pool_id, self.candidates[kind])

    def priority(self, kind: Kind) -> int | None:  # noqa: ARG002
        """See `JobNames.priority`."""
        return None


class Placer:
    """Routing and Batch jobs for one tenant."""

    def __init__(
        self,
        batch: BatchService,
        candidates: Callable[[Kind], Sequence[str]],
        names: JobNames,
    ) -> None:
        self._batch = batch
        self._candidates = candidates
        self._names = names

    def candidates(self, kind: Kind) -> Sequence[str]:
        """Candidate pools of a kind, preferred first."""
        return self._candidates(kind)

    def job_id(self, kind: Kind, pool_id: str, at: datetime) -> str:
        """The Batch job that new tasks of this kind go to on this pool."""
        return self._names.job_id(kind, pool_id, at)

    def decide(self, kind: Kind, avoid: Mapping[str, Avoid], read: Callable[[], PoolReading] | None = None) -> Decision:
        """Choose a pool by one reading of all pools, which a tick makes once for all its decisions."""
        candidates = self._candidates(kind)
        if len(candidates) == 1:
            return route(candidates, PoolReading(), avoid)
        return route(candidates, read() if read else read_pools(self._batch), avoid)

    def place(
        self, kind: Kind, decision: Decision, task_id: str, at: datetime, earlier: Sequence[Placement] = ()
    ) -> Placement:
        """Make sure the Batch job for the decision is there. Raises QuotaReached, Transient, NeedsOperator.

        A job of an `earlier` attempt that somebody has deleted is not made again: a create that is still under way
        would find it.
        """
        assert decision.pool_id is not None
        job_id = self._ensure_job(kind, decision.pool_id, at, {placement.job_id for placement in earlier})
        return Placement(decision.pool_id, job_id, task_id, at, decision.why, decision.rejected)

    def adopted(self, job_id: str, task_id: str, at: datetime) -> Placement:
        """The placement of a task that HASTE's own app has started."""
        pool_id = self._batch.job(job_id).pool_id or ""
        return Placement(pool_id, job_id, task_id, at, "taken over from HASTE's own app")

    def _ensure_job(self, kind: Kind, pool_id: str, at: datetime, used: set[str]) -> str:
        """A job on this pool that takes tasks. One that is over, or bound to another pool, is left alone."""
        named = self._names.job_id(kind, pool_id, at)
        if self._batch.job(named).pool_id not in (None, pool_id):
            named = pool_scoped_job_id(named, pool_id)
        for job_id in with_successors(named):
            job = self._batch.job(job_id)
            if job.state is JobState.OVER or job.pool_id not in (None, pool_id):
                continue
            if job.state is JobState.ABSENT and job_id in used:
                continue
            if self._names.tenant is not None and job.tenant not in (None, self._names.tenant):
                continue  # two tenants' names can make one job id
            if job.state is JobState.ABSENT:
                self._batch.create_job(job_id, pool_id, self._names.priority(kind), self._names.tenant)
            elif job.state is JobState.DISABLED:  # HASTE's app disables the job whenever one of its tasks ends
                self._batch.enable_job(job_id)
            return job_id
        raise Transient(f"Batch job {named} and all its successors are over")


def read_pools(batch: BatchService) -> PoolReading:
    """Counts and settings of all pools, each call allowed to fail without hiding the other."""
    faults: list[str] = []
    counts = pools = None
    try:
        counts = batch.pool_counts()
    except Transient as error:
        faults.append(f"nodes not counted ({error})")
    try:
        pools = batch.pools()
    except Transient as error:
        faults.append(f"pools not read ({error})")
    return PoolReading(counts, pools, "; ".join(faults))
