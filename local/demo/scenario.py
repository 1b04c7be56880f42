"""The demo's story: a user's imagery, labels and model go through HASTE, and a training loses its node on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from local.batch.iso8601 import parse_time
from local.demo.emulator import Emulator
from local.demo.evidence import STATUS_FIELDS, BatchTask, Record, Request, entity_of
from local.demo.rows import Row, row
from local.demo.storage import Storage
from local.demo.table import Screen
from local.producer import HasteApi, synthetic
from local.producer.names import layer_blob, model_blob
from local.producer.records import new_image_layer, new_model, new_project

_USER_ID = "analyst@example.org"
_EPOCHS = 3
_POLL_SECONDS = 0.5
_BROKEN_OFF = ("Failed", "Cancelled")


class TroubleError(Exception):
    """The story does not go on: something took too long, or failed. The message says what."""


class Scenario:
    """Plays the story. `requests`, `layer` and `model` tell how far it came, whatever becomes of it."""

    def __init__(
        self,
        api: HasteApi,
        storage: Storage,
        emulator: Emulator,
        screen: Screen,
        each_look: Callable[[], None],
        step_seconds: float,
        task_seconds: float,
    ) -> None:
        self.requests: list[Request] = []
        self.layer: Record = {}
        self.model: Record = {}
        self._api = api
        self._storage = storage
        self._emulator = emulator
        self._screen = screen
        self._each_look = each_look
        self._step_seconds = step_seconds
        self._task_seconds = task_seconds
        self._rows: dict[int, Row] = {}

    def play(self) -> None:
        """Raises TroubleError."""
        self._prepare_imagery()
        self._train()
        self._lose_the_node()
        self._until_processed("training")
        self._note("inference", follows=True)
        self._until_processed("inference")
        self._infer_again()

    def _prepare_imagery(self) -> None:
        project_id = self._api.create_project(new_project(name="Cedar Valley flood drill", user_id=_USER_ID))[
            "projectId"
        ]
        post = self._api.upload_imagery(project_id, "post01", synthetic.imagery(after_event=True))
        pre = self._api.upload_imagery(project_id, "pre01", synthetic.imagery(after_event=False))
        layer = new_image_layer(
            project_id, name="Cedar Valley 12 Aug", user_id=_USER_ID, post_event_urls=[post], pre_event_urls=[pre]
        )
        self.layer = layer
        self._say("HASTE asks for imagery preparation")
        self._note("imageryprep")
        self._api.put_layer(layer)
        self._until_processed("imageryprep")

    def _train(self) -> None:
        project_id, label_project_id = self.layer["projectId"], self.layer["labelProjectId"]
        labels = self._api.put_labels(project_id, label_project_id, synthetic.labels())["labels"]
        self._say(f"the user draws {len(labels)} labels, and HASTE asks for training with automatic inference")
        self.model = new_model(
            project_id,
            self.layer["imageLayerId"],
            name="cedar-valley-unet-1",
            user_id=_USER_ID,
            labelproject_id=label_project_id,
            labels_count=len(labels),
            max_epochs=_EPOCHS,
            learning_rate="0.0001",
            auto_run_inference=True,
        )
        self._note("training")
        self._api.put_run_model(self.model, delay_seconds=0)

    def _lose_the_node(self) -> None:
        """In the middle of the run; the machine comes back when the training runs elsewhere."""
        self._until("training to run on a node", lambda: self._started("training", 1) and self._is_in_the_middle())
        first = self._started("training", 1)
        assert first is not None
        node_id = self._emulator.preempt(first.job_id, first.task_id)
        self._say(f"Azure takes the training's node on {first.pool_id} away")
        self._until("training to run elsewhere", lambda: self._started("training", 2))
        self._emulator.give_back(first.pool_id, node_id)
        self._say(f"Azure gives {first.pool_id} a node again")

    def _infer_again(self) -> None:
        self._say("HASTE asks for inference")
        self._note("inference")
        self._api.put_run_inference(dict(self.model), delay_seconds=0)
        self._until_processed("inference")

    def _is_in_the_middle(self) -> bool:
        """The user has seen it progress, or half of its time is over."""
        starts = [event for event in self._emulator.events() if event["event"] == "task_started"]
        running_seconds = (datetime.now(UTC) - parse_time(starts[-1]["time"])).total_seconds()
        return int(self.model.get("currentStep") or 0) > 0 or running_seconds > self._task_seconds / 2

    def _started(self, kind: str, attempt: int) -> BatchTask | None:
        """The task of this attempt, once it has begun to run."""
        started = [str(event["task"]) for event in self._emulator.events() if event["event"] == "task_started"]
        distinct = list(dict.fromkeys(started))
        mine = {task.task_id: task for task in self._emulator.tasks() if entity_of(task)[0] == kind}
        ordered = [mine[task_id] for task_id in distinct if task_id in mine]
        return ordered[attempt - 1] if len(ordered) >= attempt else None

    def _note(self, kind: str, *, follows: bool = False) -> None:
        entity_id = self.layer["imageLayerId"] if kind == "imageryprep" else self.model["modelId"]
        self.requests.append(Request(kind, self.layer["projectId"], entity_id, follows, datetime.now(UTC)))

    def _until_processed(self, kind: str) -> None:
        def processed() -> bool:
            status = self._record(kind).get(STATUS_FIELDS[kind])
            if status in _BROKEN_OFF:
                raise TroubleError(f"{kind} is {status}")
            return status == "Processed"

        self._until(f"{kind} to be Processed", processed)
        self.requests[-1] = replace(self.requests[-1], shown_at=datetime.now(UTC))
        self.refresh()

    def _until(self, what: str, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + self._step_seconds
        while True:
            self.refresh()
            if condition():
                return
            if time.monotonic() > deadline:
                raise TroubleError(f"waited {self._step_seconds:g} s in vain for {what}")
            time.sleep(_POLL_SECONDS)

    def refresh(self) -> None:
        """Read HASTE's records anew and show how everything stands."""
        if self.requests:
            self.layer = (
                self._storage.record(layer_blob(self.layer["projectId"], self.layer["imageLayerId"])) or self.layer
            )
        if self.model:
            self.model = self._storage.record(model_blob(self.model["projectId"], self.model["modelId"])) or self.model
        live, events = self._storage.live_records(), self._emulator.events()
        for number, request in enumerate(self.requests):
            self._rows[number] = row(request, self._rows.get(number), self._record(request.kind), live, events)
        self._screen.show(list(self._rows.values()))
        self._each_look()

    def _record(self, kind: str) -> Mapping[str, Any]:
        return self.layer if kind == "imageryprep" else self.model

    def _say(self, line: str) -> None:
        self._screen.say(line)
