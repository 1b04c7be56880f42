"""When a Batch job has had its time, and what becomes of it then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shared.batch.types import JobState, JobView, TaskView
from shared.housekeeping.job_ends import Fate, has_had_its_time, is_reconciled_late, judge

MONDAY = datetime(2026, 8, 10, tzinfo=UTC)  # of week 33
NEXT_MONDAY = MONDAY + timedelta(days=7)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def job(
    name: str = "t-training-h100-2026w33",
    state: JobState = JobState.USABLE,
    created_at: datetime | None = None,
    ended_at: datetime | None = None,
) -> JobView:
    return JobView(state, "h100", "t", name, created_at, ended_at)


def task(state: str = "completed", ended_at: datetime | None = None) -> TaskView:
    return TaskView("trn-1", state, ended_at=ended_at)


@pytest.mark.parametrize("name", ["t-training-h100-2026w33", "t-training-h100-2026w33-2", "t-training-h100-2026w33-10"])
def test_a_job_has_had_its_time_a_day_after_its_week(name: str) -> None:
    assert not has_had_its_time(job(name), MONDAY + DAY)
    assert not has_had_its_time(job(name), NEXT_MONDAY)
    assert not has_had_its_time(job(name), NEXT_MONDAY + DAY - SECOND)
    assert has_had_its_time(job(name), NEXT_MONDAY + DAY)


def test_neither_this_weeks_nor_yesterdays_weeks_job_has() -> None:
    for days in range(400):
        now = MONDAY + days * DAY + timedelta(hours=5)
        for then in (now, now - DAY):
            year, week, _day = then.isocalendar()
            assert not has_had_its_time(job(f"t-training-h100-{year}w{week:02}", created_at=then), now)


def test_the_later_of_name_and_making_counts() -> None:
    """A job that is used across weeks, whatever the reason, is left alone."""
    made_later = job(created_at=NEXT_MONDAY + SECOND)
    assert not has_had_its_time(made_later, NEXT_MONDAY + DAY)
    assert has_had_its_time(made_later, NEXT_MONDAY + 8 * DAY)
    made_earlier = job(created_at=MONDAY - SECOND)
    assert not has_had_its_time(made_earlier, NEXT_MONDAY + DAY - SECOND)


def test_a_job_without_a_week_in_its_name_goes_by_its_making() -> None:
    assert has_had_its_time(job("odd", created_at=MONDAY + DAY), NEXT_MONDAY + DAY)
    assert not has_had_its_time(job("odd", created_at=MONDAY + DAY), NEXT_MONDAY + DAY - SECOND)
    assert not has_had_its_time(job("odd"), MONDAY + 100 * DAY)


@pytest.mark.parametrize("state", [JobState.USABLE, JobState.DISABLED])
def test_an_idle_job_is_ended(state: JobState) -> None:
    assert judge(job(state=state), [], NEXT_MONDAY).fate is Fate.END
    assert judge(job(state=state), [task(ended_at=NEXT_MONDAY)] * 3, NEXT_MONDAY).fate is Fate.END


@pytest.mark.parametrize("state", ["active", "preparing", "running"])
def test_a_job_with_a_live_task_is_kept(state: str) -> None:
    assert judge(job(), [task(), task(state)], NEXT_MONDAY).fate is Fate.KEEP


def test_an_ended_job_is_deleted_a_day_after_its_last_attempt() -> None:
    ended = job(state=JobState.OVER, ended_at=NEXT_MONDAY)
    assert judge(ended, [], NEXT_MONDAY + DAY - SECOND).fate is Fate.KEEP
    assert judge(ended, [], NEXT_MONDAY + DAY).fate is Fate.DELETE
    later = [task(ended_at=MONDAY), task(ended_at=NEXT_MONDAY + timedelta(hours=1))]
    assert judge(ended, later, NEXT_MONDAY + DAY).fate is Fate.KEEP
    assert judge(ended, later, NEXT_MONDAY + DAY + timedelta(hours=1)).fate is Fate.DELETE


def test_what_was_queued_when_the_job_ended_never_runs_and_keeps_nothing() -> None:
    ended = job(state=JobState.OVER, ended_at=NEXT_MONDAY)
    assert judge(ended, [task("active")], NEXT_MONDAY + DAY).fate is Fate.DELETE


def test_a_job_on_its_way_is_left_to_batch() -> None:
    assert judge(job(state=JobState.OVER), [], NEXT_MONDAY + 100 * DAY).fate is Fate.KEEP


def test_a_completed_task_is_reconciled_late_after_five_days() -> None:
    assert not is_reconciled_late(task(ended_at=MONDAY), MONDAY + 5 * DAY)
    assert is_reconciled_late(task(ended_at=MONDAY), MONDAY + 5 * DAY + SECOND)
    assert not is_reconciled_late(task("running"), MONDAY + 50 * DAY)
