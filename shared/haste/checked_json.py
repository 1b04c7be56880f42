"""The JSON body of a queue message, checked against a shape; what is wrong is told by field, value and rule."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from shared.errors import InvalidMessage
from shared.haste import records
from shared.haste.redaction import safe_text

_VALUE_CHARACTERS = 40
_Shape = TypeVar("_Shape", bound=BaseModel)


def json_object(body: bytes) -> dict[str, Any]:
    """The body as one JSON object. Raises InvalidMessage."""
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


def validated(shape: type[_Shape], fields: dict[str, Any], prefix: str = "") -> _Shape:
    """The fields in this shape. Raises InvalidMessage for the first fault; `prefix` goes before its field name."""
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = prefix + ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "missing":
            raise InvalidMessage(f"{where}: is missing") from None
        rule = fault["msg"].removeprefix("Value error, ")
        raise InvalidMessage(f"{where}: {shown(fault['input'])}: {rule}") from None


def shown(value: object) -> str:
    """A value short enough and safe enough for a log; nested ones by their type only."""
    return repr(safe_text(value, _VALUE_CHARACTERS)) if isinstance(value, str) else records.json_type(value)
