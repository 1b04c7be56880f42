"""HASTE's own training and inference of one model, which share its record, in the small world."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from shared.errors import Conflict
from shared.haste.inference import Inference
from shared.haste.training import Training
from shared.haste.workload import Workload
from shared.kinds import Entity, Kind
from shared.pools.readings import Readings
from shared.protocol.record import Record, task_id
from shared.requests.haste_records import HasteRecords
from shared.triggers import messages, timer
from shared.triggers.messages import QueueMessage
from tests.support import samples
from tests.support.kept import KeptBlobs
from tests.support.memory_blobs import MemoryBlobs
from tests.support.small_world import SmallWorld

TRAINING = Entity(Kind.TRAINING, samples.PROJECT_ID, samples.MODEL_ID)
INFERENCE = Entity(Kind.INFERENCE, samples.PROJECT_ID, samples.MODEL_ID)


class ConditionalBlobs(MemoryBlobs):
    """With conditional writes."""

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        return (self.content[name], self._etag(name)) if name in self.content else None

    def replace(self, name: str, content: bytes, etag: str) -> str:
        if self._etag(name) != etag:
            raise Conflict(name)
        self.content[name] = content
        return self._etag(name)

    def _etag(self, name: str) -> str:
        return hashlib.sha256(self.content[name]).hexdigest()


class OneModel:
    """A model that inference follows on; its user, its queues and the timer."""

    def __init__(self, *, isolated: bool = False, **options: Any) -> None:
        self.world = SmallWorld(**options)
        kinds = {"layer": "imagelayer.processed", "model": "model.train-queued", "labels": "labelproject.with-labels"}
        self.blobs = ConditionalBlobs(samples.project_blobs(**kinds).content)
        work: dict[Kind, Workload] = {
            Kind.TRAINING: Training(self.blobs, image_name="image", isolated=isolated),
            Kind.INFERENCE: Inference(self.blobs, image_name="image", gdal_translate_params=""),
        }
        records = HasteRecords(self.blobs, self.world.ledger, work)
        self.worker = dataclasses.replace(self.world.worker, workloads=work, haste=records)
        self._rejected = KeptBlobs().rejected()

    # --- the user, and HASTE's API

    @property
    def model(self) -> dict[str, Any]:
        record = json.loads(self.blobs.content[samples.MODEL_NAME])
        assert isinstance(record, dict)
        return record

    def save(self, record: dict[str, Any]) -> None:
        """The API writes the whole record, without a condition."""
        self.blobs.content[samples.MODEL_NAME] = json.dumps(record).encode()

    def message(self, message_id: str, status: str) -> QueueMessage:
        """Put now, on the queue of trainings."""
        body = {"projectId": samples.PROJECT_ID, "modelId": samples.MODEL_ID, "status": status}
        return QueueMessage("training-queue", message_id, self.world.clock.now(), json.dumps(body).encode())

    def deliver(self, message: QueueMessage) -> None:
        messages.haste_message(self.worker, self._rejected, Kind.TRAINING, message)

    def train(self, message_id: str) -> None:
        self.save({**self.model, "status": "Queued"})
        self.deliver(self.message(message_id, "Queued"))

    # --- time

    def pass_seconds(self, seconds: float) -> None:
        self.world.batch_world.advance(seconds)

    def run_timer(self) -> None:
        timer.tick(self.worker, Readings(self.worker, by_list=True), lambda: 0.0)

    def deliver_own(self) -> None:
        """What has become visible on the worker's own queue."""
        queue, now = self.world.own_queue, self.world.clock.now()
        due = [one for one in queue.messages if one[0] <= now]
        queue.messages = [one for one in queue.messages if one[0] > now]
        for number, (_visible_at, text) in enumerate(due):
            messages.own_message(self.worker, self._rejected, QueueMessage("own", f"own-{number}", now, text.encode()))

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.pass_seconds(30)
            self.run_timer()
            self.deliver_own()

    # --- tasks and records

    def complete(self, exit_code: int = 0, *, trained_by: str = "") -> None:
        """All running tasks end; `trained_by`: the request whose training leaves a checkpoint."""
        if trained_by:
            task = task_id(Kind.TRAINING, trained_by, 1)
            self.blobs.content[f"{samples.FOLDER}/{task}/checkpoint/last.ckpt"] = b"weights"
        for job, name in list(self.world.runner.running()):
            self.world.runner.finish(job, name, exit_code)
        self.world.batch_world.tick()

    def delete_task(self, job_id: str, name: str) -> None:
        """Somebody deletes a task by hand."""
        headers = {"authorization": "Bearer x", "content-type": "application/json"}
        path, version = f"/jobs/{job_id}/tasks/{name}", {"api-version": "2025-06-01"}
        assert self.world.batch_world.handle("DELETE", path, version, headers, b"").status == 200

    def live(self, entity: Entity) -> Record | None:
        found = self.world.ledger.read(entity.key)
        return found.record if found else None

    def ends(self, entity: Entity) -> dict[str, str]:
        """How each request has ended."""
        return {one.entry_id: one.outcome.result.value for one in self.world.ledger.done(entity) if one.outcome}
