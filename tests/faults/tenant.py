"""One tenant in a small world: HASTE's API and queues, the timer, the nodes' programs, and people with portal access.

The worker is reached by queue messages and the timer alone. Time is moved by hand, also while the worker pauses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
import tenacity

from local.batch import RunEnd, control
from local.batch.request import Response
from local.batch.runner import RunOrder
from shared.errors import WorkerError
from shared.haste import records
from shared.haste.workload import Change, JsonObject, Workload
from shared.kinds import Entity, Kind
from shared.pools.readings import Readings
from shared.protocol.outcome import Outcome, Run
from shared.triggers import messages, timer
from shared.triggers.messages import QueueMessage
from tests.support.kept import KeptBlobs
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import PROJECT, SmallWorkload, SmallWorld
from tests.support.stepping import Actor, Stepped

#: A message that could not be dealt with shows up again after this, so often (host.json).
_SHOWS_UP_AGAIN = timedelta(seconds=30)
_MOST_DELIVERIES = 5
_WHAT_ID = {Kind.IMAGERYPREP: "imageLayerId", Kind.TRAINING: "modelId", Kind.INFERENCE: "modelId"}
_STATUS = {Kind.IMAGERYPREP: "status", Kind.TRAINING: "status", Kind.INFERENCE: "inferenceStatus"}
_BY_HAND = ({"api-version": "2025-06-01"}, {"authorization": "Bearer somebody", "content-type": "application/json"})

#: Plays the work of a handler or a timer, and says whether it came to its end.
Play = Callable[[Callable[[], None]], bool]

TWO_POOLS = tuple(
    {"id": pool, "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None}
    for pool in ("h100", "t4")
)


@dataclass(frozen=True)
class Asked:
    """A message that HASTE's API has put: a request, or a cancel."""

    message_id: str
    entity: Entity
    at: datetime
    is_cancel: bool = False


@dataclass
class Letter:
    """A message on its way; `kind` is None on the worker's own queue."""

    message: QueueMessage
    kind: Kind | None
    visible_at: datetime
    deliveries: int = 0

    @property
    def is_cancel(self) -> bool:
        return self.message.message_id.startswith("cancel")


class MovingWaits(PassingWaits):
    """Pauses of the worker pass at once, and move the clock of the tenant that is played now."""

    tenant: Tenant | None = None
    passed_seconds = 0.0

    def monotonic(self) -> float:
        return self._began + self.passed_seconds

    def sleep(self, seconds: float) -> None:
        self.passed_seconds += seconds
        if self.tenant is not None:
            self.tenant.pass_seconds(seconds)

    @classmethod
    def installed(cls, patch: pytest.MonkeyPatch) -> MovingWaits:
        """For the Batch adapter and for the handlers' own limits."""
        waits = cls()
        patch.setattr(tenacity, "time", SimpleNamespace(monotonic=waits.monotonic))
        patch.setattr("shared.retry.time", SimpleNamespace(monotonic=waits.monotonic, sleep=time.sleep))
        patch.setattr("shared.batch.client.patiently", waits.patiently)
        return waits


