"""Reading HASTE's JSON records, which are old, lenient and sometimes wrapped, and writing JSON as HASTE does."""

from __future__ import annotations

import json
import math
from typing import Any

from shared.errors import Refused
from shared.haste.workload import Blobs, JsonObject


def parse(content: bytes) -> JsonObject:
    """The JSON object in a blob or message; old blobs hold a JSON string that contains it. ValueError for all else."""
    try:
        value = json.loads(content)
        if isinstance(value, str):
            value = json.loads(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"is {json_type(value)}, not an object")
    return value


def dump(value: JsonObject) -> bytes:
    """JSON as HASTE writes it: default separators, ASCII."""
    return json.dumps(value).encode()


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


def child(record: JsonObject, key: str) -> JsonObject | None:
    """A nested object such as a job; None if there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else None


def children(record: JsonObject, key: str) -> list[JsonObject]:
    """A list of nested objects; empty if there is none."""
    value = record.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(record: JsonObject, key: str) -> int:
    """A whole number, 0 or more; 0 if the field is missing, null or anything else."""
    value = record.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        return 0
    return max(0, int(value))


def flag(record: JsonObject, key: str, default: bool) -> bool:
    """A yes/no field, which may be text; `default` only if it is missing."""
    value = record.get(key, default)
    return value.strip().lower() in ("true", "yes", "on", "1") if isinstance(value, str) else bool(value)


def numbers(record: JsonObject, key: str) -> list[int | float]:
    """A list of numbers; empty if the field is anything else."""
    value = record.get(key)
    if not isinstance(value, list) or not all(type(item) in (int, float) for item in value):
        return []
    return value


def json_type(value: Any) -> str:
    """The name of a JSON value's type, for messages to people."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
