"""Checks a request body against a shape, the way Batch refuses what it does not know.

A shape says which properties a JSON object may have and of which kind each is; `shapes` holds those of the API.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from local.batch import formula
from local.batch.errors import BatchError
from local.batch.iso8601 import parse_duration

Check = Callable[[str, Any], None]


def wrong(name: str, value: object, reason: str) -> BatchError:
    """400 InvalidPropertyValue. Only short plain values are repeated: a long one may carry a SAS."""
    shown = str(value)
    if not re.fullmatch(r"[\w .:/-]{0,64}", shown):
        shown = f"({len(shown)} characters)"
    return BatchError("InvalidPropertyValue", PropertyName=name, PropertyValue=shown, Reason=reason)


def text(longest: int = 0, pattern: str = "") -> Check:
    """A string, of at most `longest` characters (0: any) and matching `pattern`."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str):
            raise wrong(name, value, "a string is expected")
        if longest and len(value) > longest:
            raise wrong(name, value, f"at most {longest} characters are allowed")
        if pattern and not re.fullmatch(pattern, value):
            raise wrong(name, value, f"it must match {pattern}")

    return check


def integer(least: int, most: int, code: str = "OutOfRangeInput") -> Check:
    """A whole number; `code` is the error of one out of range."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong(name, value, "a whole number is expected")
        if not least <= value <= most:
            raise BatchError(code, PropertyName=name, PropertyValue=value, Reason=f"allowed are {least} to {most}")

    return check


def boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise wrong(name, value, "true or false is expected")


def duration(name: str, value: Any) -> None:
    """An ISO 8601 duration such as PT12H."""
    try:
        parse_duration(value if isinstance(value, str) else "")
    except ValueError:
        raise wrong(name, value, "an ISO 8601 duration is expected") from None


def duration_between(least_seconds: float, most_seconds: float) -> Check:
    """A duration within limits."""

    def check(name: str, value: Any) -> None:
        duration(name, value)
        if not least_seconds <= parse_duration(value).total_seconds() <= most_seconds:
            raise wrong(name, value, f"allowed are {least_seconds:g} to {most_seconds:g} seconds")

    return check


def formula_text(name: str, value: Any) -> None:
    """An autoscale formula that can be read."""
    text()(name, value)
    try:
        formula.parse(value)
    except formula.FormulaTooLong as error:
        raise BatchError("AutoScalingFormulaTooLong", PropertyName=name, Reason=error) from None
    except formula.FormulaSyntaxError as error:
        raise BatchError("AutoScalingFormulaSyntaxError", PropertyName=name, Reason=error) from None


def anything(_name: str, _value: Any) -> None:
    """Accepted unseen: a part of the API that the emulator stores and gives back."""


def not_emulated(name: str, _value: Any) -> None:
    """Part of the API, but the emulator would not do what it says, so it refuses."""
    raise BatchError("NotImplementedByEmulator", f"The emulator does not implement the property {name}.")


def one_of(*values: str) -> Check:
    """One of a few words; Batch compares them without regard to case."""
    known = {value.lower() for value in values}

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value.lower() not in known:
            raise wrong(name, value, f"allowed are {', '.join(values)}")

    return check


def many(of: Check, most: int = 0) -> Check:
    """A list, of at most `most` entries (0: any number)."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, list):
            raise wrong(name, value, "a list is expected")
        if most and len(value) > most:
            raise wrong(name, f"{len(value)} entries", f"at most {most} entries are allowed")
        for index, entry in enumerate(value):
            of(f"{name}[{index}]", entry)

    return check


def record(required: str = "", /, **properties: Check) -> Check:
    """An object with these properties; `required` lists the needed ones, separated by blanks. null counts as absent."""
    needed = required.split()

    def check(name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise wrong(name, value, "an object is expected")
        prefix = f"{name}." if name else ""
        for key, entry in value.items():
            if key.startswith("odata."):
                continue  # an annotation, which comes along when a resource that was read is sent back
            if key not in properties:
                raise BatchError(
                    "InvalidRequestBody", PropertyName=f"{prefix}{key}", Reason="the property is not known"
                )
            if entry is not None:
                properties[key](f"{prefix}{key}", entry)
        for key in needed:
            if value.get(key) is None:
                raise BatchError("MissingRequiredProperty", PropertyName=f"{prefix}{key}")

    return check