class ClosingWorkload(SmallWorkload):
    """As HASTE's kinds do: an end without a task closes the job that an earlier attempt has left open."""

    def finished(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:
        finish = super().finished(run, outcome, shown_before=shown_before)

        def change(record: JsonObject) -> JsonObject:
            left_open = run.task_id is None and record.get("jobStatus") == "InProgress"
            changed = finish(record)
            return changed | {"jobStatus": changed["status"]} if left_open else changed

        return change


class Tenant:
    """Everything around one worker. `program` says after how many seconds a run ends and how; None = it goes on."""

    def __init__(
        self,
        waits: MovingWaits,
        pools: tuple[dict[str, Any], ...] = TWO_POOLS,
        follow_up: Kind | None = None,
    ) -> None:
        waits.tenant = self
        self.program: Callable[[RunOrder], tuple[float, RunEnd | int] | None] = lambda _order: None
        candidates = tuple(pool["id"] for pool in pools)
        self.world = SmallWorld(pools=list(pools), candidates=candidates, follow_up=follow_up, stepped=Stepped)
        self.worker, self.batch = self.world.worker, self.world.batch_world
        self.kept = KeptBlobs()
        self.letters: list[Letter] = []
        self.poisoned: list[Letter] = []
        self.asked: list[Asked] = []
        self.saves: list[tuple[datetime, Entity, dict[str, Any]]] = []
        self.follow_up = follow_up
        self._own_messages = 0
        workloads = cast(dict[Kind, Workload], self.worker.workloads)
        for kind in Kind:
            workloads[kind] = ClosingWorkload(kind, self.world.haste, follow_up if kind is Kind.TRAINING else None)

    # --- HASTE's API

    def new(self, kind: Kind, number: int = 1) -> Entity:
        """A layer or model of HASTE, with a record that says nothing yet."""
        name = f"{number:08}-0000-4000-8000-000000000000" if kind is Kind.IMAGERYPREP else str(number)
        entity = Entity(kind, PROJECT, name)
        self.world.save_record(entity, status=None, taskId=None)
        return entity

    def ask(
        self,
        entity: Entity,
        *,
        cancel: bool = False,
        number: int | None = None,
        arrives_after: float = 0,
        saved_after: float = 0,
        copies: int = 1,
    ) -> Asked:
        """The API puts a message, which arrives later and perhaps twice, and saves the record it has read before."""
        status = "Cancelled" if cancel else "Queued"
        message_id = f"{'cancel' if cancel else 'request'}-{number or len(self.asked) + 1}"
        body = {"projectId": PROJECT, _WHAT_ID[entity.kind]: entity.entity_id, _STATUS[entity.kind]: status}
        message = QueueMessage(f"{entity.kind}-queue", message_id, self.now(), json.dumps(body).encode())
        for copy in range(copies):
            arrives = self.now() + timedelta(seconds=arrives_after * (copy + 1))
            self.letters.append(Letter(message, entity.kind, arrives))
        self.saves.append(
            (self.now() + timedelta(seconds=saved_after), entity, self.record(entity) | {"status": status})
        )
        self.asked.append(Asked(message_id, entity, self.now(), cancel))
        self._save_due()
        return self.asked[-1]

    def record(self, entity: Entity) -> dict[str, Any]:
        """HASTE's record now."""
        return self.world.record(entity)

    def _save_due(self) -> None:
        due = [one for one in self.saves if one[0] <= self.now()]
        self.saves = [one for one in self.saves if one[0] > self.now()]
        for _at, entity, content in due:
            self.world.haste.save(f"{entity.kind}_{entity.entity_id}", records.dump(content))

    # --- time

    def now(self) -> datetime:
        return self.world.clock.now()

    def pass_seconds(self, seconds: float) -> None:
        """Time passes: programs end, the API's saves land."""
        until = self.now() + timedelta(seconds=seconds)
        while True:
            self._end_programs()
            due = min((at for at, _, _ in self._ends()), default=until)
            if due >= until:
                break
            self.batch.advance(max(0.0, (due - self.now()).total_seconds()))
        self.batch.advance(max(0.0, (until - self.now()).total_seconds()))
        self._end_programs()
        self._save_due()

    def _ends(self) -> list[tuple[datetime, RunOrder, RunEnd | int]]:
        found = []
        for number, live in self.world.runner.live.items():
            run = self.batch.runs.get(number)
            ending = (0.0, 1) if live.order.spec["commandLine"] == "/bin/false" else self.program(live.order)
            if run is not None and ending is not None and not live.kill_asked:
                found.append((run.started + timedelta(seconds=ending[0]), live.order, ending[1]))
        return found

    def _end_programs(self) -> None:
        while due := [(order, end) for at, order, end in self._ends() if at <= self.now()]:
            for order, end in due:
                if order.run in self.world.runner.live:
                    self.world.runner.finish(order.place.job, order.place.task, end)
            self.batch.tick()

    # --- queues and timer

    def collect_own(self) -> None:
        """What the worker has put on its own queue is on its way."""
        for visible_at, text in self.world.own_queue.messages:
            self._own_messages += 1
            message = QueueMessage("own", f"own-{self._own_messages}", self.now(), text.encode())
            self.letters.append(Letter(message, None, visible_at))
        self.world.own_queue.messages.clear()

    def due(self) -> list[Letter]:
        """Messages that are visible now."""
        self.collect_own()
        return [letter for letter in self.letters if letter.visible_at <= self.now()]

    def deliver_due(self) -> None:
        """Each visible message is delivered once."""
        for letter in self.due():
            if letter in self.letters:
                self.deliver(letter)

    def deliver(self, letter: Letter, play: Play | None = None) -> None:
        """One delivery. `play` plays the handler's work and says whether it came to its end; a host may die in it."""
        letter.deliveries += 1
        letter.visible_at = self.now() + _SHOWS_UP_AGAIN
        try:
            ended = (play or straight)(lambda: self._handle(letter))
        except WorkerError:
            ended = False
        if ended:
            self.letters = [one for one in self.letters if one is not letter]
        elif letter.deliveries >= _MOST_DELIVERIES:
            self.poisoned.append(letter)
            self.letters = [one for one in self.letters if one is not letter]

    def _handle(self, letter: Letter) -> None:
        if letter.kind is None:
            messages.own_message(self.worker, self.kept.rejected(), letter.message)
        else:
            messages.haste_message(self.worker, self.kept.rejected(), letter.kind, letter.message)

    def timer(self, play: Play | None = None) -> None:
        """One run of the timer. An error out of it is an error of the worker."""
        began = self.now()
        (play or straight)(lambda: self._tick(began))

    def _tick(self, began: datetime) -> None:
        timer.tick(self.worker, Readings(self.worker, by_list=True), lambda: (self.now() - began).total_seconds())

    def tick(self, after_seconds: float = 30) -> None:
        """Time passes, the timer runs, messages are delivered."""
        self.pass_seconds(after_seconds)
        self.timer()
        self.deliver_due()

    def is_quiet(self) -> bool:
        """Nothing is on its way, in the ledger or in Batch."""
        self.collect_own()
        return not (self.letters or self.saves or any(self.world.ledger.live()))

    # --- people with access to the account

    def by_hand(self, method: str, path: str, body: Any = None) -> Response:
        """A call to Batch that no fault touches."""
        rules, self.batch.faults.rules = self.batch.faults.rules, []
        try:
            content = b"" if body is None else json.dumps(body).encode()
            return self.batch.handle(method, path, *_BY_HAND, content)
        finally:
            self.batch.faults.rules = rules

    def take_capacity(self, pool: str) -> None:
        """Azure wants its machines back and has no other."""
        control.set_low_priority_available(self.batch, pool, 0)
        self.take_machines(pool)

    def take_machines(self, pool: str, **options: Any) -> None:
        """All machines of a pool are taken away."""
        for node in list(self.batch.pools[pool].nodes.values()) if pool in self.batch.pools else []:
            if node.state in ("idle", "running", "creating", "starting"):
                control.preempt_node(self.batch, pool, node.id, **options)

    def give_capacity(self, pool: str) -> None:
        """Azure has machines again."""
        if pool in self.batch.pools and self.batch.pools[pool].state == "active":
            control.set_resize_errors(self.batch, pool, [])
            control.set_low_priority_available(self.batch, pool, None)
            for node in list(self.batch.pools[pool].nodes.values()):
                control.bring_back(self.batch, pool, node.id)


def straight(work: Callable[[], None]) -> bool:
    """Nothing comes between."""
    work()
    return True


@dataclass
class Interruption:
    """Something happens just before an access (0 is the first) to storage or Batch of a handler or timer at work.

    First `other`; then the host goes on, or is `killed` there. `happened` is False if the work had fewer accesses.
    """

    access: int
    other: Callable[[], None] | None = None
    killed: bool = False
    happened: bool = False

    def __call__(self, work: Callable[[], None]) -> bool:
        """Play the work; whether it came to its end."""
        actor = begun(work)
        for _ in range(self.access):
            if not actor.dead:
                actor.step()
        self.happened = not actor.dead
        if self.happened and self.other is not None:
            self.other()
        if self.killed:
            actor.crash()
            return not self.happened
        while not actor.dead:
            actor.step()
        return True


@dataclass
class KilledAt:
    """The host is killed before the first access of this name, e.g. `batch.terminate_task`."""

    access: str

    def __call__(self, work: Callable[[], None]) -> bool:
        """Play the work; False, for it never comes to its end."""
        actor = begun(work)
        while not actor.dead and actor.at != self.access:
            actor.step()
        assert not actor.dead, f"the work never came to {self.access}"
        actor.crash()
        return False


def begun(work: Callable[[], None]) -> Actor:
    """The work, standing before its first access."""
    actor = Actor("a host", work)
    actor.step()
    return actor
