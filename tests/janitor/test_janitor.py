"""The janitor on an emulated Batch account: what is ended, deleted, enabled again and told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from shared.housekeeping import janitor
from shared.pools.readings import Readings
from shared.protocol.record import State
from tests.support.hastes_task import body
from tests.support.passing_waits import PassingWaits
from tests.support.story import Story
from tests.support.values import in_state

DAY = 24 * 3600
JOB = "tenant-training-h100-2026w02"  # the clock starts on the Monday of that week
HASTES = "h100-jobs"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def tidy(story: Story) -> list[dict[str, Any]]:
    """One run, and a while for Batch to do what it was asked for. The lines that were logged."""
    with capture_logs() as logs:
        readings = Readings(story.worker, by_list=True)
        janitor.tidy(story.worker, readings, story.worker.batch.jobs_of("tenant"))
    story.world.batch_world.advance(10)
    return [dict(line) for line in logs]


def states(story: Story) -> dict[str, str]:
    return {job.id: job.state for job in story.world.batch_world.jobs.values()}


def done_in_first_week() -> Story:
    """A training that has completed on Monday, and nothing else."""
    story = Story()
    story.ask()
    story.complete()
    story.until_done()
    return story


def test_an_idle_job_lives_for_its_week_and_a_day_is_ended_and_a_day_later_deleted() -> None:
    story = done_in_first_week()
    for _ in range(7):
        tidy(story)
        assert states(story) == {JOB: "active"}
        story.world.batch_world.advance(DAY)
    tidy(story)  # Monday of the next week
    assert states(story) == {JOB: "active"}
    story.world.batch_world.advance(DAY)
    tidy(story)
    assert states(story) == {JOB: "completed"}
    story.world.batch_world.advance(DAY - 60)
    tidy(story)
    assert states(story) == {JOB: "completed"}
    story.world.batch_world.advance(120)
    tidy(story)
    assert states(story) == {}


def test_a_job_in_which_a_task_still_runs_is_kept_and_new_work_goes_elsewhere() -> None:
    story = Story(pools=[{"id": "h100", "targetLowPriorityNodes": 2, "start_seconds": 0}])
    story.ask()
    story.world.batch_world.advance(9 * DAY)
    tidy(story)
    assert states(story) == {JOB: "active"}
    story.complete()
    story.until_done()
    story.ask("m2")
    assert story.job_id() == "tenant-training-h100-2026w03"
    tidy(story)
    assert states(story) == {JOB: "completed", "tenant-training-h100-2026w03": "active"}


@pytest.mark.parametrize("state", [State.PLACED, State.ENDING, State.FINISHING])
def test_a_job_that_a_live_record_names_is_kept_although_its_task_has_ended(state: State) -> None:
    """The record has not seen the end yet: the task id is not spent."""
    story = Story()
    story.ask()
    story.complete()
    story.world.ledger.replace(story.version, in_state(story.record, state))
    story.world.batch_world.advance(10 * DAY)
    tidy(story)
    assert states(story) == {JOB: "active"}
    story.worker.batch.terminate_job(JOB)
    story.world.batch_world.advance(3 * DAY)
    tidy(story)
    assert states(story) == {JOB: "completed"}


def test_successors_and_what_others_have_ended_go_the_same_way() -> None:
    story = done_in_first_week()
    story.worker.batch.terminate_job(JOB)
    story.world.batch_world.advance(10)
    story.ask("m2")
    story.until(lambda: story.world.runner.running())
    assert story.job_id() == f"{JOB}-2"
    story.complete()
    story.until_done()
    story.world.batch_world.advance(9 * DAY)
    tidy(story)
    assert states(story) == {f"{JOB}-2": "completed"}, "the first one ended days ago"


def test_jobs_of_others_are_left_alone_whatever_their_age() -> None:
    story = Story()
    batch = story.worker.batch
    batch.create_job("tenant-training-h100-2026w02", "h100", None, "tenant-two")
    batch.create_job("h100", "h100", None, None)
    batch.create_job("tenant-by-hand", "h100", None, None)
    before = states(story)
    story.world.batch_world.advance(60 * DAY)
    tidy(story)
    assert states(story) == before


def test_a_job_that_cannot_be_read_does_not_stop_the_others() -> None:
    story = done_in_first_week()
    story.worker.batch.create_job("tenant-interactive-h100-2026w02", "h100", None, "tenant")
    story.world.batch_world.advance(9 * DAY)
    story.fault(operation="list_tasks", job=JOB, status=503)
    logs = tidy(story)
    assert states(story) == {JOB: "active", "tenant-interactive-h100-2026w02": "completed"}
    assert "Batch job left to the next run" in [line["event"] for line in logs]


def test_no_more_than_so_many_jobs_are_looked_at_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(janitor, "MOST_JOBS", 2)
    story = Story()
    for number in range(3):
        story.worker.batch.create_job(f"tenant-training-p{number}-2026w02", "h100", None, "tenant")
    story.world.batch_world.advance(9 * DAY)
    tidy(story)
    assert sorted(states(story).values()) == ["active", "completed", "completed"]


# --- HASTE's jobs -----------------------------------------------------------------------------------------------


def in_hastes_job(tenant: str | None = None) -> Story:
    """A training whose task is in a job that HASTE's app has made, and has disabled since."""
    story = Story()
    story.ask()
    batch = story.worker.batch if tenant else story.world.account
    batch.create_job(HASTES, "h100", None, tenant)
    batch.create_task(HASTES, body(story.task_id()))
    placed = story.record.placement
    assert placed is not None
    story.world.ledger.replace(story.version, replace(story.record, placement=replace(placed, job_id=HASTES)))
    disable(story)
    return story


