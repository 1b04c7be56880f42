"""The worker's own messages: ids only, a few hundred bytes, on a queue of our own.

HASTE's app takes any message on HASTE's queues for a whole record, so ours never travel there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, assert_never

from pydantic import AwareDatetime, BaseModel, Field

from shared.haste.checked_json import json_object, validated
from shared.haste.ids import Guid, ModelId
from shared.kinds import Entity, Kind, Subject


@dataclass(frozen=True)
class Resume:
    """Take up this waiting (or placed) attempt."""

    entity: Entity
    request_id: str
    attempt: int


@dataclass(frozen=True)
class CancelLater:
    """A cancel that met a finishing record, to be looked at again."""

    entity: Entity
    cancel_id: str
    asked: datetime


def to_text(message: Resume | CancelLater) -> str:
    """One line of JSON."""
    entity = message.entity
    about = {"kind": entity.kind.value, "projectId": entity.project_id, "entityId": entity.entity_id}
    if isinstance(message, Resume):
        return json.dumps({"do": "resume", **about, "requestId": message.request_id, "attempt": message.attempt})
    return json.dumps({"do": "cancel", **about, "cancelId": message.cancel_id, "asked": message.asked.isoformat()})


def from_bytes(body: bytes) -> Resume | CancelLater:
    """Raises InvalidMessage naming field, value and rule."""
    fields = json_object(body)
    about = validated(_About, fields)
    validated(_about(about.kind.facts.subject), fields)
    entity = Entity(about.kind, about.projectId, about.entityId)
    if about.do == "resume":
        resume = validated(_Resume, fields)
        return Resume(entity, resume.requestId, resume.attempt)
    later = validated(_CancelLater, fields)
    return CancelLater(entity, later.cancelId, later.asked)


_MessageId = Annotated[str, Field(min_length=1, max_length=200)]


class _About(BaseModel):
    do: Literal["resume", "cancel"]
    kind: Kind
    projectId: Guid
    entityId: str


class _AboutLayer(BaseModel):
    entityId: Guid


class _AboutModel(BaseModel):
    entityId: ModelId


class _Resume(BaseModel):
    requestId: _MessageId
    attempt: Annotated[int, Field(strict=True, ge=1)]


class _CancelLater(BaseModel):
    cancelId: _MessageId
    asked: AwareDatetime


def _about(subject: Subject) -> type[_AboutLayer | _AboutModel]:
    match subject:
        case Subject.LAYER:
            return _AboutLayer
        case Subject.MODEL:
            return _AboutModel
        case _:
            assert_never(subject)
