"""Timer schedules: NCRONTAB expressions of five or six fields, and constant intervals.

The rules are those of the NCrontab library inside the real host: weekdays 0-6, English names by any prefix, `a/b` runs
from a to the field's maximum, day and weekday must both match, reversed ranges are swapped, a step of 0 counts as 1.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Protocol

from local.functions_host.timespan import parse_timespan

# fmt: off
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")
# fmt: on
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NUMBER = re.compile(r"[0-9]+")
# Dates and weekdays of the Gregorian calendar repeat after exactly this many days.
_CALENDAR_CYCLE_DAYS = 146_097


class ScheduleError(ValueError):
    """A schedule the timer trigger refuses."""


class Schedule(Protocol):
    """When a timer fires; times are naive local times."""

    def next_occurrence(self, after: datetime) -> datetime:
        """The first occurrence strictly after `after` (constant intervals: `after` plus the interval)."""
        ...


@dataclass(frozen=True)
class ConstantSchedule:
    """Fires every `interval`, counted from the previous run."""

    interval: timedelta

    def next_occurrence(self, after: datetime) -> datetime:
        return after + self.interval


@dataclass(frozen=True)
class CronSchedule:
    """The allowed values of each field; weekday 0 is Sunday."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]

    def next_occurrence(self, after: datetime) -> datetime:
        """The first matching second after `after`. Raises ScheduleError when no date ever matches (31 February)."""
        earliest = after.replace(microsecond=0) + timedelta(seconds=1)
        day, clock = earliest.date(), earliest.time()
        for _ in range(_CALENDAR_CYCLE_DAYS):
            if self._matches(day):
                found = self._first_time_from(clock)
                if found is not None:
                    return datetime.combine(day, found)
            day, clock = day + timedelta(days=1), time()
        raise ScheduleError("no date ever matches this schedule")

    def _matches(self, day: date) -> bool:
        return day.month in self.months and day.day in self.days and day.isoweekday() % 7 in self.weekdays

    def _first_time_from(self, clock: time) -> time | None:
        for hour in self.hours:
            if hour < clock.hour:
                continue
            for minute in self.minutes:
                if (hour, minute) < (clock.hour, clock.minute):
                    continue
                for second in self.seconds:
                    if (hour, minute, second) >= (clock.hour, clock.minute, clock.second):
                        return time(hour, minute, second)
        return None


def parse_schedule(expression: str) -> CronSchedule | ConstantSchedule:
    """Read a timer trigger's schedule after `%NAME%` parts are resolved. Raises ScheduleError when it is refused."""
    fields = [field for field in expression.split(" ") if field]
    refusal = f"the schedule expression {expression!r} is no valid cron expression or time span"
    try:
        if len(fields) == 5:
            fields = ["0", *fields]
        if len(fields) == 6:
            return CronSchedule(
                seconds=_parse_field(fields[0], 0, 59),
                minutes=_parse_field(fields[1], 0, 59),
                hours=_parse_field(fields[2], 0, 23),
                days=_parse_field(fields[3], 1, 31),
                months=_parse_field(fields[4], 1, 12, _MONTHS),
                weekdays=_parse_field(fields[5], 0, 6, _WEEKDAYS),
            )
        return ConstantSchedule(parse_timespan(expression))
    except ValueError as error:
        raise ScheduleError(f"{refusal} ({error})") from error


def fires_within_a_minute(schedule: Schedule, now: datetime) -> bool:
    """Whether two of the next occurrences lie less than a minute apart; the host keeps no status for such timers."""
    previous = schedule.next_occurrence(now)
    for _ in range(5):
        following = schedule.next_occurrence(previous)
        if following - previous < timedelta(minutes=1):
            return True
        previous = following
    return False


def _parse_field(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> tuple[int, ...]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = max(_parse_number(step_text), 1) if slash else 1
        if span == "*":
            first, last = low, high
        elif "-" in span:
            left, _, right = span.partition("-")
            first, last = sorted((_parse_value(left, low, names), _parse_value(right, low, names)))
        else:
            first = _parse_value(span, low, names)
            last = high if slash else first
        if not low <= first <= last <= high:
            raise ValueError(f"{part!r} is not within {low}-{high}")
        values.update(range(first, last + 1, step))
    return tuple(sorted(values))


def _parse_value(text: str, low: int, names: tuple[str, ...]) -> int:
    if text and not text[0].isdigit():
        for position, name in enumerate(names):
            if name.casefold().startswith(text.casefold()):
                return low + position
    return _parse_number(text)


def _parse_number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return int(text)