def disable(story: Story) -> None:
    answer = story.world.batch_world.handle(
        "POST",
        f"/jobs/{HASTES}/disable",
        {"api-version": "2025-06-01"},
        {"authorization": "Bearer x", "content-type": "application/json"},
        b'{"disableTasks": "requeue"}',
    )
    assert answer.status == 202
    story.world.batch_world.advance(5)


def test_a_disabled_job_of_hastes_with_a_live_task_of_ours_is_enabled_again() -> None:
    story = in_hastes_job()
    assert states(story)[HASTES] == "disabled"
    tidy(story)
    assert states(story)[HASTES] == "active"


def test_it_is_never_ended() -> None:
    story = in_hastes_job()
    story.world.batch_world.advance(60 * DAY)
    tidy(story)
    assert states(story)[HASTES] == "active"


def test_without_a_live_task_of_ours_it_stays_disabled() -> None:
    story = in_hastes_job()
    story.worker.batch.terminate_task(HASTES, story.task_id())
    story.world.batch_world.advance(5)
    tidy(story)
    assert states(story)[HASTES] == "disabled"


def test_a_job_of_our_own_that_an_operator_has_disabled_stays_disabled() -> None:
    story = in_hastes_job("tenant")
    tidy(story)
    assert states(story)[HASTES] == "disabled"


# --- late ends --------------------------------------------------------------------------------------------------


def test_a_task_that_completed_days_ago_and_was_not_reconciled_is_told() -> None:
    story = Story()
    story.ask()
    story.complete()
    story.world.batch_world.advance(5 * DAY - 60)
    assert tidy(story) == []
    story.world.batch_world.advance(120)
    (line,) = tidy(story)
    assert (line["log_level"], line["task"], line["batch_job"]) == ("error", story.task_id(), JOB)
    assert line["record"] == story.record.entity.key
    story.until_done()
    assert tidy(story) == []


def test_a_run_with_nothing_to_do_asks_little() -> None:
    story = Story()
    before = len(story.events("request"))
    janitor.tidy(story.worker, Readings(story.worker, by_list=True), ())
    assert len(story.events("request")) == before
