"""HASTE's queue messages: which work, and what is wanted. Everything else is read from HASTE's records later.

A message is a whole ImageLayer or Model as raw JSON text. It is a snapshot that may be old, may hold credentials and
comes from an HTTP body, so only ids are taken from it, and only after they have been checked. How a kind's fields are
read stands in its own module; `by_kind.parse_message` finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from shared.errors import InvalidMessage
from shared.haste import status_fields
from shared.haste.checked_json import shown, validated
from shared.haste.ids import BatchJobId, Guid, HasteTaskId, ModelId
from shared.kinds import Entity


class Wish(StrEnum):
    """What a message asks for."""

    START = "start"
    CANCEL = "cancel"
    #: HASTE's own app asks itself to look at a running task again: left in the queues when the worker takes over.
    POLL = "poll"


@dataclass(frozen=True)
class HasteMessage:
    """A checked message. `job_id` and `task_id` name the Batch task to look at and are set for POLL only."""

    entity: Entity
    wish: Wish
    job_id: str | None = None
    task_id: str | None = None

    @property
    def polled(self) -> tuple[str, str]:
        """Batch job and task that a POLL is about. Raises ValueError for any other message."""
        if self.job_id is None or self.task_id is None:
            raise ValueError("the message names no task")
        return self.job_id, self.task_id


class _Shape(BaseModel):
    """Every field may be missing, unknown ones are ignored, and numbers are taken for text, as HASTE does."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)


class NamedJob(_Shape):
    """A job object of a record."""

    jobId: str | None = None
    taskId: str | None = None


class _PolledJob(_Shape):
    jobId: BatchJobId
    taskId: HasteTaskId


class ImageLayer(_Shape):
    """The record of an image layer."""

    projectId: Guid
    imageLayerId: Guid
    status: str | None = None
    preprocessJob: NamedJob | None = None


class Model(_Shape):
    """The record of a model, whatever is done with it."""

    projectId: Guid
    modelId: ModelId
    modelType: str | None = None
    status: str | None = None
    inferenceStatus: str | None = None
    trainingJob: NamedJob | None = None
    inferenceJobs: list[NamedJob] | None = None
    currentInferenceTaskId: str | None = None


def wished(entity: Entity, status_field: str, status: str | None, job_field: str, job: NamedJob | None) -> HasteMessage:
    """What a message with this status word and job asks for. Raises InvalidMessage, naming the fields as given."""
    match status:
        case status_fields.QUEUED:
            return HasteMessage(entity, Wish.START)
        case status_fields.CANCELLED:
            return HasteMessage(entity, Wish.CANCEL)
        case status_fields.IN_PROGRESS:
            if job is None:
                raise InvalidMessage(f"{job_field}: missing; a message with status InProgress must name its task")
            polled = validated(_PolledJob, job.model_dump(), f"{job_field}.")
            prefix = f"{entity.kind.task_prefix}-"
            if not polled.taskId.startswith(prefix):
                raise InvalidMessage(f"{job_field}.taskId: {shown(polled.taskId)} must start with {prefix}")
            return HasteMessage(entity, Wish.POLL, polled.jobId, polled.taskId)
        case _:
            raise InvalidMessage(f"{status_field}: {shown(status)} must be Queued, InProgress or Cancelled")
