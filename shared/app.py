"""Puts the worker together from the app settings; everything is made on first use, nothing on import."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from shared.batch.client import BatchCredential, connect, named_key
from shared.batch.task_body import TaskBodies
from shared.batch.tenant_batch import Tenant, TenantBatch
from shared.batch.transfer import IdentityTransfer, SasTransfer, Transfer
from shared.haste.by_kind import workload
from shared.haste.contained import Contained
from shared.housekeeping.expiring import OldEntries
from shared.housekeeping.past_jobs import PastJobs
from shared.identity import AppIdentity
from shared.kinds import Kind
from shared.ledger.blob_ledger import BlobLedger
from shared.ledger.notes import BlobNotes
from shared.limits import Limits, Policy
from shared.memory import Memory, Pace
from shared.pools.job_names import legacy_job_ids
from shared.pools.placer import LegacyNames, Placer, SharedNames
from shared.requests.haste_records import HasteRecords
from shared.service_clock import ServiceClock
from shared.settings.lifetimes import sas_expiry
from shared.settings.load import load_settings
from shared.settings.table import Settings
from shared.storage import accounts
from shared.storage.addresses import ContainerAddress
from shared.storage.blob_container import BlobContainer
from shared.storage.delegation import Delegation
from shared.storage.lease import BlobLease
from shared.storage.queues import HASTE_SECONDS_TO_LIVE, QueueReader, WorkerQueue
from shared.storage.reading_once import HasteContainer
from shared.storage.reading_urls import ReadingUrls
from shared.storage.rejected import Rejected
from shared.telemetry import logs
from shared.triggers.timer import Timer
from shared.worker import ManagedPools, Worker

log = structlog.get_logger(__name__)

#: Must be host.json's functionTimeout.
FUNCTION_TIMEOUT = timedelta(minutes=10)
#: HASTE's API saves a record at most this long after its message; then the request is given up.
_RECORD_PATIENCE = timedelta(minutes=2)
#: The nodes of a pool in which our tasks run are listed this often even if nothing points to a loss.
_LOOK_AT_NODES_EVERY = timedelta(minutes=5)
_LOOK_AT_POOLS_EVERY = timedelta(minutes=5)


@dataclass
class App:
    """One tenant's worker with what the triggers need beside it."""

    settings: Settings
    worker: Worker
    haste_blobs: BlobContainer
    own_blobs: BlobContainer
    rejected: Rejected
    timer: Timer

    def tick(self) -> None:
        """One run of the timer."""
        self.timer.run(self.worker)


@functools.cache
def get_app() -> App:
    """The app of this process. Raises ConfigurationError with all faults of the settings."""
    return build(load_settings(os.environ))


