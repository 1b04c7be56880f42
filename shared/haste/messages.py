"""HASTE's queue messages: which work, and what is wanted. Everything else is read from HASTE's records later.

A message is a whole ImageLayer or Model as raw JSON text. It is a snapshot that may be old, may hold credentials and
comes from an HTTP body, so only ids are taken from it, and only after they have been checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from shared.errors import InvalidMessage
from shared.haste import status_fields
from shared.haste.checked_json import json_object, shown, validated
from shared.haste.ids import BatchJobId, Guid, HasteTaskId, ModelId
from shared.kinds import Entity, Kind


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


def parse_message(body: bytes, queue_kind: Kind) -> HasteMessage:
    """Read a message of the queue of `queue_kind`. Raises InvalidMessage for everything that can never be accepted."""
    fields = json_object(body)
    if queue_kind is Kind.IMAGERYPREP:
        return _layer_message(validated(_ImageLayer, fields))
    model = validated(_Model, fields)
    return _training_message(model) if queue_kind is Kind.TRAINING else _inference_message(model)


# --- shapes -----------------------------------------------------------------------------------------------------


class _Shape(BaseModel):
    """Every field may be missing, unknown ones are ignored, and numbers are taken for text, as HASTE does."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)


class _Job(_Shape):
    jobId: str | None = None
    taskId: str | None = None


class _PolledJob(_Shape):
    jobId: BatchJobId
    taskId: HasteTaskId


class _ImageLayer(_Shape):
    projectId: Guid
    imageLayerId: Guid
    status: str | None = None
    preprocessJob: _Job | None = None


class _Model(_Shape):
    projectId: Guid
    modelId: ModelId
    modelType: str | None = None
    status: str | None = None
    inferenceStatus: str | None = None
    trainingJob: _Job | None = None
    inferenceJobs: list[_Job] | None = None
    currentInferenceTaskId: str | None = None


# --- one function per queue -------------------------------------------------------------------------------------


def _layer_message(layer: _ImageLayer) -> HasteMessage:
    entity = Entity(Kind.IMAGERYPREP, layer.projectId, layer.imageLayerId)
    return _message(entity, "status", layer.status, "preprocessJob", layer.preprocessJob)


def _training_message(model: _Model) -> HasteMessage:
    if model.modelType == "embedding":
        # HASTE's API puts the cancel of an embedding on the training queue too
        raise InvalidMessage("modelType: 'embedding' is not handled by this version of haste-worker")
    entity = Entity(Kind.TRAINING, model.projectId, model.modelId)
    return _message(entity, "status", model.status, "trainingJob", model.trainingJob)


def _inference_message(model: _Model) -> HasteMessage:
    entity = Entity(Kind.INFERENCE, model.projectId, model.modelId)
    jobs = [job for job in model.inferenceJobs or [] if job.taskId == model.currentInferenceTaskId]
    job = jobs[-1] if jobs else None
    return _message(entity, "inferenceStatus", model.inferenceStatus, "inferenceJobs[currentInferenceTaskId]", job)


def _message(entity: Entity, status_field: str, status: str | None, job_field: str, job: _Job | None) -> HasteMessage:
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
