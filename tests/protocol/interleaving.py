"""One entity under any schedule: messages that come again, two handlers, two timers, crashes, stalls, late saves.

What must hold is read from the emulator's books and from HASTE's record, never from the worker's ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

from local.batch import control
from shared.errors import Conflict, JobOver, Transient
from shared.kinds import Kind
from shared.pools.readings import Readings
from shared.protocol.record import Request, task_ids
from shared.requests import accept
from shared.requests.own_message import CancelLater, Resume, from_bytes
from shared.triggers import timer
from shared.triggers.messages import _advance as advance_gently
from tests.support.small_world import INFERENCE, TRAINING, SmallWorld
from tests.support.stepping import Actor, Stepped

_EXPECTED = (Conflict, Transient, JobOver)
_MOST_ATTEMPTS = 6
ENDS = ("Processed", "Failed", "Cancelled")


class Violation(AssertionError):
    """A guarantee of the protocol is broken; the text says which and after which steps."""


@dataclass
class Message:
    """A message on one of the queues: deliverable again and again until somebody deletes it."""

    name: str
    handle: Callable[[], None]
    deleted: bool = False
    visible_at: datetime | None = None


@dataclass
class Entity:
    """The training of one model in a small world, with everything that can happen to it."""

    requests: int = 1
    with_cancel: bool = False
    with_save: bool = True
    with_follow_up: bool = False
    with_moves: bool = True
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = SmallWorld(
            pools=[
                {"id": "h100", "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": 5},
                {"id": "t4", "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": 5},
            ],
            candidates=("h100", "t4") if self.with_moves else ("h100",),
            follow_up=Kind.INFERENCE if self.with_follow_up else None,
            stepped=Stepped,
        )
        self.messages: list[Message] = []
        self.actors: dict[str, Actor] = {}
        self.pending_save: Callable[[], None] | None = None
        self.asked: dict[str, datetime] = {}
        self.cancel_asked: datetime | None = None
        self.began = 0
        self._seen_own = 0
        self.events_seen = 0
        self.shown_ended: set[str] = set()
        self.world.save_record(TRAINING, status=None, taskId=None)
        self.world.save_record(INFERENCE, status=None, taskId=None)

    # --- what can happen next

    def choices(self) -> list[tuple[str, Callable[[], None]]]:
        """Every event that is possible now, by name."""
        found: list[tuple[str, Callable[[], None]]] = []
        if self.pending_save:
            found.append(("API saves late", self._save))
        else:
            if self.began < self.requests:
                found.append((f"API puts request {self.began + 1}", self._put))
            if self.with_cancel and self.began and self.cancel_asked is None:
                found.append(("API puts cancel", self._put_cancel))
        self._collect_own_messages()
        for slot in ("H1", "H2"):
            if slot not in self.actors:
                found += [
                    (f"{slot} takes {message.name}", lambda s=slot, m=message: self._start(s, m))  # type: ignore[misc]
                    for message in self.messages
                    if not message.deleted and (message.visible_at is None or message.visible_at <= self._now())
                ]
                break
        for slot in ("T1", "T2"):
            if slot not in self.actors:
                found.append((f"{slot} ticks", lambda s=slot: self._start(s, None)))  # type: ignore[misc]
                break
        for slot, actor in list(self.actors.items()):
            found.append((f"{slot} goes on at {actor.at}", lambda s=slot: self._go_on(s)))  # type: ignore[misc]
            found.append((f"{slot} crashes at {actor.at}", lambda s=slot: self._crash(s)))  # type: ignore[misc]
        for job, task in self.world.runner.running():
            found.append((f"task {task[:12]} completes", lambda j=job, t=task: self._complete(j, t)))  # type: ignore[misc]
            if self.with_moves:
                found.append((f"task {task[:12]} loses its node", lambda j=job, t=task: self._preempt(j, t)))  # type: ignore[misc]
        found.append(("20 s pass", lambda: self.pass_seconds(20)))
        return found

    def do(self, name: str, event: Callable[[], None]) -> None:
        """Let one event happen and look at the guarantees."""
        self.trace.append(name)
        event()
        self.world.batch_world.tick()
        self.check()

    # --- events

    def _now(self) -> datetime:
        return self.world.clock.now()

    def pass_seconds(self, seconds: float) -> None:
        self.world.batch_world.advance(seconds)

    def _put(self) -> None:
        self.pass_seconds(1)
        self.began += 1
        name, asked = f"request-{self.began}", self._now()
        self.asked[name] = asked
        request = Request(name, asked)
        self.messages.append(Message(name, lambda: self._handle_start(request)))
        if self.with_save:
            self.pending_save = lambda: self.world.save_record(TRAINING, status="Queued")

    def _put_cancel(self) -> None:
        self.pass_seconds(1)
        asked = self.cancel_asked = self._now()
        self.messages.append(Message("cancel", lambda: accept.cancel(self.world.worker, TRAINING, "cancel-1", asked)))
        if self.with_save and self.world.record(TRAINING).get("status") not in ("Processed", "Failed"):
            self.pending_save = lambda: self.world.save_record(TRAINING, status="Cancelled")

    def _save(self) -> None:
        assert self.pending_save is not None
        self.pending_save()
        self.pending_save = None

    def _handle_start(self, request: Request) -> None:
        version = accept.accept(self.world.worker, TRAINING, request)
        if version is not None:
            advance_gently(self.world.worker, version)

    def _collect_own_messages(self) -> None:
        for visible_at, text in self.world.own_queue.messages[self._seen_own :]:
            self._seen_own += 1
            own = from_bytes(text.encode())
            self.messages.append(Message(f"own {self._seen_own}", lambda m=own: self._handle_own(m), False, visible_at))  # type: ignore[misc]

    def _handle_own(self, message: Resume | CancelLater) -> None:
        worker = self.world.worker
        if isinstance(message, CancelLater):
            accept.cancel(worker, message.entity, message.cancel_id, message.asked)
            return
        version = worker.ledger.read(message.entity.key)
        if version and (version.record.request.request_id, version.record.attempt) == (
            message.request_id,
            message.attempt,
        ):
            advance_gently(worker, version)

    def _start(self, slot: str, message: Message | None) -> None:
        def work() -> None:
            try:
                if message is None:
                    timer.tick(self.world.worker, Readings(self.world.worker, by_list=True), lambda: 0.0)
                else:
                    message.handle()
            except _EXPECTED:
                return  # the message stays, the next tick comes
            if message is not None:
                message.deleted = True

        self.actors[slot] = Actor(slot, work)
        self._go_on(slot)

    def _go_on(self, slot: str) -> None:
        self.actors[slot].step()
        if self.actors[slot].dead:
            del self.actors[slot]

    def _crash(self, slot: str) -> None:
        self.actors.pop(slot).crash()

    def _complete(self, job: str, task: str) -> None:
        self.world.runner.finish(job, task)

    def _preempt(self, job: str, task: str) -> None:
        control.preempt_task(self.world.batch_world, job, task)

    # --- what must hold

    def check(self) -> None:
        """At every moment: one live task per entity; what was shown as ended neither starts nor shows as running."""
        for prefix in ("trn", "inf"):
            live = [task for task in self.world.live_tasks() if task.startswith(prefix)]
            if len(live) > 1:
                self._fail(f"two live tasks at once: {live}")
        shown = self.world.record(TRAINING)
        if shown.get("jobStatus") in ENDS and shown.get("status") == shown["jobStatus"]:
            self.shown_ended.add(shown["taskId"])
        elif shown.get("jobStatus") == "InProgress" and shown.get("taskId") in self.shown_ended and not self.with_save:
            self._fail(f"{shown['taskId']} was shown as ended and is shown as {shown['jobStatus']} again")
        events = self.world.batch_world.events.entries
        for event in events[self.events_seen :]:
            if event["event"] == "task_started":
                self._check_start(event["task"])
        self.events_seen = len(events)

    def _check_start(self, task: str) -> None:
        """A task starts: its request must not have been shown as ended, by whichever of its attempts."""
        for request in self.asked:
            attempts = set(task_ids(Kind.TRAINING, request, _MOST_ATTEMPTS))
            if task in attempts and attempts & self.shown_ended:
                self._fail(f"{request} starts again after its end was shown")

    def end_well(self) -> None:
        """Faults stop; everything must come to its one end."""
        for slot in list(self.actors):
            self._crash(slot)
        if self.pending_save:
            self.do("API saves late", self._save)
        cancelled_for = 0
        for _ in range(120):
            self._collect_own_messages()
            open_messages = [m for m in self.messages if not m.deleted]
            if not open_messages and not list(self.world.ledger.live()):
                break
            for message in open_messages:
                if message.visible_at is None or message.visible_at <= self._now():
                    self._run_alone("H1", message)
            self._run_alone("T1", None)
            cancelled_for = cancelled_for + 1 if self._cancel_is_taken() and self._cancelled_tasks() else 0
            if cancelled_for > 3:
                self._fail(f"the cancel was taken, yet {self._cancelled_tasks()} runs on")
            for job, task in self.world.runner.running():
                if self._cancel_is_taken() and task in self._cancelled_tasks():
                    continue
                self.do(f"task {task[:12]} completes", lambda j=job, t=task: self._complete(j, t))  # type: ignore[misc]
            self.pass_seconds(31)
        else:
            self._fail(
                f"never ends: {[m.name for m in self.messages if not m.deleted]}, {list(self.world.ledger.live())}"
            )
        self.check_end()

    def _cancel_is_taken(self) -> bool:
        return any(message.name == "cancel" and message.deleted for message in self.messages)

    def _cancelled_tasks(self) -> list[str]:
        """Live tasks of requests that the cancel was meant for."""
        assert self.cancel_asked is not None
        meant = [request for request, asked in self.asked.items() if asked <= self.cancel_asked]
        ids = {task for request in meant for task in task_ids(Kind.TRAINING, request, _MOST_ATTEMPTS)}
        return [task for task in self.world.live_tasks() if task in ids]

    def _run_alone(self, slot: str, message: Message | None) -> None:
        self.do(f"{slot} runs {message.name if message else 'a tick'}", lambda: self._start(slot, message))
        while slot in self.actors:
            self._go_on(slot)
        self.world.batch_world.tick()
        self.check()

    def check_end(self) -> None:
        """Every request has one end, HASTE shows the newest one's, and each task ran for a request that wanted it."""
        if not self.began:
            return
        if self.world.live_tasks():
            self._fail(f"tasks live on: {self.world.live_tasks()}")
        shown = self.world.record(TRAINING)
        newest = f"request-{self.began}"
        ids = task_ids(Kind.TRAINING, newest, _MOST_ATTEMPTS)
        started = {event["task"] for event in self.world.batch_world.events.select("task_started")}
        succeeded = self._succeeded()
        if set(ids) & succeeded:
            wanted = "Processed"
        elif self.cancel_asked is not None and self.cancel_asked >= self.asked[newest]:
            wanted = "Cancelled"
        else:
            self._fail(f"the newest request neither ran nor was cancelled: {shown}, started {started}")
        if shown.get("status") != wanted:
            self._fail(f"HASTE shows {shown}, wanted {wanted}")
        per_request = [len(set(task_ids(Kind.TRAINING, request, _MOST_ATTEMPTS)) & succeeded) for request in self.asked]
        if max(per_request) > 1:
            self._fail(f"a request ran to success more than once: {per_request}")
        if self.with_follow_up:
            follow_ups = {
                task
                for request in self.asked
                for task in task_ids(Kind.INFERENCE, f"{request}+inference", _MOST_ATTEMPTS)
            }
            ran = [task for task in succeeded if task.startswith("inf-")]
            if not set(ran) <= follow_ups or (wanted == "Processed" and not ran):
                self._fail(f"follow-ups that ran: {ran}")

    def _succeeded(self) -> set[str]:
        return {
            task.id
            for job in self.world.batch_world.jobs.values()
            for task in job.tasks.values()
            if task.state == "completed" and task.exit_code == 0 and not task.failure
        }

    def _fail(self, what: str) -> NoReturn:
        raise Violation("\n".join([what, *(f"  {n + 1:3} {step}" for n, step in enumerate(self.trace))]))
