"""The second line: live tasks of ours that no record names."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from shared.housekeeping.sweep import sweep
from shared.kinds import Kind
from shared.pools.readings import Readings
from shared.protocol.record import State, task_id
from tests.support.batch_calls import body
from tests.support.passing_waits import PassingWaits
from tests.support.story import Story
from tests.support.values import in_state

ORPHAN = task_id(Kind.TRAINING, "nobody-knows", 1)
SECOND = task_id(Kind.TRAINING, "nobody-knows", 2)
HASTES = "trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a71"
HALF_AN_HOUR = 30 * 60


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def with_tasks(*tasks: str) -> tuple[Story, str]:
    """A training that runs, and further tasks in its Batch job."""
    story = Story()
    story.ask()
    job = story.job_id()
    for task in tasks:
        story.worker.batch.create_task(job, body(task))
    story.world.batch_world.advance(1)
    return story, job


def swept(story: Story, job_ids: list[str], *, may_end: bool) -> list[str]:
    return sweep(story.worker, Readings(story.worker, by_list=True), job_ids, may_end=may_end)


def test_an_old_task_of_ours_that_no_record_names_is_ended() -> None:
    story, job = with_tasks(ORPHAN)
    story.world.batch_world.advance(HALF_AN_HOUR)
    with capture_logs() as logs:
        assert swept(story, [job], may_end=True) == [ORPHAN]
    assert [(line["event"], line["task"]) for line in logs if line["log_level"] == "error"] == [("orphan task", ORPHAN)]
    story.world.batch_world.tick()
    assert story.world.live_tasks() == [story.task_id()]
    assert story.events("task_deleted") == []


def test_a_younger_one_is_left_alone() -> None:
    story, job = with_tasks(ORPHAN)
    story.world.batch_world.advance(HALF_AN_HOUR - 10)
    assert swept(story, [job], may_end=True) == []
    assert ORPHAN in story.world.live_tasks()


def test_tasks_of_others_are_left_alone() -> None:
    """HASTE's own app draws random ids, and anybody may name a task as they like."""
    story, job = with_tasks(HASTES, "trn-by-hand", "by-hand")
    story.world.batch_world.advance(HALF_AN_HOUR)
    assert swept(story, [job], may_end=True) == []
    assert len(story.world.live_tasks()) == 4


@pytest.mark.parametrize("state", [State.PLACED, State.ENDING])
def test_a_task_that_a_record_names_is_left_to_the_protocol(state: State) -> None:
    story, job = with_tasks()
    story.world.batch_world.advance(HALF_AN_HOUR)
    if state is State.ENDING:
        story.world.ledger.replace(story.version, in_state(story.record, state))
    assert swept(story, [job], may_end=True) == []


def test_a_task_of_an_attempt_that_was_left_is_an_orphan() -> None:
    story, job = with_tasks()
    story.world.batch_world.advance(HALF_AN_HOUR)
    story.world.ledger.remove(story.version)
    assert swept(story, [job], may_end=True) == [story.task_id()]


def test_what_has_ended_is_no_orphan() -> None:
    story, job = with_tasks(ORPHAN)
    story.world.runner.finish(job, ORPHAN, 0)
    story.world.batch_world.advance(HALF_AN_HOUR)
    assert swept(story, [job], may_end=True) == []


def test_what_has_ended_since_the_tasks_were_listed_is_no_orphan() -> None:
    story, job = with_tasks(ORPHAN)
    story.world.batch_world.advance(HALF_AN_HOUR)
    readings = Readings(story.worker, by_list=True)
    readings.live_tasks(job)
    for task in (ORPHAN, story.task_id()):
        story.world.runner.finish(job, task, 0)
    story.world.batch_world.tick()
    story.world.ledger.remove(story.version)
    with capture_logs() as logs:
        assert sweep(story.worker, readings, [job], may_end=True) == []
    assert logs == []


def test_in_jobs_that_others_use_orphans_are_only_reported() -> None:
    story, job = with_tasks(ORPHAN)
    story.world.batch_world.advance(HALF_AN_HOUR)
    with capture_logs() as logs:
        assert swept(story, [job], may_end=False) == [ORPHAN]
    assert "orphan task" in [line["event"] for line in logs]
    assert ORPHAN in story.world.live_tasks()


def test_jobs_that_are_gone_or_over_are_passed_over() -> None:
    story, job = with_tasks(ORPHAN)
    story.world.batch_world.advance(HALF_AN_HOUR)
    assert swept(story, ["gone", job, "gone-too"], may_end=True) == [ORPHAN]


def test_a_job_whose_tasks_cannot_be_read_keeps_no_other_from_its_turn() -> None:
    story, job = with_tasks(ORPHAN)
    story.world.batch_world.advance(HALF_AN_HOUR)
    story.fault(operation="list_tasks", job="unreadable", status=403, code="AuthorizationFailure")
    with capture_logs() as logs:
        assert swept(story, ["unreadable", job], may_end=True) == [ORPHAN]
    warned = [line for line in logs if line["log_level"] == "warning"]
    assert [(line["event"], line["batch_job"]) for line in warned] == [("Batch job not swept", "unreadable")]
    assert ORPHAN not in story.world.live_tasks()


@pytest.mark.parametrize(("operation", "found"), [("get_task", [SECOND]), ("terminate_task", [ORPHAN, SECOND])])
def test_an_orphan_that_cannot_be_asked_about_or_ended_keeps_no_other_from_its_turn(
    operation: str, found: list[str]
) -> None:
    story, job = with_tasks(ORPHAN, SECOND)
    story.world.batch_world.advance(HALF_AN_HOUR)
    story.fault(operation=operation, task=ORPHAN, status=403, code="AuthorizationFailure")
    with capture_logs() as logs:
        assert sorted(swept(story, [job], may_end=True)) == sorted(found)
    warned = [line for line in logs if line["log_level"] == "warning"]
    assert [(line["event"], line["task"]) for line in warned] == [("orphan task left to the next run", ORPHAN)]
    story.world.batch_world.tick()
    assert sorted(story.world.live_tasks()) == sorted([story.task_id(), ORPHAN])
    story.mend()
    assert swept(story, [job], may_end=True) == [ORPHAN]


def test_a_task_placed_between_the_two_lists_is_never_taken_for_an_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks are listed first: whatever is among them was named by a record before."""
    story, job = with_tasks(ORPHAN)
    story.world.batch_world.advance(HALF_AN_HOUR)
    order: list[str] = []
    real_live, real_tasks = story.world.ledger.live, story.worker.batch.live_tasks

    def live() -> Any:
        order.append("ledger")
        return real_live()

    def tasks(job_id: str) -> list[Any]:
        order.append("tasks")
        return real_tasks(job_id)

    monkeypatch.setattr(story.world.ledger, "live", live)
    monkeypatch.setattr(story.worker.batch, "live_tasks", tasks)
    swept(story, [job, "gone"], may_end=False)
    assert order == ["tasks", "tasks", "ledger"]
