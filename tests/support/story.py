"""One model's trainings told by messages, ticks and time, through the worker's own entry points."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from shared.kinds import Entity, Kind
from shared.ledger.port import Versioned
from shared.pools.readings import Readings
from shared.protocol.record import Record, State, task_id
from shared.triggers import messages, timer
from shared.triggers.messages import QueueMessage
from tests.support.kept import KeptBlobs
from tests.support.small_world import MODEL, PROJECT, TRAINING, SmallWorld

TWO_POOLS: dict[str, Any] = {
    "pools": [
        {"id": "h100", "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None},
        {"id": "t4", "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None},
    ],
    "candidates": ("h100", "t4"),
}


class Story:
    """What HASTE's API does, what the queues deliver, and the timer."""

    def __init__(self, *, record_is_there: bool = True, **options: Any) -> None:
        self.world = SmallWorld(**options)
        self.worker = self.world.worker
        self.kept = KeptBlobs()
        self._delivered = 0
        self._messages = 0
        if record_is_there:
            self.world.save_record(TRAINING, status="Queued", taskId=None)

    # --- messages

    def message(self, message_id: str, status: str, entity: Entity = TRAINING, **fields: Any) -> QueueMessage:
        """A message of HASTE's queue for this entity, put now."""
        word = "inferenceStatus" if entity.kind is Kind.INFERENCE else "status"
        body = {"projectId": PROJECT, "modelId": MODEL, word: status, **fields}
        return QueueMessage(f"{entity.kind}-queue", message_id, self.now(), json.dumps(body).encode())

    def deliver(self, message: QueueMessage, kind: Kind = Kind.TRAINING) -> None:
        messages.haste_message(self.worker, self.kept.rejected(), kind, message)

    def ask(self, message_id: str = "m1") -> QueueMessage:
        """HASTE's API asks for a training: its message is delivered at once. The message, to deliver it again."""
        message = self.message(message_id, "Queued")
        self.deliver(message)
        return message

    def cancel(self, message_id: str = "c1") -> None:
        """HASTE's API cancels: it saves its own word and puts a message."""
        if TRAINING_NAME in self.world.haste.blobs:
            self.world.save_record(TRAINING, status="Cancelled")
        self.deliver(self.message(message_id, "Cancelled"))

    # --- time

    def now(self) -> datetime:
        return self.world.now()

    def tick(self, after_seconds: float = 30) -> None:
        """Time passes, own messages that are due are delivered, the timer runs."""
        self.world.batch_world.advance(after_seconds)
        timer.tick(self.worker, Readings(self.worker, by_list=True), lambda: 0.0)
        self.deliver_own()

    def deliver_own(self) -> None:
        """Our own queue delivers what has become visible, once each."""
        due = [one for one in self.world.own_queue.messages if one[0] <= self.now()]
        self.world.own_queue.messages = [one for one in self.world.own_queue.messages if one[0] > self.now()]
        for _visible_at, text in due:
            self._messages += 1
            message = QueueMessage("own", f"own-{self._messages}", self.now(), text.encode())
            messages.own_message(self.worker, self.kept.rejected(), message)

    def until(self, wanted: Callable[[], object], ticks: int = 12) -> None:
        """Ticks until it is so."""
        for _ in range(ticks):
            if wanted():
                return
            self.tick()
        raise AssertionError(f"not within {ticks} ticks: {self.live}, {self.shown}, {self.world.live_tasks()}")

    def until_done(self, ticks: int = 12) -> None:
        """Ticks until no record is live."""
        self.until(lambda: self.live is None and not self.world.own_queue.messages, ticks)

    # --- what is there

    @property
    def version(self) -> Versioned:
        found = self.world.ledger.read(TRAINING.key)
        assert found is not None
        return found

    @property
    def live(self) -> Record | None:
        found = self.world.ledger.read(TRAINING.key)
        return found.record if found else None

    @property
    def record(self) -> Record:
        return self.version.record

    @property
    def state(self) -> State | None:
        return self.live.state if self.live else None

    @property
    def shown(self) -> dict[str, Any]:
        """HASTE's record."""
        return self.world.record(TRAINING)

    def task_id(self, attempt: int = 1, message_id: str = "m1") -> str:
        return task_id(Kind.TRAINING, message_id, attempt)

    def job_id(self) -> str:
        placed = self.record.placement
        assert placed is not None
        return placed.job_id

    def complete(self, exit_code: int = 0) -> None:
        """The task that runs ends by itself."""
        ((job, task),) = self.world.runner.running()
        self.world.runner.finish(job, task, exit_code)
        self.world.batch_world.tick()

    def ends(self) -> dict[str, str]:
        """Entry id -> how it ended; a cancel is "cancel"."""
        return {
            one.entry_id: one.outcome.result.value if one.outcome else "cancel"
            for one in self.world.ledger.done(TRAINING)
        }

    def events(self, *events: str, **facts: Any) -> list[dict[str, Any]]:
        """What the emulator noted."""
        return self.world.batch_world.events.select(*events, **facts)

    def created(self) -> list[str]:
        """Ids of all tasks that Batch ever took."""
        return [event["task"] for event in self.events("task_created")]

    def started(self) -> list[str]:
        """Ids of all tasks that ever ran, once per run."""
        return [event["task"] for event in self.events("task_started")]

    def task(self, task: str) -> dict[str, Any]:
        """The body of a task that Batch holds."""
        (found,) = [job.tasks[task] for job in self.world.batch_world.jobs.values() if task in job.tasks]
        return found.spec

    def fault(self, **rule: Any) -> None:
        self.world.batch_world.faults.add(rule)

    def mend(self) -> None:
        self.world.batch_world.faults.clear()


TRAINING_NAME = f"{TRAINING.kind}_{TRAINING.entity_id}"
