"""One tenant's Batch: on an account that tenants share, nothing in another's Batch job is read, ended or added to.

Whose a job is, its metadata says: the storage account of the worker that created it. Version 0.1.0 wrote the tenant
alone, a label that two apps may share; such a job is ours if our ledger has placed a task in it, and gets the account
then. A job without any of this is HASTE's: of it only those tasks count whose results go to our storage account.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from shared.batch.client import AzureBatch, BatchClient
from shared.batch.types import JobState, JobView, TaskBody, TaskView, Whose
from shared.errors import JobOver, NotOurs

log = structlog.get_logger(__name__)

#: That a job is another's is looked at again after this: an operator may have mended its metadata.
_ANOTHERS_FOR = timedelta(minutes=10)


@dataclass(frozen=True)
class Tenant:
    """Whom the worker works for.

    `account` is the name of its storage account. `placed_in` are the tasks that live records of its ledger have in a
    Batch job. `is_own_container`: this URL, with or without a query, is a container of its account. `haste_job_ids` is
    what HASTE's rule makes of this deployment's pools. `shares` the Batch account: without it (legacy mode) jobs go by
    HASTE's rule alone, and are not looked at.
    """

    name: str
    account: str
    placed_in: Callable[[str], Collection[str]]
    is_own_container: Callable[[str], bool]
    now: Callable[[], datetime]
    haste_job_ids: frozenset[str] = frozenset()
    shares: bool = True


class TenantBatch(AzureBatch):
    """`BatchService` for one tenant. That a job is ours is found out once per process."""

    def __init__(self, client: BatchClient, tenant: Tenant) -> None:
        super().__init__(client)
        self._tenant = tenant
        self._ours: set[str] = set()
        self._passed: set[tuple[str, str | None]] = set()
        self._refused: dict[tuple[str, str | None], tuple[datetime, NotOurs]] = {}
        self._unclaimed: list[JobView] = []

    # --- whose a job is

    def is_ours(self, job: JobView) -> bool:
        """See `BatchService.is_ours`."""
        if job.job_id in self._ours:
            return True
        is_ours = job.account == self._tenant.account
        if not is_ours and self._is_of_first_version(job) and self._tenant.placed_in(job.job_id):
            self._stamp(job)
            is_ours = True
        if is_ours:
            self._ours.add(job.job_id)
        return is_ours

    def whose_task(self, job_id: str, task_id: str) -> Whose:
        """See `BatchService.whose_task`."""
        if not self._tenant.shares:
            return Whose.OURS
        job = self.job(job_id)
        if job.state is JobState.ABSENT:
            return Whose.NOBODYS
        if job.account is not None or job.tenant is not None:
            return Whose.ANOTHERS  # a worker's job, ours or not, holds nothing that HASTE's own app has started
        return self._whose_results(job_id, task_id)

    def unclaimed(self) -> list[JobView]:
        """See `BatchService.unclaimed`."""
        return self._unclaimed

    def claim(self, job: JobView) -> None:
        """See `BatchService.claim`."""
        if self._is_of_first_version(job) and job.job_id not in self._ours:
            self._stamp(job)
            self._ours.add(job.job_id)

    def _is_of_first_version(self, job: JobView) -> bool:
        return job.tenant == self._tenant.name and job.account is None

    def _stamp(self, job: JobView) -> None:
        log.info("Batch job of version 0.1.0 gets our storage account's name", batch_job=job.job_id)
        self.stamp_job(job.job_id, self._tenant.account)

    def _check(self, job_id: str, task_id: str | None = None) -> None:
        """Raises NotOurs, or JobOver if nothing of ours can be in the job. One that is absent tells so by itself."""
        if not self._tenant.shares or job_id in self._ours or (job_id, task_id) in self._passed:
            return
        refused_at, refusal = self._refused.get((job_id, task_id), (None, None))
        if refused_at is not None and refusal is not None and self._tenant.now() - refused_at < _ANOTHERS_FOR:
            raise refusal
        job = self.job(job_id)
        if job.state is JobState.ABSENT or self.is_ours(job):
            return
        if job.account is None and job.tenant is None and self._may_be_used(job_id, task_id):
            self._passed.add((job_id, task_id))
            return
        refusal = NotOurs(f"Batch job {job_id} was not created for the storage account {self._tenant.account}")
        self._refused[job_id, task_id] = self._tenant.now(), refusal
        raise refusal

    def _may_be_used(self, job_id: str, task_id: str | None) -> bool:
        """Whether a task of HASTE's own app, or one that was placed before pools were shared, is in this bare job."""
        is_named_by_rule = job_id in self._tenant.haste_job_ids
        if task_id is None:
            placed = self._tenant.placed_in(job_id)
            return is_named_by_rule or any(self._whose_results(job_id, one) is Whose.OURS for one in placed)
        whose = self._whose_results(job_id, task_id)
        if whose is Whose.NOBODYS and not is_named_by_rule:
            raise JobOver(f"{job_id} does not hold {task_id} any more, and takes no task of ours")
        return whose is not Whose.ANOTHERS

    def _whose_results(self, job_id: str, task_id: str) -> Whose:
        containers = self.output_containers(job_id, task_id)
        if containers is None:
            return Whose.NOBODYS
        is_ours = bool(containers) and all(map(self._tenant.is_own_container, containers))
        return Whose.OURS if is_ours else Whose.ANOTHERS

    # --- the calls that take a job's id

    def jobs_of(self, tenant: str) -> list[JobView]:
        """See `BatchService.jobs_of`."""
        found = super().jobs_of(tenant)
        ours = [job for job in found if self.is_ours(job)]
        self._unclaimed = [job for job in found if job.account is None and job.job_id not in self._ours]
        return ours

    def create_job(
        self, job_id: str, pool_id: str, priority: int | None, tenant: str | None, account: str | None = None
    ) -> bool:
        """See `BatchService.create_job`. A job with our tenant's name gets our storage account's name, too."""
        is_ours = tenant == self._tenant.name
        account = self._tenant.account if is_ours else account
        is_new = super().create_job(job_id, pool_id, priority, tenant, account)
        if is_new and is_ours:
            self._ours.add(job_id)
        return is_new

    def enable_job(self, job_id: str) -> None:
        """See `BatchService.enable_job`."""
        self._check(job_id)
        super().enable_job(job_id)

    def terminate_job(self, job_id: str) -> None:
        """See `BatchService.terminate_job`."""
        self._check(job_id)
        super().terminate_job(job_id)

    def delete_job(self, job_id: str) -> None:
        """See `BatchService.delete_job`."""
        self._check(job_id)
        super().delete_job(job_id)

    def create_task(self, job_id: str, body: TaskBody) -> None:
        """See `BatchService.create_task`."""
        self._check(job_id, body.task_id)
        super().create_task(job_id, body)

    def spend_task_id(self, job_id: str, task_id: str) -> None:
        """See `BatchService.spend_task_id`."""
        self._check(job_id, task_id)
        super().spend_task_id(job_id, task_id)

    def task(self, job_id: str, task_id: str) -> TaskView | None:
        """See `BatchService.task`."""
        self._check(job_id, task_id)
        return super().task(job_id, task_id)

    def tasks(self, job_id: str) -> list[TaskView]:
        """See `BatchService.tasks`."""
        self._check(job_id)
        return super().tasks(job_id)

    def live_tasks(self, job_id: str) -> list[TaskView]:
        """See `BatchService.live_tasks`."""
        self._check(job_id)
        return super().live_tasks(job_id)

    def terminate_task(self, job_id: str, task_id: str) -> None:
        """See `BatchService.terminate_task`."""
        self._check(job_id, task_id)
        super().terminate_task(job_id, task_id)

    def delete_stuck_task(self, job_id: str, task_id: str) -> None:
        """See `BatchService.delete_stuck_task`."""
        self._check(job_id, task_id)
        super().delete_stuck_task(job_id, task_id)

    def read_task_file(self, job_id: str, task_id: str, path: str, offset: int, most_bytes: int) -> bytes | None:
        """See `BatchService.read_task_file`."""
        self._check(job_id, task_id)
        return super().read_task_file(job_id, task_id, path, offset, most_bytes)

    def task_file_names(self, job_id: str, task_id: str, prefix: str) -> Iterable[str]:
        """See `BatchService.task_file_names`."""
        self._check(job_id, task_id)
        return super().task_file_names(job_id, task_id, prefix)
