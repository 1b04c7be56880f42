"""A schedule is accepted if the host runs a timer on it: as was recorded of the host, and as the local one reads it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from local.functions_host.schedule import CronSchedule, ScheduleError, parse_schedule
from shared.settings.schedules import check_schedule
from tests.functions_host.recordings import read_rows

ROWS = read_rows("ncrontab.json")
#: The host takes five fields and time spans too; with the worker a schedule has six.
ACCEPTED = {row["expr"] for row in ROWS if row.get("kind") == "CronSchedule" and len(row["expr"].split()) == 6}


def _is_accepted(text: str) -> bool:
    try:
        check_schedule(text)
    except ValueError as error:
        assert str(error)[0].islower(), "it completes a sentence"
        return False
    return True


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['expr']!r} from {row['from']}")
def test_what_the_host_was_recorded_to_take(row: dict[str, Any]) -> None:
    assert _is_accepted(row["expr"]) is (row["expr"] in ACCEPTED)


@pytest.mark.parametrize("text", ["60 * * * * *", "0 0 24 * * *", "a b c d e f", "0 0 0 * * 7", "0 0 0 ? * *"])
def test_a_field_that_is_wrong_is_named(text: str) -> None:
    wrong = {"60": "second '60'", "24": "hour '24'", "a": "second 'a'", "7": "weekday '7'", "?": "day '?'"}
    with pytest.raises(ValueError, match="is none of NCRONTAB") as raised:
        check_schedule(text)
    assert any(f"its {said}" in str(raised.value) for part, said in wrong.items() if part in text.split())


_WORDS = [
    "*",
    "?",
    "",
    "L",
    "J",
    "ja",
    "Jan",
    "jun",
    "June",
    "MAY",
    "Ma",
    "mon",
    "S",
    "sun",
    "saturday",
    "Mondays",
    "٣",
]
_numbers = st.integers(min_value=-1, max_value=62).map(str)
_values = st.one_of(_numbers, st.sampled_from(_WORDS), st.just("*"))
_spans = st.one_of(_values, st.tuples(_values, _values).map("-".join))
_parts = st.one_of(_spans, st.tuples(_spans, _values).map("/".join))
_fields = st.one_of(st.just("*"), _parts, st.lists(_parts, min_size=1, max_size=3).map(",".join))


def _by_the_local_host(text: str) -> bool:
    try:
        schedule = parse_schedule(text)
        schedule.next_occurrence(datetime(2026, 11, 30))
    except ScheduleError:
        return False
    return isinstance(schedule, CronSchedule)


@settings(deadline=None)  # the host looks through all of its calendar for a day that never comes
@given(st.lists(_fields, min_size=6, max_size=6))
@example(["0", "0", "0", "29", "2", "1"])
@example(["0", "0", "0", "30-31", "2", "*"])
@example(["0", "0", "0", "31", "apr-jun/2", "*"])
@example(["0", "0", "0", "*/40", "Feb", "6-0"])
def test_it_is_accepted_if_the_local_host_finds_a_next_time(fields: list[str]) -> None:
    text = " ".join(field or "-" for field in fields)
    assert _is_accepted(text) is _by_the_local_host(text)


@settings(deadline=None)
@given(st.integers(0, 5), _fields)
def test_each_field_by_itself(place: int, field: str) -> None:
    """Most lists of six have some fault or other."""
    fields = ["*"] * 6
    fields[place] = field or "-"
    assert _is_accepted(" ".join(fields)) is _by_the_local_host(" ".join(fields))


@pytest.mark.parametrize("text", ["0 0 * * * *", "0 0 3 * * 1", "0 0 0 29 2 *"])
def test_how_seldom_the_timer_runs_is_the_operators_choice(text: str) -> None:
    assert _is_accepted(text)
