"""What an outsider sees and does: HASTE's records and queues, the blobs, and what the Batch account has logged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import requests
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient, QueueServiceClient

from local.producer import HasteApi, QueueNames, synthetic
from local.producer.records import Record, new_image_layer, new_model, new_project
from local.stack import Stack
from local.stack.settings import CONTAINER, QUEUES, WORKER_CONTAINER, WORKER_QUEUE

T = TypeVar("T")
Event = dict[str, Any]

USER = "analyst@example.org"
ENDED = ("Processed", "Failed", "Cancelled")
WORKER_QUEUES = (QUEUES["IMAGE_QUEUE_NAME"], QUEUES["TRAIN_QUEUE_NAME"], QUEUES["INFERENCE_QUEUE_NAME"], WORKER_QUEUE)
_POLL_SECONDS = 0.1


def wait_for(look: Callable[[], T], seconds: float = 90.0) -> T:
    """What `look` answers once that is true; AssertionError with its last answer after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"not true after {seconds:g} s: {answer!r}"
        time.sleep(_POLL_SECONDS)
    return answer


@dataclass(frozen=True)
class Layer:
    """An image layer of HASTE."""

    haste: Haste
    project_id: str
    layer_id: str

    @property
    def record(self) -> Record:
        """As stored now."""
        return self.haste.api.layer(self.project_id, self.layer_id)

    @property
    def status(self) -> str:
        """What the user is shown."""
        return str(self.record["status"])

    def ended(self, seconds: float = 90.0) -> str:
        """Its status, once that is final."""
        return wait_for(lambda: self.status if self.status in ENDED else "", seconds)


@dataclass(frozen=True)
class Model:
    """A model of HASTE, for training and inference."""

    haste: Haste
    project_id: str
    model_id: str

    @property
    def record(self) -> Record:
        """As stored now."""
        return self.haste.api.model(self.project_id, self.model_id)

    @property
    def status(self) -> str:
        """What the user is shown of the training."""
        return str(self.record["status"])

    @property
    def inference_status(self) -> str:
        """What the user is shown of the inference."""
        return str(self.record["inferenceStatus"])

    def ended(self, seconds: float = 90.0) -> str:
        """The training's status, once that is final."""
        return wait_for(lambda: self.status if self.status in ENDED else "", seconds)

    def inference_ended(self, seconds: float = 90.0) -> str:
        """The inference's status, once that is final."""
        return wait_for(lambda: self.inference_status if self.inference_status in ENDED else "", seconds)

    def train_again(self, delay_seconds: int = 0) -> None:
        """The user presses the button once more."""
        self.haste.api.put_run_model(self.record, delay_seconds=delay_seconds)

    def cancel(self, delay_seconds: int = 0) -> None:
        """The user cancels the training."""
        self.haste.api.put_cancel_model(self.project_id, self.model_id, delay_seconds=delay_seconds)


