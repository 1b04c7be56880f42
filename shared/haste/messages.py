"""HASTE's queue messages: which work, and what is wanted. Everything else is read from HASTE's records later.

A message is a whole ImageLayer or Model as raw JSON text. It is a snapshot that may be old, may hold credentials and
comes from an HTTP body, so only ids are taken from it, and only after they have been checked.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from shared.errors import InvalidMessage
from shared.haste import records
from shared.haste.redaction import safe_text
from shared.kinds import Entity, Kind

_VALUE_CHARACTERS = 40
_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


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
    fields = _json_object(body)
    if queue_kind is Kind.IMAGERYPREP:
        return _layer_message(_validated(_ImageLayer, fields))
    model = _validated(_Model, fields)
    return _training_message(model) if queue_kind is Kind.TRAINING else _inference_message(model)


# --- shapes -----------------------------------------------------------------------------------------------------


def _matching(pattern: str, rule: str) -> AfterValidator:
    def check(value: str) -> str:
        if re.fullmatch(pattern, value, re.ASCII) is None:
            raise ValueError(rule)
        return value

    return AfterValidator(check)


_Guid = Annotated[str, _matching(_GUID, "must be a GUID")]
_ModelId = Annotated[str, _matching(r"\d{1,8}", "must be 1 to 8 digits")]
_JobId = Annotated[str, _matching(r"[A-Za-z0-9_-]{1,64}", "must be a Batch job id")]
_TaskId = Annotated[str, _matching(rf"[a-z]{{3}}-{_GUID}", "must be a HASTE task id, <prefix>-<GUID>")]


class _Shape(BaseModel):
    """Every field may be missing, unknown ones are ignored, and numbers are taken for text, as HASTE does."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)


class _Job(_Shape):
    jobId: str | None = None
    taskId: str | None = None


class _PolledJob(_Shape):
    jobId: _JobId
    taskId: _TaskId


class _ImageLayer(_Shape):
    projectId: _Guid
    imageLayerId: _Guid
    status: str | None = None
    preprocessJob: _Job | None = None


class _Model(_Shape):
    projectId: _Guid
    modelId: _ModelId
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
        case "Queued":
            return HasteMessage(entity, Wish.START)
        case "Cancelled":
            return HasteMessage(entity, Wish.CANCEL)
        case "InProgress":
            if job is None:
                raise InvalidMessage(f"{job_field}: missing; a message with status InProgress must name its task")
            polled = _validated(_PolledJob, job.model_dump(), f"{job_field}.")
            prefix = f"{entity.kind.task_prefix}-"
            if not polled.taskId.startswith(prefix):
                raise InvalidMessage(f"{job_field}.taskId: {_shown(polled.taskId)} must start with {prefix}")
            return HasteMessage(entity, Wish.POLL, polled.jobId, polled.taskId)
        case _:
            raise InvalidMessage(f"{status_field}: {_shown(status)} must be Queued, InProgress or Cancelled")


# --- errors that say field, value and rule ----------------------------------------------------------------------

_AnyShape = TypeVar("_AnyShape", bound=_Shape)


def _json_object(body: bytes) -> dict[str, Any]:
    if not body.strip():
        raise InvalidMessage("body: is empty; it must be one JSON object")
    try:
        return records.parse(body)
    except ValueError as error:
        if _is_base64_of_json(body):
            raise InvalidMessage("body: is base64; HASTE's queues carry raw JSON (messageEncoding none)") from None
        if type(error) is ValueError:  # ours: it holds nothing of the body
            raise InvalidMessage(f"body: {error}; it must be one JSON object") from None
        raise InvalidMessage("body: is not JSON; it must be one JSON object") from None


def _is_base64_of_json(body: bytes) -> bool:
    try:
        return base64.b64decode(body.strip(), validate=True).lstrip()[:1] in (b"{", b'"', b"[")
    except binascii.Error:
        return False


def _validated(shape: type[_AnyShape], fields: dict[str, Any], prefix: str = "") -> _AnyShape:
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = prefix + ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "missing":
            raise InvalidMessage(f"{where}: is missing") from None
        rule = fault["msg"].removeprefix("Value error, ")
        raise InvalidMessage(f"{where}: {_shown(fault['input'])}: {rule}") from None


def _shown(value: object) -> str:
    """A value short enough and safe enough for a log; nested ones by their type only."""
    return repr(safe_text(value, _VALUE_CHARACTERS)) if isinstance(value, str) else records.json_type(value)
