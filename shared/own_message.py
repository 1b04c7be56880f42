"""The worker's own messages: ids only, a few hundred bytes, on a queue of our own.

HASTE's app takes any message on HASTE's queues for a whole record, so ours never travel there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from shared.errors import InvalidMessage
from shared.kinds import Entity, Kind


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
    """Raises InvalidMessage naming what is wrong; the text of the message is not repeated."""
    try:
        fields = json.loads(body)
    except ValueError:
        raise InvalidMessage("the body is not JSON; this queue is for haste-worker's own messages") from None
    if not isinstance(fields, dict):
        raise InvalidMessage("the body is not a JSON object; this queue is for haste-worker's own messages")
    entity = Entity(_kind(fields), _text(fields, "projectId"), _text(fields, "entityId"))
    match fields.get("do"):
        case "resume":
            attempt = fields.get("attempt")
            if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 1:
                raise InvalidMessage("attempt must be a whole number of at least 1")
            return Resume(entity, _text(fields, "requestId"), attempt)
        case "cancel":
            return CancelLater(entity, _text(fields, "cancelId"), _time(fields, "asked"))
        case _:
            raise InvalidMessage("do must be resume or cancel")


def _kind(fields: dict[str, object]) -> Kind:
    try:
        return Kind(_text(fields, "kind"))
    except ValueError:
        raise InvalidMessage(f"kind must be one of {', '.join(Kind)}") from None


def _text(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise InvalidMessage(f"{name} must be a text of 1 to 200 characters")
    return value


def _time(fields: dict[str, object], name: str) -> datetime:
    try:
        value = datetime.fromisoformat(_text(fields, name))
    except ValueError:
        raise InvalidMessage(f"{name} must be an ISO 8601 time") from None
    if value.tzinfo is None:
        raise InvalidMessage(f"{name} must have a time zone")
    return value
