"""Plays schedules side by side on one running stack, and keeps the books of each until all has come to its end."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from local.stack import BlockingStack
from tests.faults.audit import Event
from tests.faults.http_plan import FAULTY_SECONDS, Ask, Plan
from tests.faults.http_schedule import Schedule
from tests.faults.http_stack import TENANT, Ground, NotingStorage, write_program
from tests.faults.http_troubles import Troubles
from tests.faults.plan import Trouble
from tests.support.gate import Gate
from tests.support.outside import Haste

#: When faults have stopped, everything ends within this, on a machine that is very busy too.
_MOST_SECONDS_AFTER = 300.0
#: Then it is watched for so long that nothing begins anew: some ticks, and longer than HASTE's API may save late.
_WATCHED_SECONDS = 10.0
_PAUSE_SECONDS = 0.2
#: What HASTE's API refuses is asked again for so long.
_PATIENCE_SECONDS = 15.0
_PREFIXES = ("img-", "trn-", "inf-")


class Playing:
    """All schedules at once. What goes wrong in Batch, in a host or in storage hits all of them.

    After `play`: `left_over` by seed, which request has not come to its end; `strangers`, tasks that nobody asked for;
    `counts` of the Batch account's events and of the troubles that hit something.
    """

    def __init__(self, running: BlockingStack, gate: Gate, image: Path, plans: Sequence[Plan]) -> None:
        self.haste = Haste(running.stack, TENANT)
        self.troubles = Troubles(running, gate, self._later)
        self.counts: Counter[str] = Counter()
        self.strangers: list[str] = []
        self.left_over: dict[int, str] = {}
        self._batch = self.troubles.batch
        storage = NotingStorage(running.stack.accounts[TENANT].connection_string)
        self.haste.api.storage = storage
        ground = Ground.made(self.haste)
        self.schedules = {plan.seed: Schedule(plan, self.haste, storage, ground) for plan in plans}
        self._turns = itertools.cycle(self.schedules.values())
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._seen_events = 0
        self._take_events(of_tasks=False)
        for schedule in self.schedules.values():
            schedule.prepare()
            for entity, work in zip(schedule.entities, schedule.plan.works, strict=True):
                write_program(image, entity.entity_id, work.seconds, work.exit_code)
        self._began = time.monotonic()

    def play(self) -> None:
        """Everything that is planned, then time without faults until all requests have ended, and some more."""
        for schedule in self.schedules.values():
            for ask in schedule.plan.asks:
                self._at(ask.at, lambda one=schedule, ask=ask: self._ask(one, ask, ask.at + _PATIENCE_SECONDS))  # type: ignore[misc]
            for trouble in schedule.plan.troubles:
                self._at(trouble.at, lambda one=schedule, trouble=trouble: self._trouble(one, trouble))  # type: ignore[misc]
        try:
            while self._agenda:
                self._do_what_is_due()
            self.troubles.stop()
            self._note_all("faults stop")
            self._until_all_have_ended()
        finally:
            self.troubles.close()

    def _unfinished(self) -> dict[int, str]:
        looked = {seed: schedule.unfinished(self._look_at(schedule)) for seed, schedule in self.schedules.items()}
        return {seed: why for seed, why in looked.items() if why is not None}

    # --- time

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _at(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (seconds, next(self._order), happens))

    def _later(self, seconds: float, happens: Callable[[], None]) -> None:
        self._at(self._seconds() + seconds, happens)

    def _do_what_is_due(self) -> None:
        while self._agenda and self._agenda[0][0] <= self._seconds():
            heapq.heappop(self._agenda)[2]()
        self._look_at(next(self._turns))
        time.sleep(_PAUSE_SECONDS)

    def _until_all_have_ended(self) -> None:
        deadline = self._seconds() + _MOST_SECONDS_AFTER
        quiet_since: float | None = None
        while self._seconds() < deadline:
            self.left_over = self._unfinished()
            quiet = not self.left_over and self.haste.is_idle()
            quiet_since = (quiet_since or self._seconds()) if quiet else None
            if quiet_since is not None and self._seconds() - quiet_since >= _WATCHED_SECONDS:
                break
            time.sleep(1.0)
        self._note_all("the end")

    # --- what is looked at

    def _look_at(self, schedule: Schedule) -> dict[Any, dict[str, Any]]:
        """Records first: a task that was added behind the last event that is entered came after what they show."""
        records = schedule.records()
        self._take_events()
        for one in self.schedules.values():
            one.look(records if one is schedule else {})
        return records

    def _take_events(self, of_tasks: bool = True) -> None:
        new: list[Event] = self._batch.admin("GET", f"/events?after={self._seen_events}")
        self._seen_events += len(new)
        for event in new:
            self.counts[event["event"]] += 1
            task = str(event.get("task", ""))
            if event["event"] == "job_state":
                for schedule in self.schedules.values():
                    schedule.take(event)
            elif of_tasks and task and event["event"] != "fault":
                self._take_task_event(task, event)

    def _take_task_event(self, task: str, event: Event) -> None:
        owner = next((one for one in self.schedules.values() if one.books.wish_of(task)), None)
        if owner is not None:
            owner.take(event)
        elif event["event"] == "task_created" and task.startswith(_PREFIXES):
            self.strangers.append(task)

    # --- what happens

    def _ask(self, schedule: Schedule, ask: Ask, until: float) -> None:
        if schedule.ask(ask):
            self._note(schedule, f"{ask.what} {ask.work}")
            if ask.first_added is not None:
                rule = {"operation": "create_task", "task": schedule.first_task(), **ask.first_added}
                self.troubles.rules.add(rule)
        elif self._seconds() < until:
            self._later(0.5, lambda: self._ask(schedule, ask, until))

    def _trouble(self, schedule: Schedule, trouble: Trouble) -> None:
        facts = dict(trouble.facts)
        work, then = facts.pop("work", 0), facts.pop("then", None)
        target = schedule.target(work, is_this_one=then is not None)
        if getattr(self.troubles, trouble.what)(target, **facts):
            self.counts[trouble.what] += 1
            self._note_all(f"{trouble.what} {target.place or ''} {facts}, of seed {schedule.plan.seed}")
            if then is not None:
                self._ask(schedule, Ask(self._seconds(), work, then), until=0)
        elif self._seconds() < FAULTY_SECONDS:
            self._later(_PAUSE_SECONDS, lambda: self._trouble(schedule, trouble))

    def _note_all(self, what: str) -> None:
        for schedule in self.schedules.values():
            self._note(schedule, what)

    def _note(self, schedule: Schedule, what: str) -> None:
        schedule.journal.append(f"{self._seconds():6.1f} s  {what}")
