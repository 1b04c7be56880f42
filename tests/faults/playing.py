"""Plays a fault schedule against a tenant's worker under manual time, and makes a failing one shorter."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from local.batch import Failure, RunEnd, control
from local.batch.errors import BatchError
from local.batch.runner import RunOrder
from shared.errors import WorkerError
from shared.kinds import Kind
from tests.faults.audit import FAILS, Books, Violation
from tests.faults.plan import FAULTY_SECONDS, POOLS, Plan
from tests.faults.tenant import MovingWaits, Tenant, begun
from tests.support.stepping import Actor

_POOLS = tuple(
    {"id": pool, "targetLowPriorityNodes": 2, "start_seconds": 10, "return_after_seconds": 60} for pool in POOLS
)
_NODE_FAILS = RunEnd(failure=Failure("DiskFull", "usererror", "The disk is full", stage="before"))
#: When faults have stopped, everything ends within this: waiting for quota doubles up to an hour.
_MOST_SECONDS_AFTER = 6 * 3600.0


class Play:
    """One schedule. `run` raises Violation."""

    def __init__(self, waits: MovingWaits, plan: Plan) -> None:
        self.plan = plan
        self.tenant = Tenant(waits, pools=_POOLS, follow_up=Kind.INFERENCE)
        self.tenant.program = self._program
        self.books = Books(Kind.INFERENCE)
        trained = [n for n, kind in enumerate(plan.kinds) if kind is Kind.TRAINING]
        self.entities = [self.tenant.new(kind, number) for number, kind in enumerate(plan.kinds)]
        self.watched = [*self.entities, *(self.tenant.new(Kind.INFERENCE, number) for number in trained)]
        self._began = self.tenant.now()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._next_stop: dict[str, tuple[int, float | None]] = {}
        self._standing: list[Actor] = []

    def run(self) -> None:
        """Everything that is planned, then time without faults until nothing is left to do."""
        for ask in self.plan.asks:
            self._at(ask.at, lambda ask=ask: self._ask(ask))  # type: ignore[misc]
        for trouble in self.plan.troubles:
            self._at(trouble.at, lambda one=trouble: getattr(self, one.what)(**one.facts))  # type: ignore[misc]
        for at in self.plan.ticks:
            self._at(at, self._tick)
        self._at(FAULTY_SECONDS, self._faults_stop)
        while self._agenda:
            at, _, happens = heapq.heappop(self._agenda)
            self.tenant.pass_seconds(max(0.0, at - self._seconds()))
            happens()
            self._deliver()
            self._look()
        self._end_well()

    def _end_well(self) -> None:
        pause = 30.0
        while not self.tenant.is_quiet():
            if self._seconds() > FAULTY_SECONDS + _MOST_SECONDS_AFTER:
                raise Violation(f"never ends: {self.tenant.letters}, {list(self.tenant.world.ledger.live())}")
            self.tenant.pass_seconds(pause)
            self._tick()
            self._deliver()
            self._look()
            if not self.tenant.letters and not self.tenant.saves:
                self.books.check_shown(self._records())
            pause = min(pause * 1.15, 300.0)
        if self.tenant.poisoned or self.tenant.kept.blobs:
            raise Violation(f"lost: {self.tenant.poisoned}")
        self._look()
        self.books.check_end(self._records(), POOLS, self.tenant.world.most_losses)

    def _at(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (seconds, next(self._order), happens))

    def _seconds(self) -> float:
        return (self.tenant.now() - self._began).total_seconds()

    def _records(self) -> dict[Any, dict[str, Any]]:
        return {entity: self.tenant.record(entity) for entity in self.watched}

    def _look(self) -> None:
        self.tenant.batch.tick()
        self.books.look(self.tenant.asked, self.tenant.batch.events.entries, self._records())

    def _program(self, order: RunOrder) -> tuple[float, RunEnd | int]:
        chance = random.Random(f"{self.plan.seed} {order.place.task} {order.run}")
        end: RunEnd | int = chance.choices((0, FAILS, _NODE_FAILS), (90, 7, 3))[0]
        return chance.uniform(0, 500), end

    # --- HASTE, its queues and the timer

    def _ask(self, ask: Any) -> None:
        self.tenant.ask(
            self.entities[ask.entity],
            cancel=ask.cancel,
            number=ask.number,
            arrives_after=ask.arrives_after,
            saved_after=ask.saved_after,
            copies=ask.copies,
        )

    def _deliver(self) -> None:
        for letter in self.tenant.due():
            if letter in self.tenant.letters:
                self.tenant.deliver(letter, self._stop("handler"))
                self._look()

    def _tick(self) -> None:
        self.tenant.timer(self._stop("timer"))

    def _stop(self, who: str) -> Callable[[Callable[[], None]], bool] | None:
        """How the next work of a host is played, if it is to be stopped in it."""
        if who not in self._next_stop:
            return None
        access, stands_seconds = self._next_stop.pop(who)

        def play(work: Callable[[], None]) -> bool:
            actor = begun(work)
            for _ in range(access):
                if not actor.dead:
                    actor.step()
            if actor.dead:
                return True
            if stands_seconds is None:
                actor.crash()
            else:
                self._standing.append(actor)
                self._at(self._seconds() + stands_seconds, lambda: self._goes_on(actor))
            return False  # nobody hears of it: the message shows up again

        return play

    def _goes_on(self, actor: Actor) -> None:
        """A host that has stood still wakes up and does what it was about to do."""
        self._standing.remove(actor)
        with contextlib.suppress(WorkerError):
            while not actor.dead:
                actor.step()

    # --- what goes wrong

    def answers(self, rule: dict[str, Any], seconds: float) -> None:
        """Batch answers so for a while."""
        faults = self.tenant.batch.faults
        added = faults.add(rule)
        self._at(self._seconds() + seconds, lambda: faults.rules.remove(added) if added in faults.rules else None)

    def preempts(self, pool: str, options: dict[str, Any]) -> None:
        """The node that has run a task for the longest time is taken away."""
        with contextlib.suppress(BatchError):
            control.preempt_node(self.tenant.batch, pool, **options)

    def takes_capacity(self, pools: tuple[str, ...], error: str | None, seconds: float) -> None:
        """Azure wants its machines back for a while; the pools may be told why they get no others."""
        for pool in pools:
            if pool not in self.tenant.batch.pools:
                continue
            self.tenant.take_capacity(pool)
            if error is not None:
                control.set_resize_errors(self.tenant.batch, pool, [{"code": error, "message": "None left"}])
            self._at(self._seconds() + seconds, lambda pool=pool: self.tenant.give_capacity(pool))  # type: ignore[misc]

    def touches_task(self, action: str, which: int) -> None:
        """Somebody deletes or terminates a task of ours."""
        tasks = [(job.id, task.id) for job in self.tenant.batch.jobs.values() for task in job.tasks.values()]
        if tasks:
            job, task = tasks[which % len(tasks)]
            self._touch(action, f"/jobs/{job}/tasks/{task}")

    def touches_job(self, action: str, which: int) -> None:
        """Somebody deletes or terminates a Batch job of ours."""
        jobs = list(self.tenant.batch.jobs.values())
        if jobs:
            self._touch(action, f"/jobs/{jobs[which % len(jobs)].id}")

    def _touch(self, action: str, path: str) -> None:
        if action == "delete":
            self.tenant.by_hand("DELETE", path)
        else:
            self.tenant.by_hand("POST", f"{path}/terminate")

    def deletes_pool(self, pool: str, seconds: float) -> None:
        """Somebody deletes a pool, and makes it anew after a while."""
        self.tenant.by_hand("DELETE", f"/pools/{pool}")
        self._at(self._seconds() + seconds, lambda: self._make_pool(pool))

    def _make_pool(self, pool: str) -> None:
        image = {"publisher": "p", "offer": "o", "sku": "s"}
        machine = {"imageReference": image, "nodeAgentSKUId": "batch.node.ubuntu 22.04"}
        spec = {
            "id": pool,
            "vmSize": "standard_d2s_v3",
            "virtualMachineConfiguration": machine,
            "targetLowPriorityNodes": 2,
        }
        if pool not in self.tenant.batch.pools:
            made = self.tenant.by_hand("POST", "/pools", spec)
            assert made.status == 201, made.json()

    def stops_host(self, who: str, access: int, stands_seconds: float | None) -> None:
        """A host dies at its next work, or stands still in it for a while and then goes on."""
        self._next_stop[who] = (access, stands_seconds)

    def _faults_stop(self) -> None:
        self.tenant.batch.faults.clear()
        self._next_stop.clear()
        for pool in POOLS:
            self._make_pool(pool)
            self.tenant.give_capacity(pool)


def failure(waits: MovingWaits, plan: Plan) -> str | None:
    """What the schedule breaks; None if every guarantee holds."""
    try:
        Play(waits, plan).run()
    except Exception as error:  # noqa: BLE001  (whatever comes out of the worker is a failure of the schedule)
        return f"{type(error).__name__}: {error}"
    return None


def shortened(waits: MovingWaits, plan: Plan) -> Plan:
    """A schedule that fails still: cut off behind the failure, then without all that it fails without."""
    for length in range(len(plan.troubles)):
        prefix = replace(plan, troubles=plan.troubles[:length])
        if failure(waits, prefix) is not None:
            plan = prefix
            break
    for trouble in reversed(plan.troubles):
        if failure(waits, plan.without(trouble)) is not None:
            plan = plan.without(trouble)
    for ask in reversed(plan.asks):
        less = replace(plan, asks=tuple(one for one in plan.asks if one is not ask))
        if failure(waits, less) is not None:
            plan = less
    return plan
