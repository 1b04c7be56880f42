"""Reading HASTE's JSON records, which are old, lenient and sometimes wrapped, and writing JSON as HASTE does."""

from __future__ import annotations

import json
import math
from typing import Any

from shared.errors import Refused
from shared.haste.workload import Blobs, JsonObject

#: HASTE's records have about ten levels. Copying and writing one needs the stack for each.
_MOST_LEVELS = 100
_MOST_COUNT = 10**9
#: The largest number that an image's pixels can have (32 bits).
_MOST_IN_PIXELS = 3.5e38
_MOST_WORD_CHARACTERS = 200


def parse(content: bytes) -> JsonObject:
    """The JSON object in a blob or message; old blobs hold a JSON string that contains it. ValueError for all else."""
    try:
        value = json.loads(content)
        if isinstance(value, str):
            value = json.loads(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        if type(error) is ValueError:  # Python's own limit: its text is about an interpreter's setting
            raise ValueError("holds a number of thousands of digits") from None
        raise
    if not isinstance(value, dict):
        raise ValueError(f"is {json_type(value)}, not an object")
    if _is_too_deep(value):
        raise ValueError("nested too deeply")
    return value


def _is_too_deep(value: JsonObject) -> bool:
    level: list[Any] = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def dump(value: JsonObject) -> bytes:
    """JSON as HASTE writes it: default separators, ASCII. Numbers that JSON does not have become null."""
    try:
        return json.dumps(value, allow_nan=False).encode()
    except ValueError:
        return json.dumps(_without_nan(value), allow_nan=False).encode()


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(blobs: Blobs, name: str) -> JsonObject | None:
    """One record; None if it does not exist. Refused if it is no JSON object."""
    content = blobs.read(name)
    if content is None:
        return None
    try:
        return parse(content)
    except ValueError:
        file_name = name.rpartition("/")[2]
        raise Refused(f"HASTE's file {file_name} cannot be read: it does not hold a JSON object.") from None


def text(record: JsonObject, key: str) -> str:
    """A text field; empty if it is missing, null or no text."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def word(record: JsonObject, key: str) -> str | None:
    """A status or an id; None if it is missing, null, or nothing that HASTE or Batch has written."""
    value = record.get(key)
    return value if isinstance(value, str) and len(value) <= _MOST_WORD_CHARACTERS and _is_unicode(value) else None


def _is_unicode(value: str) -> bool:
    """JSON may hold half of a surrogate pair, which cannot be stored or sent."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def child(record: JsonObject, key: str) -> JsonObject | None:
    """A nested object such as a job; None if there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else None


def children(record: JsonObject, key: str) -> list[JsonObject]:
    """A list of nested objects; empty if there is none."""
    value = record.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(record: JsonObject, key: str) -> int:
    """A whole number from 0 to a thousand million; 0 if the field is missing, null or anything else."""
    value = record.get(key)
    # a comparison, unlike a conversion, takes a number of any size; NaN is in no range
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT:
        return int(value)
    return 0


def flag(record: JsonObject, key: str, default: bool) -> bool:
    """A yes/no field, which may be text; `default` only if it is missing."""
    value = record.get(key, default)
    return value.strip().lower() in ("true", "yes", "on", "1") if isinstance(value, str) else bool(value)


def numbers(record: JsonObject, key: str) -> list[int | float]:
    """A list of numbers, each in the range of an image's pixels; empty if the field is anything else."""
    value = record.get(key)
    if not isinstance(value, list) or not all(type(item) in (int, float) for item in value):
        return []
    return value if all(-_MOST_IN_PIXELS <= item <= _MOST_IN_PIXELS for item in value) else []


def json_type(value: Any) -> str:
    """The name of a JSON value's type, for messages to people."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
