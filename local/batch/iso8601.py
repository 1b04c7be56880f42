"""Times and durations as Azure Batch writes them."""

import re
from datetime import UTC, datetime, timedelta

UNLIMITED = "P10675199DT2H48M5.4775807S"
_DURATION = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def format_time(moment: datetime) -> str:
    """UTC with seven digits of a second, e.g. `2026-11-30T00:00:00.1234560Z`."""
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "0Z"


def parse_time(text: str) -> datetime:
    """Read any ISO 8601 time; more than six digits of a second are cut. Raises ValueError."""
    cut = re.sub(r"(\.\d{6})\d+", r"\1", text.strip())
    moment = datetime.fromisoformat(cut)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_duration(text: str) -> timedelta:
    """Read `PT5M`, `P1DT06H00M00S` and the like. Raises ValueError.

    What does not fit (the service writes "no limit" as 10,675,199 days, the SDK a thousand million) is timedelta.max.
    """
    found = _DURATION.fullmatch(text)
    if not found or text.endswith(("P", "T")):
        raise ValueError(f"not an ISO 8601 duration: {text!r}")
    try:
        return timedelta(**{unit: float(amount) for unit, amount in found.groupdict().items() if amount})
    except OverflowError:
        return timedelta.max


def format_duration(duration: timedelta) -> str:
    """Write a duration without a day part, e.g. `PT900S`."""
    return f"PT{duration.total_seconds():g}S"
