"""Durations as .NET writes them, for host.json values and constant timer schedules."""

import re
from datetime import timedelta

_DAYS_ONLY = re.compile(r"(?P<d>[0-9]+)")
_CLOCK = re.compile(r"(?:(?P<d>[0-9]+)\.)?(?P<h>[0-9]+):(?P<m>[0-9]+)(?::(?P<s>[0-9]+)(?:\.(?P<f>[0-9]{1,7}))?)?")
_ALL_COLONS = re.compile(r"(?P<d>[0-9]+):(?P<h>[0-9]+):(?P<m>[0-9]+)(?::(?P<s>[0-9]+)(?:\.(?P<f>[0-9]{1,7}))?)?")
_MAX_DAYS = 10_675_199


def parse_timespan(text: str) -> timedelta:
    """Read `[-]d`, `[-][d.]hh:mm[:ss[.fffffff]]` or `[-]d:hh:mm[:ss]` as .NET's TimeSpan.Parse does.

    `24:00:00` is 24 days there, because 24 is no hour; the same happens here. Raises ValueError on anything else.
    """
    body = text.strip()
    negative = body.startswith("-")
    body = body.removeprefix("-")
    for pattern in (_DAYS_ONLY, _CLOCK, _ALL_COLONS):
        match = pattern.fullmatch(body)
        if match is None:
            continue
        parts = match.groupdict(default="0")
        days, hours, minutes = int(parts["d"]), int(parts.get("h", "0")), int(parts.get("m", "0"))
        seconds, fraction = int(parts.get("s", "0")), parts.get("f", "0")
        if days > _MAX_DAYS or hours > 23 or minutes > 59 or seconds > 59:
            continue
        microseconds = int(fraction.ljust(7, "0")) // 10
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds)
        return -span if negative else span
    raise ValueError(f"{text!r} is no duration ([d.]hh:mm:ss)")
