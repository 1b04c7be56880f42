"""One schedule on a running stack: what HASTE's API is asked for, what HASTE shows, and the books of its requests."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from azure.core.exceptions import ResourceNotFoundError

from local.producer import HasteApiError
from local.producer.records import Record, new_image_layer, new_model
from shared.kinds import Entity, Kind
from shared.protocol.record import task_id
from tests.faults.audit import Books, Event, Violation
from tests.faults.http_plan import Ask, Plan
from tests.faults.http_stack import MOST_LOSSES, POOLS, Ground, NotingStorage
from tests.faults.http_troubles import Target
from tests.faults.tenant import Asked
from tests.support.outside import USER, Haste

_JOB = {Kind.IMAGERYPREP: "preprocessJob", Kind.TRAINING: "trainingJob"}


class Schedule:
    """A plan while it is played. `broken`: the guarantee that was, if one was. `journal`: what happened, for people."""

    def __init__(self, plan: Plan, haste: Haste, storage: NotingStorage, ground: Ground) -> None:
        self.plan = plan
        self.books = Books(Kind.INFERENCE if plan.follows else None)
        self.broken: str | None = None
        self.journal: list[str] = []
        self._haste = haste
        self._storage = storage
        self._ground = ground
        self.entities = [self._entity(number) for number in range(len(plan.works))]
        self._asked: list[Asked] = []
        self._events: list[Event] = []
        self._jobs: dict[str, str] = {}

    def _entity(self, number: int) -> Entity:
        kind, seed = self.plan.works[number].kind, self.plan.seed
        if kind is Kind.IMAGERYPREP:
            return Entity(kind, f"{seed:08}-0000-4000-8000-000000000000", f"{seed:08}-0000-4000-8000-{number + 1:012}")
        return Entity(kind, self._ground.layer.project_id, f"{10_000 + 10 * seed + number}")

    def prepare(self) -> None:
        """Inferences need models that are trained."""
        for entity in self.entities:
            if entity.kind is Kind.INFERENCE:
                self._ground.copy_model(self._haste, entity.entity_id)

    # --- HASTE's API

    def ask(self, ask: Ask) -> bool:
        """False if HASTE's API refuses, as it does when there is nothing to cancel (yet)."""
        entity = self.entities[ask.work]
        if ask.what == "cancel what follows":
            entity = Entity(Kind.INFERENCE, entity.project_id, entity.entity_id)
        before = len(self._storage.sent)
        try:
            self._call_api(entity, ask)
        except HasteApiError:
            return False
        for sent in self._storage.sent[before:]:
            if sent.queue_name != self._haste.api.queue_names.stats:
                self._asked.append(Asked(sent.message_id, entity, sent.at, is_cancel=ask.what != "start"))
        self.look({})  # so that its tasks are known before they are seen
        return True

    def first_task(self) -> str:
        """The id of the first task of what was asked last."""
        last = self._asked[-1]
        return task_id(last.entity.kind, last.message_id, 1)

    def _call_api(self, entity: Entity, ask: Ask) -> None:
        api, (project, name) = self._haste.api, (entity.project_id, entity.entity_id)
        hidden = ask.hidden_seconds
        match entity.kind, ask.what:
            case Kind.IMAGERYPREP, _:
                api.put_layer(self._new_layer(entity), delay_seconds=hidden)
            case Kind.INFERENCE, "start":
                api.put_run_inference(api.model(project, name), delay_seconds=hidden)
            case Kind.INFERENCE, _:
                api.put_cancel_inference(project, name, delay_seconds=hidden)
            case _, "start":
                known = any(asked.entity == entity for asked in self._asked)
                api.put_run_model(api.model(project, name) if known else self._new_model(entity), delay_seconds=hidden)
            case _:
                api.put_cancel_model(project, name, delay_seconds=hidden)

    def _new_layer(self, entity: Entity) -> Record:
        imagery = self._ground.layer.record["postEventImageryUrls"]
        return new_image_layer(
            entity.project_id, name="Valley", user_id=USER, post_event_urls=imagery, image_layer_id=entity.entity_id
        )

    def _new_model(self, entity: Entity) -> Record:
        return new_model(
            entity.project_id,
            self._ground.layer.layer_id,
            name="unet",
            user_id=USER,
            labelproject_id=self._ground.layer.record["labelProjectId"],
            auto_run_inference=self.plan.follows,
            model_id=entity.entity_id,
        )

    # --- the books

    def take(self, event: Event) -> None:
        """An event of the Batch account about one of the tasks, or about a job."""
        self._events.append(event)
        if event["event"] == "task_created":
            self._jobs[event["task"]] = event["job"]
        self.look({})
        wish = self.books.wish_of(event.get("task", ""))
        if wish is not None and self.broken is None:
            live = self._live(wish.entity)
            if len(live) > 1:
                self.broken = f"{wish.name}: with the requests before it, {live} live at {event['time']}"

    def _live(self, entity: Entity) -> list[str]:
        return [
            task
            for wish in self.books.wishes.values()
            if wish.entity == entity
            for task in self.books.live[wish.request_id]
        ]

    def look(self, records: Mapping[Entity, Mapping[str, Any]]) -> None:
        """Enter what has happened. `records` were read before the last events."""
        if self.broken is None:
            try:
                self.books.look(self._asked, self._events, records)
            except Violation as violation:
                self.broken = str(violation)
        for request in self.books.shown_end if records and self.broken is None else ():
            if self.books.live[request]:
                name, end = self.books.wishes[request].name, self.books.shown_end[request]
                self.broken = f"{name}: shown as {end}, and {self.books.live[request]} live on"

    def records(self) -> dict[Entity, dict[str, Any]]:
        """What HASTE shows now of all that was asked for, and of what follows it."""
        return {entity: self._shown(entity) for entity in {wish.entity: None for wish in self.books.wishes.values()}}

    def unfinished(self, records: Mapping[Entity, Mapping[str, Any]]) -> str | None:
        """Which request has not come to its one end, or is not shown as the event log says; None if all are."""
        try:
            self.books.check_end(records, POOLS, MOST_LOSSES)
        except Violation as violation:
            return str(violation)
        return None

    def target(self, work: int, is_this_one: bool) -> Target:
        """A work with its live task; if it need not be this one, with another one's task, live or not."""
        entity = self.entities[work]
        wishes = sorted(self.books.wishes.values(), key=lambda wish: wish.entity.entity_id != entity.entity_id)
        for wish in wishes:
            for task in self.books.live[wish.request_id] if wish.entity == entity or not is_this_one else ():
                return Target(entity, (self._jobs[task], task))
        latest = next(((job, task) for task, job in reversed(self._jobs.items())), None)
        return Target(entity, None if is_this_one else latest)

    def told(self) -> str:
        """All there is to know about it, for people; the worker's ledger is read for this only."""
        lines = [self.plan.told(), "what happened:", *self.journal, "its tasks:"]
        lines += [str(event) for event in self._events if event["event"] != "job_state"]
        for entity, record in self.records().items():
            lines.append(f"HASTE shows of {entity.kind} {entity.entity_id}: {record}")
            with contextlib.suppress(ResourceNotFoundError):
                live = self._haste.own.download_blob(f"active/{entity.key}.json").readall()
                lines.append(f"the ledger has {live.decode()}")
        return "\n".join(lines)

    def _shown(self, entity: Entity) -> dict[str, Any]:
        if entity.kind is Kind.IMAGERYPREP:
            record = self._haste.api.layer(entity.project_id, entity.entity_id)
        else:
            record = self._haste.api.model(entity.project_id, entity.entity_id)
        if entity.kind is Kind.INFERENCE:
            task = record["currentInferenceTaskId"]
            jobs = [job for job in record["inferenceJobs"] if job["taskId"] == task]
            return {"status": record["inferenceStatus"], "taskId": task, "jobStatus": jobs and jobs[-1]["status"]}
        job = record[_JOB[entity.kind]] or {}
        return {"status": record["status"], "taskId": job.get("taskId"), "jobStatus": job.get("status")}
