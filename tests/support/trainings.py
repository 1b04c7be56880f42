"""Many trainings of one tenant at once, told by messages, ticks and time."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

from shared.kinds import Entity, Kind
from shared.protocol.record import Record, State, task_id
from tests.support.small_world import PROJECT
from tests.support.story import Story


class Trainings(Story):
    """A story with many models, each named by its number."""

    def __init__(self, **options: Any) -> None:
        super().__init__(record_is_there=False, **options)

    def with_worker(self, **fields: Any) -> Trainings:
        """The same world, with a worker that is set otherwise."""
        self.worker = dataclasses.replace(self.worker, **fields)
        return self

    def remembering(self, **fields: Any) -> Trainings:
        """The same world, with a worker that remembers otherwise."""
        return self.with_worker(memory=dataclasses.replace(self.worker.memory, **fields))

    def with_policy(self, **fields: Any) -> Trainings:
        """The same world, with other limits for recovery."""
        policies = {kind: dataclasses.replace(policy, **fields) for kind, policy in self.worker.recovery.items()}
        return self.with_worker(recovery=policies)

    def train(self, *models: str) -> None:
        """HASTE's API asks for these trainings, one second after the other."""
        for model in models:
            self.world.batch_world.advance(1)
            self.world.save_record(entity(model), status="Queued", taskId=None)
            self.deliver(self.message(f"m{model}", "Queued", entity(model), modelId=model))

    def with_counts_lag(self, seconds: float) -> Trainings:
        """Node counts are so old, as in Azure."""
        world = self.world.batch_world
        timings = dataclasses.replace(world.config.timings, node_counts_lag_seconds=seconds)
        world.config = dataclasses.replace(world.config, timings=timings)
        return self

    def of(self, model: str) -> Record | None:
        """The live record of a model."""
        found = self.world.ledger.read(entity(model).key)
        return found.record if found else None

    def live_of(self, model: str) -> Record:
        """The same; it must be live."""
        found = self.of(model)
        assert found is not None
        return found

    def pool_of(self, model: str) -> str | None:
        """Where its present attempt is placed."""
        record = self.of(model)
        return record.placement.pool_id if record and record.placement else None

    def shown_of(self, model: str) -> dict[str, Any]:
        """HASTE's record of a model."""
        return self.world.record(entity(model))

    def ended(self, model: str) -> str | None:
        """How its only request has ended."""
        results = [one.outcome.result.value for one in self.world.ledger.done(entity(model)) if one.outcome]
        return results[0] if results else None

    def states(self) -> list[State]:
        """States of all live records."""
        return [one.state for one in self.world.ledger.live()]

    def running_in(self, pool: str) -> int:
        """How many tasks run in a pool, by the emulator's own books."""
        return sum(len(node.runs) for node in self.world.batch_world.pool(pool).nodes.values())

    def end_all(self, end: Any = 0, pool: str = "") -> None:
        """All tasks that run (in this pool) end by themselves."""
        for job, task in list(self.world.runner.running()):
            run = self.world.batch_world.task(job, task).run
            if run is not None and (not pool or run.place.pool == pool):
                self.world.runner.finish(job, task, end)
        self.world.batch_world.tick()

    def call(self, method: str, path: str, body: bytes = b"", status: int = 202) -> None:
        """What somebody else does to the account."""
        headers = {"authorization": "Bearer x", "content-type": "application/json"}
        answer = self.world.batch_world.handle(method, path, {"api-version": "2025-06-01"}, headers, body)
        assert answer.status == status, answer.json()
        self.world.batch_world.advance(5)

    def resize(self, pool: str, nodes: int) -> None:
        """A fixed pool gets other targets, and its nodes."""
        self.call("POST", f"/pools/{pool}/resize", b'{"targetLowPriorityNodes": %d}' % nodes)

    def operations(self, *names: str) -> list[str]:
        """What Batch was asked, of these operations."""
        return [event["operation"] for event in self.events("request") if event["operation"] in names]

    def wait(self, span: timedelta) -> None:
        """Time passes with nobody looking."""
        self.world.batch_world.advance(span.total_seconds())


def entity(model: str) -> Entity:
    return Entity(Kind.TRAINING, PROJECT, model)


def pool(name: str, nodes: int = 1, **fields: Any) -> dict[str, Any]:
    """A fixed pool of nodes that are there at once and do not come back by themselves."""
    base = {"id": name, "targetLowPriorityNodes": nodes, "start_seconds": 0, "return_after_seconds": None}
    return base | fields


def two_pools(h100: int = 1, t4: int = 1, **options: Any) -> Trainings:
    """h100 is preferred to t4."""
    return Trainings(pools=[pool("h100", h100), pool("t4", t4)], candidates=("h100", "t4"), **options)


#: Task id -> request, of all that the tests ask for.
_REQUESTS = {task_id(Kind.TRAINING, f"m{n}", attempt): f"m{n}" for n in range(60) for attempt in range(1, 9)}


def at_most_one_each(story: Trainings) -> None:
    """No request ever had two live tasks: an attempt's task is created when the one before is completed."""
    by_request: dict[str, set[str]] = {}
    for event in story.events("task_created", "task_completed", "task_deleted"):
        if event["task"] not in _REQUESTS:
            continue  # somebody else's
        live = by_request.setdefault(_REQUESTS[event["task"]], set())
        if event["event"] == "task_created":
            live.add(event["task"])
        else:
            live.discard(event["task"])
        assert len(live) <= 1, f"{live} at {event['time']}"