class Haste:
    """One tenant's HASTE and its storage, reached directly and not through any gate."""

    def __init__(self, stack: Stack, tenant: str) -> None:
        self.tenant = tenant
        self._connection = stack.accounts[tenant].connection_string
        self.api = HasteApi.from_connection_string(
            self._connection, container=CONTAINER, queue_names=QueueNames.from_environment(QUEUES)
        )

    @cached_property
    def data(self) -> ContainerClient:
        """HASTE's container."""
        return ContainerClient.from_connection_string(self._connection, CONTAINER)

    @cached_property
    def own(self) -> ContainerClient:
        """The worker's container; of it only what is kept for people to look at."""
        return ContainerClient.from_connection_string(self._connection, WORKER_CONTAINER)

    @cached_property
    def _queues(self) -> QueueServiceClient:
        return QueueServiceClient.from_connection_string(self._connection)

    def queue(self, name: str) -> QueueClient:
        """A queue of the account."""
        return self._queues.get_queue_client(name)

    def new_layer(self, project_id: str | None = None, layer_id: str | None = None, pre_event: bool = False) -> Layer:
        """A project with a layer whose preparation is asked for."""
        project = self.api.create_project(new_project(name="Drill", user_id=USER, project_id=project_id))
        project_id = project["projectId"]
        post = self.api.upload_imagery(project_id, "post", synthetic.imagery(after_event=True))
        pre = [self.api.upload_imagery(project_id, "pre", synthetic.imagery(after_event=False))] if pre_event else []
        asked = new_image_layer(
            project_id,
            name="Valley",
            user_id=USER,
            post_event_urls=[post],
            pre_event_urls=pre,
            image_layer_id=layer_id,
        )
        return Layer(self, project_id, self.api.put_layer(asked)["imageLayerId"])

    def new_model(
        self, layer: Layer, *, inference: bool = False, model_id: str | None = None, delay_seconds: int = 0
    ) -> Model:
        """A model on a prepared layer, whose training is asked for."""
        label_project_id = layer.record["labelProjectId"]
        self.api.put_labels(layer.project_id, label_project_id, synthetic.labels())
        asked = new_model(
            layer.project_id,
            layer.layer_id,
            name="unet",
            user_id=USER,
            labelproject_id=label_project_id,
            labels_count=len(synthetic.labels()),
            auto_run_inference=inference,
            model_id=model_id,
        )
        stored = self.api.put_run_model(asked, delay_seconds=delay_seconds)
        return Model(self, layer.project_id, stored["modelId"])

    def prepared_layer(self) -> Layer:
        """A layer that models can be trained on."""
        layer = self.new_layer()
        assert layer.ended() == "Processed", layer.record["statusMessage"]
        return layer

    def blob_names(self, container: ContainerClient | None = None, prefix: str = "") -> set[str]:
        """What is stored, HASTE's container if none is named."""
        return set((container or self.data).list_blob_names(name_starts_with=prefix))

    def depth(self, queue_name: str) -> int:
        """Messages in a queue, hidden ones too; 0 if there is no such queue."""
        try:
            return int(self.queue(queue_name).get_queue_properties().approximate_message_count or 0)
        except ResourceNotFoundError:
            return 0

    def zips_asked(self) -> list[dict[str, Any]]:
        """The requests for zips that wait for HASTE's queue app."""
        messages = self.queue(QUEUES["ZIP_QUEUE_NAME"]).peek_messages(32)
        return [json.loads(message.content) for message in messages]

    def is_idle(self) -> bool:
        """No message waits, not even a hidden one."""
        return all(self.depth(name) == 0 for name in WORKER_QUEUES)

    def poisoned(self) -> int:
        """Messages in the poison queues."""
        return sum(self.depth(f"{name}-poison") for name in WORKER_QUEUES)


class BatchAccount:
    """The Batch account's event log, and what can be done to its machines."""

    def __init__(self, stack: Stack) -> None:
        self._log = stack.event_log
        self._admin = stack.admin_url
        self._trust = str(stack.certificates.authority)

    def events(self, *kinds: str, **facts: str) -> list[Event]:
        """Events of these kinds with these facts, in order. `tenant` is what the Batch job's id begins with."""
        tenant = facts.pop("tenant", "")
        whole_lines = self._log.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
        return [
            event
            for event in map(json.loads, whole_lines)
            if event["event"] in kinds
            and str(event.get("job", "")).startswith(tenant)
            and all(event.get(name) == value for name, value in facts.items())
        ]

    def created(self, tenant: str = "", prefix: str = "") -> list[str]:
        """Ids of the tasks that were added, in order; `prefix` is the kind's: img-, trn-, inf-."""
        created = [str(event["task"]) for event in self.events("task_created", tenant=tenant)]
        return [task for task in created if task.startswith(prefix)]

    def state(self, task: str) -> str:
        """A task's state as Batch shows it now; empty if it is not there."""
        states = [one["state"] for one in self.world()["tasks"] if one["task"] == task]
        return str(states[0]) if states else ""

    def world(self) -> dict[str, Any]:
        """Everything in the account."""
        return dict(self.admin("GET", "/world"))

    def body(self, task: str) -> dict[str, Any]:
        """A task as it was added, credentials and all."""
        job = self.events("task_created", task=task)[0]["job"]
        return dict(self.admin("GET", f"/jobs/{job}/tasks/{task}/body"))

    def preempt(self, task: str, **options: Any) -> None:
        """Take the machine away that a task runs on."""
        job = self.events("task_created", task=task)[0]["job"]
        self.admin("POST", f"/jobs/{job}/tasks/{task}/preempt", options)

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """One of the emulator's own routes; its result."""
        answer = requests.request(method, f"{self._admin}{path}", json=body, verify=self._trust, timeout=20)
        assert answer.ok, answer.text
        return answer.json()["result"]


def most_live(events: Iterable[Event], tasks: Iterable[str]) -> int:
    """How many of these tasks were live in Batch at once, at most: from being added to having completed."""
    wanted, live, most = set(tasks), set[str](), 0
    for event in events:
        if event.get("task") not in wanted:
            continue
        if event["event"] in ("task_created", "task_reactivated"):
            live.add(event["task"])
        elif event["event"] in ("task_completed", "task_deleted"):
            live.discard(event["task"])
        most = max(most, len(live))
    return most
