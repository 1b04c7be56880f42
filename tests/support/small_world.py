"""A whole worker in one process: real driver, table and Batch adapter; ledger and HASTE record in memory.

The Batch emulator's core stands behind the real SDK, without HTTP. Time moves only when a test moves it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential

from local.batch import ACCOUNT_KEY, InProcessTransport, ManualClock, ScriptedRunner, World
from shared.batch.client import AzureBatch, BatchCredential, connect
from shared.batch.task_body import TaskBodies
from shared.batch.task_spec import TaskSpec
from shared.batch.tenant_batch import Tenant, TenantBatch
from shared.errors import Conflict, NotThere
from shared.haste import records
from shared.haste.workload import Change, JsonObject, Shown, TaskFiles
from shared.kinds import Entity, Kind
from shared.limits import Limits, Policy
from shared.memory import Memory, Pace
from shared.pools.placer import Placer, SharedNames
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd
from shared.requests.haste_records import HasteRecords
from shared.service_clock import ServiceClock
from shared.worker import Worker
from tests.support.memory_ledger import MemoryLedger
from tests.support.memory_notes import MemoryNotes

PROJECT = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
MODEL = "4821"
TRAINING = Entity(Kind.TRAINING, PROJECT, MODEL)
INFERENCE = Entity(Kind.INFERENCE, PROJECT, MODEL)
#: The container that the results of this tenant's tasks go to.
OUTPUT = "https://tenantstorage.blob.local/data"
STATUS = {Result.COMPLETED: "Processed", Result.FAILED: "Failed", Result.CANCELLED: "Cancelled"}


class SmallRecords:
    """HASTE's records in memory, with ETags; `RecordBlobs`."""

    def __init__(self) -> None:
        self.blobs: dict[str, tuple[bytes, str]] = {}
        self._writes = 0

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        """See `RecordBlobs`."""
        return self.blobs.get(name)

    def create(self, name: str, content: bytes) -> bool:
        """See `RecordBlobs`."""
        if name in self.blobs:
            return False
        self.save(name, content)
        return True

    def replace(self, name: str, content: bytes, etag: str) -> str:
        """See `RecordBlobs`."""
        if self.blobs.get(name, (b"", None))[1] != etag:
            raise Conflict(name)
        return self.save(name, content)

    def save(self, name: str, content: bytes) -> str:
        """What HASTE's API does: overwrite without a condition."""
        self._writes += 1
        self.blobs[name] = (content, f'"{self._writes}"')
        return self.blobs[name][1]

    def get(self, name: str) -> JsonObject:
        """The record now."""
        return records.parse(self.blobs[name][0])


