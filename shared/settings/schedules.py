"""Which timer schedules the Azure Functions host takes: six fields of NCRONTAB, as the host's own library reads them.

Names of months and weekdays count by any prefix, a step may exceed its field and 0 is as 1, a range may run backwards.
"""

from __future__ import annotations

from itertools import product

_FIELDS = ("second", "minute", "hour", "day", "month", "weekday")
_BOUNDS = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 6)}
# fmt: off
_NAMES = {
    "month": ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
              "november", "december"),
    "weekday": ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"),
}
# fmt: on
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def check_schedule(text: str) -> None:
    """Raises ValueError, with the rule, for a schedule on which the timer would never run.

    How seldom it runs is the operator's choice: all that depends on the timer then takes as long.
    """
    fields = [field for field in text.split(" ") if field]
    if len(fields) != len(_FIELDS):
        raise ValueError("must be an NCRONTAB schedule of six fields, such as */30 * * * * *")
    values = {name: _values(name, field) for name, field in zip(_FIELDS, fields, strict=True)}
    dates = product(values["month"], values["day"])
    if not any(day <= _LONGEST_MONTHS[month - 1] for month, day in dates):
        raise ValueError("names days that none of its months has, so the timer would never run")


def _values(name: str, field: str) -> set[int]:
    low, high = _BOUNDS[name]
    try:
        return {value for part in field.split(",") for value in _of_part(name, part)}
    except ValueError:
        raise ValueError(
            f"its {name} '{field}' is none of NCRONTAB: numbers from {low} to {high}, ranges, lists and steps, "
            "such as */30 * * * * * for every half minute"
        ) from None


def _of_part(name: str, part: str) -> range:
    low, high = _BOUNDS[name]
    span, has_step, step = part.partition("/")
    every = max(1, _number(step)) if has_step else 1
    if span == "*":
        return range(low, high + 1, every)
    start, is_range, end = span.partition("-")
    first = _value(name, start)
    last = _value(name, end) if is_range else high if has_step else first
    first, last = min(first, last), max(first, last)
    if not low <= first <= last <= high:
        raise ValueError
    return range(first, last + 1, every)


def _value(name: str, text: str) -> int:
    low, _high = _BOUNDS[name]
    for position, word in enumerate(_NAMES.get(name, ())):
        if text and word.startswith(text.lower()):
            return low + position
    return _number(text)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)
