"""The emulated Batch account: one lock, one clock, all resources.

Everything that happens later is a timer here. Nothing moves by itself: `tick()` catches up with the clock, `advance()`
moves a manual clock and catches up, and `handle()` does so before and after each request. With the same calls in the
same order a world always does the same.
"""

import copy
import heapq
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from local.batch import allocation, job_life, node_actions, pool_life, scheduler, scripted_events, task_life
from local.batch.clock import Clock, ManualClock
from local.batch.config import WorldConfig
from local.batch.errors import BatchError
from local.batch.events import EventLog
from local.batch.faults import Fault, Faults
from local.batch.handling import answer
from local.batch.request import Json, Request, Response
from local.batch.runner import RunEnd, Runner
from local.batch.scripted_runner import ScriptedRunner
from local.batch.state import Job, Node, Pool, Resource, Run, Task

_FOREVER_SECONDS = 10 * 365 * 86400.0


class World:
    """An account with its pools, jobs and tasks. Safe to use from many threads; `copy.deepcopy` makes a second one
    that goes on from the same state (with a scripted runner; running processes cannot be copied)."""

    def __init__(self, config: WorldConfig | None = None, clock: Clock | None = None, runner: Runner | None = None):
        self.config = config or WorldConfig()
        self.clock: Clock = clock or ManualClock()
        self.runner: Runner = runner or ScriptedRunner()
        self.lock = threading.RLock()
        self.events = EventLog(self.config.event_log)
        self._numbers = 0
        self._ticking = False
        self.runner.bind(self.run_ended, self._call_runner)
        self._begin()

    def _begin(self) -> None:
        self.faults = Faults(self.config.faults)
        self.scripted_faults: dict[int, Fault] = {}
        self.now = self.clock.now()
        self.pools: dict[str, Pool] = {}
        self.jobs: dict[str, Job] = {}
        self.runs: dict[int, Run] = {}
        self.changed = True
        self.changes = 0
        self.shown_counts: tuple[datetime, list[Json]] | None = None
        self.metrics: tuple[int, dict[str, Mapping[str, float]]] | None = None
        self._timers: list[tuple[datetime, int, Callable[..., None], tuple[Any, ...]]] = []
        for pool in self.config.pools:
            pool_life.add_configured_pool(self, pool)
        scripted_events.schedule(self)
        self.tick()

    @classmethod
    def from_json(cls, world: Mapping[str, Any], clock: Clock | None = None, runner: Runner | None = None) -> "World":
        """A world from a parsed world file."""
        return cls(WorldConfig.from_json(world), clock, runner)

    # requests and time

    def handle(
        self,
        method: str,
        raw_path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        base_url: str = "",
    ) -> Response:
        """Answer one request. `raw_path` is percent-encoded, `query` is decoded."""
        base_url = base_url or f"https://{self.config.account.name}.batch.local"
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        with self.lock:
            self.tick()
            response = answer(self, Request(method.upper(), raw_path, query or {}, lower, body, base_url))
            self.tick()
            return response

    def advance(self, seconds: float) -> None:
        """Move the manual clock forward, doing on the way all that falls due."""
        clock = self.clock
        if not isinstance(clock, ManualClock):
            raise TypeError("only a manual clock can be moved")
        with self.lock:
            clock.advance(seconds)
            self.tick()

    def tick(self) -> None:
        """Do all that is due by the clock, each thing at its own time and in order."""
        with self.lock:
            if self._ticking:
                return  # what is being done reports something, at its own time
            self._ticking = True
            try:
                self._catch_up()
            finally:
                self._ticking = False

    def _catch_up(self) -> None:
        target = max(self.clock.now(), self.now)
        self._settle()
        while self._timers and self._timers[0][0] <= target:
            due, _, action, arguments = heapq.heappop(self._timers)
            self.now = max(self.now, due)
            action(self, *arguments)
            self._settle()
        self.now = target

    def after(self, seconds: float, action: Callable[..., None], *arguments: Any) -> None:
        """Call `action(world, *arguments)` later. Arguments are ids, never resources, so that a world can be copied."""
        if seconds < _FOREVER_SECONDS:
            due = self.now + timedelta(seconds=max(seconds, 0.0))
            heapq.heappush(self._timers, (due, self.number(), action, arguments))

    def run_ended(self, run: int, end: RunEnd) -> None:
        """The runner's report that a run is over."""
        with self.lock:
            self.tick()
            task_life.run_ended(self, run, end)
            self.tick()

    def close(self) -> None:
        """Kill all tasks' processes."""
        self.runner.close()

    def reset(self) -> None:
        """Back to the world file: all tasks are killed, all jobs are gone. The event log goes on."""
        with self.lock:
            for run in self.runs:
                self.runner.abandon(run)
            for pool in self.pools.values():
                for node in pool.nodes.values():
                    self.runner.wipe_node(pool.id, node.id)
            self.log("reset")
            self._begin()

    def _settle(self) -> None:
        while self.changed:
            self.changed = False
            self.changes += 1
            job_life.settle(self)
            node_actions.settle(self)
            allocation.settle(self)
            scheduler.schedule(self)

    def _call_runner(self, seconds: float, run: int) -> None:
        self.after(seconds, _on_time, run)

    def __deepcopy__(self, memo: dict[int, Any]) -> "World":
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        with self.lock:
            twin.lock = threading.RLock()
            twin.config = self.config
            for name, value in vars(self).items():
                if name not in ("lock", "config"):
                    setattr(twin, name, copy.deepcopy(value, memo))
        return twin

    # resources

    def number(self) -> int:
        """The next number of a sequence that never repeats."""
        self._numbers += 1
        return self._numbers

    def log(self, event: str, **facts: Any) -> None:
        """Note an event at the present time."""
        self.events.add(self.now, event, **facts)

    def stamp(self, id: str, state: str) -> dict[str, Any]:
        """The first fields of a new resource."""
        number = self.number()
        return {
            "id": id,
            "number": number,
            "created": self.now,
            "modified": self.now,
            "revision": number,
            "state": state,
            "state_since": self.now,
        }

    def touch(self, resource: Resource) -> None:
        """A resource has changed: new ETag, new modification time."""
        resource.modified = self.now
        resource.revision = self.number()
        self.changed = True

    def move(self, resource: Resource, state: str) -> None:
        """A resource enters another state."""
        resource.previous_state, resource.previous_state_since = resource.state, resource.state_since
        resource.state, resource.state_since = state, self.now
        self.touch(resource)

    def pool(self, id: str) -> Pool:
        """A pool by its id, whatever the case; 404 PoolNotFound."""
        found = self.pools.get(id.lower())
        if found is None:
            raise BatchError("PoolNotFound")
        return found

    def node(self, pool: str, id: str) -> Node:
        """A node by its id; 404 NodeNotFound."""
        found = self.pool(pool).nodes.get(id)
        if found is None:
            raise BatchError("NodeNotFound")
        return found

    def job(self, id: str) -> Job:
        """A job by its id, whatever the case; 404 JobNotFound."""
        found = self.jobs.get(id.lower())
        if found is None:
            raise BatchError("JobNotFound")
        return found

    def task(self, job: str, id: str) -> Task:
        """A task by its id, whatever the case; 404 JobNotFound or TaskNotFound."""
        found = self.job(job).tasks.get(id.lower())
        if found is None:
            raise BatchError("TaskNotFound")
        return found


def _on_time(world: World, run: int) -> None:
    world.runner.on_time(run)
