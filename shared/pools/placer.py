"""Places an attempt: reads the pools, decides, and makes sure the Batch job is there (before anything is stored)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, assert_never

from shared.batch.types import BatchService, JobState
from shared.errors import JobDisabled, NeedsOperator, Transient, WorkerError
from shared.kinds import JobClass, Kind
from shared.pools.job_names import legacy_job_id, pool_scoped_job_id, shared_job_id, with_successors
from shared.pools.routing import PoolReading
from shared.protocol.record import Placement
from shared.worker import Choice

#: A job of our own that took a task is taken to do so for as long: if it does not, adding the task tells.
_JOB_STAYS = timedelta(minutes=10)


def _priority(job_class: JobClass) -> int:
    match job_class:
        case JobClass.INTERACTIVE:
            return 100
        case JobClass.TRAINING:
            return 0
        case _:
            assert_never(job_class)


#: By class of Batch job: tasks of higher ones start first when a pool is full, as a person waits for them.
PRIORITY: Mapping[str, int] = {job_class: _priority(job_class) for job_class in JobClass}


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
        self._seen: dict[tuple[str, str], tuple[str, datetime]] = {}

    @property
    def tenant(self) -> str | None:
        """The tenant that our own jobs are marked with; None where jobs keep HASTE's names and bodies."""
        return self._names.tenant

    def candidates(self, kind: Kind) -> Sequence[str]:
        """Candidate pools of a kind, preferred first."""
        return self._candidates(kind)

    def job_id(self, kind: Kind, pool_id: str, at: datetime) -> str:
        """The Batch job that new tasks of this kind go to on this pool."""
        return self._names.job_id(kind, pool_id, at)

    def place(
        self,
        kind: Kind,
        decision: Choice,
        task_id: str,
        at: datetime,
        earlier: Sequence[Placement] = (),
        gone: Callable[[], Container[str]] = frozenset,
    ) -> Placement:
        """Make sure the Batch job for the decision is there. Raises QuotaReached, Transient, Refused, JobDisabled.

        A job of an `earlier` attempt that somebody has deleted is not made again, nor is one that is `gone` for another
        request: a create that is still under way would find it.
        """
        if decision.pool_id is None:
            raise ValueError(f"a decision to wait is no place: {decision.why}")
        named = self._names.job_id(kind, decision.pool_id, at)
        job_id = self._seen_lately(named, decision.pool_id, at)
        used = {placement.job_id for placement in earlier}
        if job_id is None or job_id in used:
            job_id = self._ensure_job(kind, named, decision.pool_id, used, gone)
            if self._names.tenant is not None:  # HASTE's app disables its own jobs, so those are always looked at
                self._seen[named, decision.pool_id] = (job_id, at)
        return Placement(decision.pool_id, job_id, task_id, at, decision.why, decision.rejected)

    def forget(self, job_id: str) -> None:
        """This job takes no tasks any more: look again before the next placement."""
        self._seen = {key: seen for key, seen in self._seen.items() if seen[0] != job_id}

    def adopted(self, job_id: str, task_id: str, at: datetime) -> Placement:
        """The placement of a task that HASTE's own app has started."""
        pool_id = self._batch.job(job_id).pool_id or ""
        return Placement(pool_id, job_id, task_id, at, "taken over from HASTE's own app")

    def _seen_lately(self, named: str, pool_id: str, at: datetime) -> str | None:
        job_id, seen_at = self._seen.get((named, pool_id), (None, at))
        return job_id if at - seen_at < _JOB_STAYS else None

    def _ensure_job(
        self, kind: Kind, named: str, pool_id: str, used: set[str], gone: Callable[[], Container[str]]
    ) -> str:
        """A job on this pool that takes tasks. One that is over, or bound to another pool, is left alone."""
        first = self._batch.job(named)
        if first.pool_id not in (None, pool_id):
            named = pool_scoped_job_id(named, pool_id)
            first = self._batch.job(named)
        for job_id in with_successors(named):
            job = first if job_id == named else self._batch.job(job_id)
            if job.state is JobState.ABSENT:
                if job_id in used or job_id in gone():
                    continue
                if self._batch.create_job(job_id, pool_id, self._names.priority(kind), self._names.tenant):
                    return job_id
                job = self._batch.job(job_id)  # somebody else was first
            if job.state in (JobState.OVER, JobState.ABSENT) or job.pool_id not in (None, pool_id):
                continue
            if self._names.tenant is not None and not self._batch.is_ours(job):
                continue  # two tenants' names can make one job id
            if job.state is JobState.DISABLED and job.tenant is not None:
                raise JobDisabled(f"Batch job {job_id} is disabled; `az batch job enable --job-id {job_id}` enables it")
            if job.state is JobState.DISABLED:  # HASTE's app disables the job whenever one of its tasks ends
                with contextlib.suppress(Transient):  # not while it is being disabled; the timer enables it later
                    self._batch.enable_job(job_id)
            return job_id
        raise Transient(f"Batch job {named} and all its successors are over")


def read_counts(batch: BatchService) -> PoolReading:
    """Node counts of all pools; the call may fail. Raises NeedsOperator if it is denied."""
    try:
        return PoolReading(batch.pool_counts())
    except NeedsOperator as error:
        raise NeedsOperator(f"nodes not counted ({error})") from error
    except WorkerError as error:
        return PoolReading(fault=f"nodes not counted ({error})")


def read_pools(batch: BatchService, counted: PoolReading) -> PoolReading:
    """The counts, and the settings of all pools: this call, too, may fail without hiding the other's answer.

    Raises NeedsOperator if it is denied.
    """
    try:
        return replace(counted, pools=batch.pools())
    except NeedsOperator as error:
        raise NeedsOperator(f"pools not read ({error})") from error
    except WorkerError as error:
        return replace(counted, fault="; ".join(filter(None, (counted.fault, f"pools not read ({error})"))))
