"""Schedules fire when Microsoft's do, and the same ones are refused."""

from datetime import datetime
from typing import Any

import pytest

from local.functions_host.schedule import (
    ConstantSchedule,
    CronSchedule,
    ScheduleError,
    fires_within_a_minute,
    parse_schedule,
)
from local.functions_host.settings import SettingError, Settings
from tests.functions_host.recordings import read_rows

ROWS = read_rows("ncrontab.json")
_KINDS = {"CronSchedule": CronSchedule, "ConstantSchedule": ConstantSchedule}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['expr']!r} from {row['from']}")
def test_recorded_occurrences_and_refusals(row: dict[str, Any]) -> None:
    settings = Settings({})
    moment = datetime.fromisoformat(row["from"])
    if "error" in row:
        with pytest.raises((ScheduleError, SettingError)):
            parse_schedule(settings.resolve(row["expr"])).next_occurrence(moment)
        return
    schedule = parse_schedule(settings.resolve(row["expr"]))
    assert isinstance(schedule, _KINDS[row["kind"]])
    found = []
    for _ in row["next"]:
        moment = schedule.next_occurrence(moment)
        found.append(moment.replace(microsecond=0).isoformat())  # the recording cuts fractions off
    assert found == row["next"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/30 * * * * *", True),
        ("0,30 0 3 * * *", True),
        ("00:00:59", True),
        ("0 * * * * *", False),
        ("00:01:00", False),
        ("0 0 3 * * *", False),
    ],
)
def test_which_schedules_fire_within_a_minute(expression: str, expected: bool) -> None:
    assert fires_within_a_minute(parse_schedule(expression), datetime(2026, 11, 30, 10)) is expected