class SmallWorkload:
    """A kind of work with the least record that the protocol can be seen in: status, task id, job status, lines."""

    def __init__(self, kind: Kind, blobs: SmallRecords, follow_up: Kind | None = None) -> None:
        self.kind = kind
        self._blobs = blobs
        self._follow_up = follow_up

    def record_name(self, entity: Entity) -> str:
        return f"{entity.kind}_{entity.entity_id}"

    def shown(self, record: JsonObject) -> Shown:
        return Shown(record.get("status"), record.get("taskId"), record.get("jobStatus"))

    def check(self, entity: Entity) -> None:
        if self.record_name(entity) not in self._blobs.blobs:
            raise NotThere(self.record_name(entity))

    def prepare(self, run: Run, resign: Callable[[str], str]) -> TaskSpec:
        return TaskSpec("work", "image", (), ())

    def submitted(self, run: Run, at: datetime) -> Change:
        return _set(status="InProgress", taskId=run.task_id, jobStatus="InProgress")

    def progress(self, run: Run, files: TaskFiles, at: datetime) -> Change | None:
        return None

    def noted(self, run: Run, sentence: str, at: datetime) -> Change:
        return _set(note=sentence)

    def outcome(self, run: Run, end: TaskEnd) -> Outcome:
        result = Result.COMPLETED if end.succeeded else Result.FAILED
        return Outcome(result, "done" if end.succeeded else f"exit code {end.exit_code}", end.ended_at)

    def finished(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:
        status = STATUS[outcome.result]
        if run.task_id is None:
            return _set(status=status, sentence=outcome.sentence)
        return _set(status=status, taskId=run.task_id, jobStatus=status, sentence=outcome.sentence)

    def follow_up(self, run: Run, outcome: Outcome) -> Kind | None:
        return self._follow_up if outcome.result is Result.COMPLETED else None

    def to_zip(self, run: Run, outcome: Outcome) -> JsonObject | None:
        """As HASTE: not a training that went well, not an inference that was cancelled; all tasks leave something."""
        result = Result.COMPLETED if self.kind is Kind.TRAINING else Result.CANCELLED
        if run.task_id is None or outcome.result in (result, Result.SUPERSEDED):
            return None
        found = self._blobs.read_with_etag(self.record_name(run.entity))
        record = records.parse(found[0]) if found else {}
        return record if record.get("taskId") == run.task_id else None


def _set(**fields: Any) -> Change:
    return lambda record: record | fields


class OwnQueue:
    """The worker's own queue as a list of (visible at, text)."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.messages: list[tuple[datetime, str]] = []

    def send(self, text: str, visible_after_seconds: int = 0) -> None:
        """See `OwnQueue`."""
        self.messages.append((self._now() + timedelta(seconds=visible_after_seconds), text))


class ZipQueue:
    """HASTE's queue of requests for zips."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def send(self, text: str) -> None:
        """See `ZipQueue`."""
        self.messages.append(text)


class NoCredentials:
    """Tasks of the small world move no files."""

    def resource_files(self, spec: TaskSpec) -> list[dict[str, Any]]:
        return []

    def output_files(self, spec: TaskSpec) -> list[dict[str, Any]]:
        return []

    def resign(self, url: str) -> str:
        return url


def _unstepped(_name: str, port: Any) -> Any:
    return port


@dataclass
class SmallWorld:
    """`stepped(name, port)` may wrap each port of the worker, to stop actors between two accesses.

    `account` is the Batch account as anybody uses it, HASTE's own app and other tenants among them.
    """

    pools: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": "h100", "targetLowPriorityNodes": 2, "start_seconds": 0}]
    )
    candidates: tuple[str, ...] = ("h100",)
    follow_up: Kind | None = None
    stepped: Callable[[str, Any], Any] = _unstepped
    most_losses: int = 3
    storage: str = "tenantstorage"
    clock: ManualClock = field(default_factory=ManualClock)
    """Batch's"""
    ahead: timedelta = timedelta()
    """how far the storage account's clock is ahead of it"""
    credential: BatchCredential = field(default_factory=lambda: AzureNamedKeyCredential("localbatch", ACCOUNT_KEY))

    def __post_init__(self) -> None:
        self.runner = ScriptedRunner()
        self.batch_world = World.from_json({"pools": copy.deepcopy(self.pools)}, clock=self.clock, runner=self.runner)
        self.batch_world.advance(10)
        self._batch_clock = ServiceClock(self.now)
        self._client = connect(
            "https://batch.local",
            self.credential,
            transport=InProcessTransport(self.batch_world),
            raw_response_hook=self._batch_clock.heard,
        )
        self.account = AzureBatch(self._client)
        self.haste = SmallRecords()
        self.ledger = MemoryLedger(self.now)
        self.own_queue = OwnQueue(self.now)
        self.zip_queue = ZipQueue()
        self.worker = self.new_worker()

    def new_worker(self) -> Worker:
        """As a process makes it that has just started: it remembers nothing."""
        ledger = self.stepped("ledger", self.ledger)
        haste = self.stepped("haste", self.haste)
        tenant = Tenant("tenant", self.storage, self._placed_in, OUTPUT.__eq__, self.clock.now)
        batch = self.stepped("batch", TenantBatch(self._client, tenant))
        workloads = {
            Kind.TRAINING: SmallWorkload(Kind.TRAINING, self.haste, self.follow_up),
            Kind.INFERENCE: SmallWorkload(Kind.INFERENCE, self.haste),
        }
        policy = Policy(
            self.most_losses, timedelta(minutes=30), timedelta(minutes=5), timedelta(minutes=15), None, None
        )
        return Worker(
            tenant="tenant",
            ledger=ledger,
            haste=HasteRecords(haste, ledger, workloads),
            workloads=workloads,
            batch=batch,
            placer=Placer(batch, lambda _kind: self.candidates, SharedNames("tenant")),
            tasks=TaskBodies(True, timedelta(hours=1), dict.fromkeys(Kind), lambda _kind: NoCredentials()),
            own_queue=self.stepped("own_queue", self.own_queue),
            zip_queue=self.stepped("zip_queue", self.zip_queue),
            limits=Limits(timedelta(seconds=60), timedelta(minutes=2), timedelta(minutes=20)),
            recovery=dict.fromkeys(Kind, policy),
            memory=Memory(Pace(timedelta(0)), nodes=Pace(timedelta(minutes=5)), pools=Pace(timedelta(minutes=5))),
            notes=self.stepped("notes", MemoryNotes()),
            managed_pools=None,
            now=self.now,
            batch_now=self._batch_clock.now,
        )

    def _placed_in(self, job_id: str) -> frozenset[str]:
        return self.ledger.live().tasks_in(job_id)

    def now(self) -> datetime:
        """The time by the storage account's clock."""
        return self.clock.now() + self.ahead

    def save_record(self, entity: Entity, **fields: Any) -> None:
        """What HASTE's API saves: the whole record, without a condition."""
        name = f"{entity.kind}_{entity.entity_id}"
        before = self.haste.get(name) if name in self.haste.blobs else {}
        self.haste.save(name, records.dump(before | fields))

    def record(self, entity: Entity) -> JsonObject:
        """HASTE's record now."""
        return self.haste.get(f"{entity.kind}_{entity.entity_id}")

    def live_tasks(self) -> list[str]:
        """Task ids that Batch holds and that are not completed, by the emulator's own books."""
        return [
            task.id
            for job in self.batch_world.jobs.values()
            for task in job.tasks.values()
            if task.state != "completed"
        ]
