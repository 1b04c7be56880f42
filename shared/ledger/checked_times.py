"""Times in what was stored: one without a time zone cannot be compared with any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime


def has_naive_time(value: object) -> bool:
    """Whether a time without a time zone is in this value of dataclasses, tuples and mappings."""
    if isinstance(value, datetime):
        return value.tzinfo is None
    if is_dataclass(value):
        return any(has_naive_time(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return any(map(has_naive_time, value.values()))
    return isinstance(value, tuple) and any(map(has_naive_time, value))