def build(settings: Settings, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> App:
    """Make the worker for these settings. `now` is this machine's clock, which decides nothing (`ServiceClock`)."""
    logs.configure()
    haste_client = accounts.haste_container(settings)
    storage_clock = ServiceClock(now)
    batch_clock = ServiceClock(storage_clock.now)
    reading_urls = ReadingUrls(
        haste_client, settings.storage_account, settings.blob_container_read_policy, storage_clock.now
    )
    haste_blobs = HasteContainer(haste_client, reading_urls)
    own_blobs = BlobContainer(accounts.worker_container(settings, raw_response_hook=storage_clock.heard))
    own_blobs.ensure()
    queues = accounts.queues(settings)
    ledger = BlobLedger(own_blobs)
    workloads = {kind: Contained(workload(kind, settings, haste_blobs)) for kind in Kind}
    identity = AppIdentity(os.environ.get("AZURE_CLIENT_ID"))
    credential = _batch_credential(settings, identity)
    batch = TenantBatch(
        connect(settings.azure_batch_url, credential, raw_response_hook=batch_clock.heard),
        _tenant(settings, lambda job_id: ledger.live().tasks_in(job_id), batch_clock.now),
    )
    worker = Worker(
        tenant=settings.worker_tenant,
        ledger=ledger,
        haste=HasteRecords(haste_blobs, ledger, workloads),
        workloads=workloads,
        batch=batch,
        placer=Placer(batch, lambda kind: settings.of(kind).pool_ids, _job_names(settings)),
        tasks=TaskBodies(
            isolated=settings.shared_mode,
            retention_time=settings.task_retention,
            max_run={kind: settings.of(kind).max_run for kind in Kind},
            transfer=_transfer(settings, identity, storage_clock.now),
        ),
        own_queue=WorkerQueue(queues, settings.worker_queue_name),
        zip_queue=WorkerQueue(queues, settings.zip_queue_name, HASTE_SECONDS_TO_LIVE),
        limits=Limits(
            late_save=settings.worker_late_save,
            record_patience=_RECORD_PATIENCE,
            stuck=2 * FUNCTION_TIMEOUT,
            most_live_tasks=settings.worker_tenant_max_live_tasks,
        ),
        recovery={
            kind: Policy(
                most_losses_per_pool=settings.worker_max_preemptions,
                pool_cool_down=settings.worker_pool_cool_down,
                rerun_grace=settings.worker_preemption_grace,
                queued_too_long=settings.worker_queued_too_long,
                max_wait=settings.worker_max_wait if settings.shared_mode else None,
                max_run=settings.of(kind).max_run,
            )
            for kind in Kind
        },
        memory=Memory(
            progress=Pace(settings.worker_progress_every),
            nodes=Pace(_LOOK_AT_NODES_EVERY),
            pools=Pace(_LOOK_AT_POOLS_EVERY),
        ),
        notes=BlobNotes(own_blobs),
        managed_pools=_managed_pools(settings),
        now=storage_clock.now,
        batch_now=batch_clock.now,
    )
    rejected = Rejected(own_blobs)
    timer = Timer(
        rejected,
        QueueReader(queues),
        queue_names(settings),
        BlobLease(own_blobs, "timer.lease"),
        OldEntries(own_blobs),
        PastJobs(own_blobs),
        shares_pools=settings.shared_mode,
    )
    return App(settings, worker, haste_blobs, own_blobs, rejected, timer)


def queue_names(settings: Settings) -> dict[str, Kind | None]:
    """The queues the triggers listen on: HASTE's by kind, and our own (None)."""
    haste: dict[str, Kind | None] = {settings.of(kind).queue_name: kind for kind in Kind}
    return haste | {settings.worker_queue_name: None}


def _batch_credential(settings: Settings, identity: AppIdentity) -> BatchCredential:
    key = settings.azure_batch_account_key
    if key is not None:
        return named_key(settings.azure_batch_account_name, key.get_secret_value())
    return identity


def _managed_pools(settings: Settings) -> ManagedPools | None:
    if not settings.azure_batch_manage_pools:
        return None
    return ManagedPools(settings.azure_batch_target_dedicated_nodes, settings.azure_batch_target_low_priority_nodes)


def _tenant(settings: Settings, placed_in: Callable[[str], Collection[str]], now: Callable[[], datetime]) -> Tenant:
    account = settings.storage_account
    urls = (settings.azure_batch_output_container_url, f"{account.blob_url}/{settings.blob_container}")
    containers = [ContainerAddress(url) for url in urls]
    return Tenant(
        settings.worker_tenant,
        account.name,
        placed_in,
        is_own_container=lambda url: any(container.is_at(url) for container in containers),
        now=now,
        haste_job_ids=frozenset(
            job_id
            for kind in Kind
            for job_id in legacy_job_ids(settings.of(kind).base_job_id, settings.of(kind).pool_ids)
        ),
        shares=settings.shared_mode,
    )


def _job_names(settings: Settings) -> SharedNames | LegacyNames:
    if settings.shared_mode:
        return SharedNames(settings.worker_tenant)
    return LegacyNames(
        base_ids={kind: settings.of(kind).base_job_id for kind in Kind},
        candidates={kind: settings.of(kind).pool_ids for kind in Kind},
    )


def _transfer(settings: Settings, identity: AppIdentity, now: Callable[[], datetime]) -> Callable[[Kind], Transfer]:
    """Makes the credentials of one task of a kind."""
    account = settings.storage_account
    container = ContainerAddress(f"{account.blob_url}/{settings.blob_container}")
    output_url = settings.azure_batch_output_container_url
    if not settings.shared_mode:
        pool_identity = settings.azure_batch_registry_identity_resource_id or ""
        return lambda _kind: IdentityTransfer(container, output_url, pool_identity)
    delegation = Delegation(accounts.delegating_service(settings, identity), account.name, container, now)

    def sas(kind: Kind) -> Transfer:
        max_run = settings.of(kind).max_run or timedelta()
        return SasTransfer(container, output_url, delegation, sas_expiry(now(), settings.worker_max_wait, max_run))

    return sas
