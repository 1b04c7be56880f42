"""What a played demo left behind, as seen from outside the worker. The checks judge this and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter

from local.batch.iso8601 import parse_time
from local.producer.names import layer_blob, model_blob

Record = Mapping[str, Any]

#: Where HASTE's records keep the status of each kind of work.
STATUS_FIELDS = {"imageryprep": "status", "training": "status", "inference": "inferenceStatus"}


@dataclass(frozen=True)
class Request:
    """One piece of work that HASTE asked for, or that had to follow by itself.

    `entity_id` is an image layer's or a model's id. `shown_at` is when HASTE's record said `Processed`; None: never.
    `title` is what people see; empty: the kind.
    """

    kind: str
    project_id: str
    entity_id: str
    follows: bool
    asked_at: datetime
    shown_at: datetime | None = None
    title: str = ""

    @property
    def blob_name(self) -> str:
        """Where HASTE keeps the record."""
        blob = layer_blob if self.kind == "imageryprep" else model_blob
        return blob(self.project_id, self.entity_id)


@dataclass(frozen=True)
class BatchTask:
    """A task as it was added to the Batch account: what everybody with access to the account can read of it."""

    job_id: str
    task_id: str
    pool_id: str
    command_line: str
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Text:
    """Something that people may get to read; `source` says where."""

    source: str
    content: str


@dataclass(frozen=True)
class Secret:
    """A value that must be found nowhere; `name` says what it opens."""

    name: str
    value: str


@dataclass(frozen=True)
class Evidence:
    """Everything there is to judge.

    `layers`, in the order of the requests, and `model`: HASTE's records. `blob_names`: all of HASTE's container.
    `events`: the Batch emulator's log. `candidates`: the pools of each kind of work by the app's settings, best first.
    `trouble`: why the demo was broken off, empty if it was not.
    """

    tenant: str
    requests: tuple[Request, ...]
    layers: tuple[Record, ...]
    model: Record
    blob_names: tuple[str, ...]
    events: tuple[Mapping[str, Any], ...]
    tasks: tuple[BatchTask, ...]
    texts: tuple[Text, ...]
    secrets: tuple[Secret, ...]
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trouble: str = ""

    def record(self, request: Request) -> Record:
        """HASTE's record of what was asked for; empty if there is none."""
        if request.kind != "imageryprep":
            return self.model
        return next((layer for layer in self.layers if layer.get("imageLayerId") == request.entity_id), {})

    def status(self, request: Request) -> str:
        """HASTE's status word for what was asked for."""
        return str(self.record(request).get(STATUS_FIELDS[request.kind]))

    def requests_of(self, kind: str) -> list[Request]:
        """The requests of a kind, in their order."""
        return [request for request in self.requests if request.kind == kind]

    def tasks_of(self, request: Request) -> tuple[BatchTask, ...]:
        """The tasks that were added for this request, in their order: those added since it was asked for and before
        the next request of its kind for the same entity.
        """
        rivals = sorted(
            (other for other in self.requests if (other.kind, other.entity_id) == (request.kind, request.entity_id)),
            key=lambda other: other.asked_at,
        )
        later = [rival.asked_at for rival in rivals[rivals.index(request) + 1 :]]
        begin = request.asked_at if rivals.index(request) else datetime.min.replace(tzinfo=UTC)
        end = later[0] if later else datetime.max.replace(tzinfo=UTC)
        created = {str(event["task"]): parse_time(event["time"]) for event in self.select("task_created")}
        found = [
            task
            for task in self.tasks
            if entity_of(task) == (request.kind, request.entity_id) and begin <= created[task.task_id] < end
        ]
        return tuple(sorted(found, key=lambda task: created[task.task_id]))

    def select(self, *kinds: str, task_id: str | None = None) -> list[Mapping[str, Any]]:
        """The events of these kinds, of one task if it is named, in the order in which they happened."""
        return [e for e in self.events if e["event"] in kinds and (task_id is None or e.get("task") == task_id)]


EVIDENCE = TypeAdapter(Evidence)
#: The kind of tasks that HASTE's contract does not know.
UNKNOWN = "unknown"
_KINDS = {"img": "imageryprep", "trn": "training", "inf": "inference"}
_CONFIG_FILES = ("imageryprep_config_", "experiment_config_")


def entity_of(task: BatchTask) -> tuple[str, str]:
    """Kind and entity id of a task, by HASTE's task id prefix and the config file that its command line names.

    A task that HASTE's contract does not know is an entity of its own.
    """
    kind = _KINDS.get(task.task_id.partition("-")[0], UNKNOWN)
    for prefix in _CONFIG_FILES:
        _, found, rest = task.command_line.partition(prefix)
        if found:
            return kind, rest.partition(".yaml")[0]
    return UNKNOWN, task.task_id
