"""What must hold, read from the Batch account's event log and from HASTE's records: never from the worker's ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.kinds import Entity, Kind
from shared.protocol.record import task_id
from tests.faults.tenant import Asked

Event = Mapping[str, Any]
ENDS = ("Processed", "Failed", "Cancelled")
#: Programs of these tests that fail by themselves end with this, so that nothing else is taken for them.
FAILS = 3
#: A request never needs more attempts than this in these tests.
_MOST_ATTEMPTS = 40
#: Progress is shown once a minute at most, and a save may land between its reading and its writing.
_MOST_LOOKS_LATE = 4


class Violation(AssertionError):
    """A guarantee is broken; the text says which."""


@dataclass(frozen=True)
class Wish:
    """A request as an outsider knows it, and the ids its tasks may have. A follow-up is asked by its parent's end."""

    request_id: str
    entity: Entity
    at: datetime
    is_follow_up: bool = False

    @property
    def name(self) -> str:
        return f"{self.request_id} of {self.entity.kind} {self.entity.entity_id}"


@dataclass
class Books:
    """What has happened to each request's tasks, kept up to date with the event log."""

    follow_up: Kind | None = None
    wishes: dict[str, Wish] = field(default_factory=dict)
    cancels: list[Asked] = field(default_factory=list)
    live: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    running: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    succeeded: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    forgotten: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    failed_alone: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    losses: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    shown_end: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    _request_of: dict[str, str] = field(default_factory=dict)
    _job_of: dict[str, str] = field(default_factory=dict)
    _pool_of_job: dict[str, str] = field(default_factory=dict)
    _late: Counter[str] = field(default_factory=Counter)
    _seen_asked: int = 0
    _seen_events: int = 0

    # --- keeping up

    def look(
        self, asked: Sequence[Asked], events: Sequence[Event], records: Mapping[Entity, Mapping[str, Any]]
    ) -> None:
        """Take in what is new. Raises Violation at the first thing that must never be."""
        for one in asked[self._seen_asked :]:
            if one.is_cancel:
                self.cancels.append(one)
            else:
                self._add(Wish(one.message_id, one.entity, one.at))
        self._seen_asked = len(asked)
        for event in events[self._seen_events :]:
            self._take(event)
        self._seen_events = len(events)
        for entity, record in records.items():
            self._look_at_record(entity, record)

    def wish_of(self, task: str) -> Wish | None:
        """The request whose task it is; None if it is none of these."""
        return self.wishes.get(self._request_of.get(task, ""))

    def _add(self, wish: Wish) -> None:
        self.wishes[wish.request_id] = wish
        for attempt in range(1, _MOST_ATTEMPTS):
            self._request_of[task_id(wish.entity.kind, wish.request_id, attempt)] = wish.request_id
        if self.follow_up and wish.entity.kind is Kind.TRAINING:
            after = Entity(self.follow_up, wish.entity.project_id, wish.entity.entity_id)
            self._add(Wish(f"{wish.request_id}+{self.follow_up.value}", after, wish.at, is_follow_up=True))

    def _take(self, event: Event) -> None:
        kind, task = event["event"], event.get("task", "")
        if kind == "job_state":
            self._pool_of_job.setdefault(event["job"], event.get("pool", ""))
            if event["state"] in ("terminating", "completed", "deleting"):
                self._job_is_over(event["job"])
            return
        request = self._request_of.get(task)
        if request is None:
            if kind == "task_created" and task[:4] in ("img-", "trn-", "inf-"):
                raise Violation(f"{task} belongs to no request")
            return
        match kind:
            case "task_created":
                self._job_of[task] = event["job"]
                self.live[request].add(task)
                if len(self.live[request]) > 1:
                    raise Violation(f"{self._told(request)}: two live tasks at {event['time']}: {self.live[request]}")
                if request in self.shown_end:
                    self._after_end(request, task)
            case "task_started":
                self.running[request].add(event["run"])
                if len(self.running[request]) > 1:
                    raise Violation(f"{self._told(request)}: two processes at {event['time']}")
            case "run_ended" | "run_lost":
                self.running[request].discard(event["run"])
                if kind == "run_lost":
                    self.losses[request][event["pool"]] += 1
            case "task_completed":
                self.live[request].discard(task)
                self._completed(request, task, event)
            case "task_deleted" | "task_forgotten":
                self.live[request].discard(task)
                self._forget(request, task)

    def _completed(self, request: str, task: str, event: Event) -> None:
        if event["result"] == "success":
            self.succeeded[request].append(task)
            if len(self.succeeded[request]) > 1:
                raise Violation(f"{self._told(request)}: ran to success twice: {self.succeeded[request]}")
        elif event.get("exit_code") == FAILS:
            self.failed_alone[request].append(task)
        else:
            self.losses[request][self._pool_of_job.get(event["job"], "")] += 1

    def _forget(self, request: str, task: str) -> None:
        """Somebody has deleted a task that had ended: whether anybody has seen its success only the worker knows."""
        if task in self.succeeded[request] and request not in self.shown_end:
            self.succeeded[request].remove(task)
            self.forgotten[request].append(task)

    def _job_is_over(self, job: str) -> None:
        """Nothing starts in it any more; what runs goes on until it is seen ended."""
        for request, tasks in self.live.items():
            for task in [task for task in tasks if self._job_of[task] == job and not self.running[request]]:
                tasks.discard(task)

    def _after_end(self, request: str, task: str) -> None:
        raise Violation(f"{self._told(request)}: {task} is added after its end was shown: {self.shown_end[request]}")

    def _look_at_record(self, entity: Entity, record: Mapping[str, Any]) -> None:
        """A request has one end: once it is shown, it is never shown as ended otherwise."""
        request = self._request_of.get(record.get("taskId") or "")
        status = record.get("status")
        if request is None or status not in ENDS or record.get("jobStatus") != status:
            return
        if status == "Cancelled" and any(
            wish.entity == entity and wish.at > self.wishes[request].at for wish in self.wishes.values()
        ):
            return  # a newer request was cancelled before it had a task
        if self.shown_end.setdefault(request, status) != status:
            raise Violation(f"{self._told(request)}: shown as {self.shown_end[request]}, then as {status}")

    def check_shown(self, records: Mapping[Entity, Mapping[str, Any]]) -> None:
        """While nothing is on its way: what runs is shown as in progress, or is so within some runs of the timer."""
        late = Counter[str]()
        for request, runs in self.running.items():
            wish = self.wishes[request]
            is_meant = self.newest(wish.entity) == wish and not self._is_cancelled(wish.entity, wish)
            if runs and is_meant and records[wish.entity].get("status") != "InProgress":
                late[request] = self._late[request] + 1
                if late[request] > _MOST_LOOKS_LATE:
                    raise Violation(f"{self._told(request)}: it runs, and HASTE shows {dict(records[wish.entity])}")
        self._late = late

    # --- the end

    def check_end(
        self, records: Mapping[Entity, Mapping[str, Any]], candidates: Iterable[str], most_losses: int
    ) -> None:
        """Every request has come to its one end, and HASTE's records say what the event log says."""
        for request, tasks in self.live.items():
            if tasks or self.running[request]:
                raise Violation(f"{self._told(request)}: {tasks} live on")
        for entity, record in records.items():
            self._check_entity(entity, record, tuple(candidates), most_losses)

    def newest(self, entity: Entity) -> Wish | None:
        """The request whose end HASTE's record must show. A follow-up counts from its parent's success."""
        wishes = [wish for wish in self.wishes.values() if wish.entity == entity]
        wishes = [wish for wish in wishes if not wish.is_follow_up or self._is_wanted(wish)]
        return max(wishes, key=lambda wish: (wish.at, wish.request_id), default=None)

    def _is_wanted(self, follow_up: Wish) -> bool:
        parent = follow_up.request_id.rpartition("+")[0]
        ran = any(self._request_of[task] == follow_up.request_id for task in self._job_of)
        return bool(self.succeeded[parent]) or (bool(self.forgotten[parent]) and ran)

    def _check_entity(
        self, entity: Entity, record: Mapping[str, Any], candidates: tuple[str, ...], most_losses: int
    ) -> None:
        wish = self.newest(entity)
        if wish is None:
            if record.get("status") in ENDS and not self._is_cancelled(entity, None):
                raise Violation(f"nobody asked, yet {entity.kind} {entity.entity_id} shows {record}")
            return
        possible = self._possible_ends(wish, candidates, most_losses)
        shown = record.get("status")
        if shown not in possible:
            raise Violation(f"{self._told(wish.request_id)}: HASTE shows {dict(record)}, wanted {possible}")
        had_tasks = [task for task in self._job_of if self._request_of[task] == wish.request_id]
        if shown == "Cancelled" and record.get("jobStatus") == "InProgress":
            raise Violation(f"{self._told(wish.request_id)}: HASTE shows {dict(record)}, with a job that goes on")
        # a cancel may have met it between two tasks
        named = record.get("taskId") in had_tasks and record.get("jobStatus") == shown
        if had_tasks and shown != "Cancelled" and not named:
            raise Violation(f"{self._told(wish.request_id)}: HASTE shows {dict(record)}, its tasks are {had_tasks}")
        if self.succeeded[wish.request_id] and record.get("taskId") != self.succeeded[wish.request_id][0]:
            raise Violation(f"{self._told(wish.request_id)}: HASTE names {record['taskId']}")

    def _possible_ends(self, wish: Wish, candidates: tuple[str, ...], most_losses: int) -> tuple[str, ...]:
        request = wish.request_id
        if self.succeeded[request]:
            return ("Processed",)
        ends = ["Processed"] if self.forgotten[request] else []
        if self._is_cancelled(wish.entity, wish):
            ends.append("Cancelled")
        if self.failed_alone[request] or request in self.refused:
            ends.append("Failed")
        if all(self.losses[request][pool] >= most_losses for pool in candidates):
            ends.append("Failed")  # interrupted too often everywhere
        return tuple(ends)

    def _is_cancelled(self, entity: Entity, wish: Wish | None) -> bool:
        return any(one.entity == entity and (wish is None or one.at >= wish.at) for one in self.cancels)

    def _told(self, request: str) -> str:
        return self.wishes[request].name
