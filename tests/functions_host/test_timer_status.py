"""Missed occurrences, changed schedules, stored times, and the hours that summer time adds and takes."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from local.functions_host.schedule import parse_schedule
from local.functions_host.timer_status import ScheduleStatus, check_past_due, next_occurrence

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOURLY = parse_schedule("0 0 * * * *")
HOUR = timedelta(hours=1)


@pytest.fixture
def zurich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is that of Zurich."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Zurich")
        time.tzset()
        yield
    time.tzset()


def test_a_next_run_still_ahead_is_not_missed() -> None:
    status = ScheduleStatus(NOON, NOON + HOUR, NOON)
    assert check_past_due(HOURLY, status, NOON + HOUR / 2) == (status, False)


def test_a_next_run_behind_is_missed_once_however_many_there_were() -> None:
    status = ScheduleStatus(NOON, NOON + HOUR, NOON)
    assert check_past_due(HOURLY, status, NOON + 5 * HOUR) == (status, True)


def test_a_changed_schedule_is_computed_anew_and_misses_nothing() -> None:
    status = ScheduleStatus(NOON, NOON + timedelta(minutes=7), NOON)
    now = NOON + 5 * HOUR + timedelta(minutes=1)
    updated, past_due = check_past_due(HOURLY, status, now)
    assert (updated, past_due) == (ScheduleStatus(None, NOON + 6 * HOUR, now), False)


def test_times_written_by_the_real_host_are_read() -> None:
    document = {
        "Last": "0001-01-01T00:00:00",
        "Next": "2026-11-30T13:00:00+00:00",
        "LastUpdated": "2026-11-30T12:00:00.1234567+00:00",
    }
    status = ScheduleStatus.from_json(document)
    assert status == ScheduleStatus(None, NOON + HOUR, NOON + timedelta(microseconds=123456))
    assert ScheduleStatus.from_json(status.to_json()) == status


@pytest.mark.usefixtures("zurich")
def test_schedules_follow_local_time() -> None:
    three = parse_schedule("0 0 3 * * *")
    assert next_occurrence(three, NOON) == datetime(2026, 12, 1, 2, tzinfo=UTC)
    july = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert next_occurrence(three, july) == datetime(2026, 7, 2, 1, tzinfo=UTC)


@pytest.mark.usefixtures("zurich")
@pytest.mark.parametrize("change", [datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC)])
def test_the_next_occurrence_lies_ahead_while_the_clocks_change(change: datetime) -> None:
    schedule = parse_schedule("0 */5 * * * *")
    moment = change - 2 * HOUR
    while moment < change + 2 * HOUR:
        following = next_occurrence(schedule, moment)
        assert moment < following <= moment + HOUR + timedelta(minutes=5)
        moment = following
