"""The timer's tick: many records, few calls, and none of them stops the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from shared.kinds import Entity, Kind
from shared.pools.readings import Readings
from shared.protocol.record import State
from shared.requests.own_message import Resume, from_bytes
from shared.triggers import timer
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import PROJECT, TRAINING
from tests.support.story import Story

MANY: dict[str, Any] = {"pools": [{"id": "h100", "targetLowPriorityNodes": 10, "start_seconds": 0}]}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def trainings(count: int) -> tuple[Story, list[Entity]]:
    """So many trainings that run."""
    story = Story(**MANY)
    entities = [Entity(Kind.TRAINING, PROJECT, str(n)) for n in range(count)]
    for entity in entities:
        story.world.save_record(entity, status="Queued", taskId=None)
        story.deliver(story.message(f"m{entity.entity_id}", "Queued", entity, modelId=entity.entity_id))
    assert len(story.world.runner.running()) == count
    return story, entities


def finish_all(story: Story) -> None:
    for job, task in story.world.runner.running():
        story.world.runner.finish(job, task, 0)
    story.world.batch_world.tick()


def run_tick(story: Story, seconds: Callable[[], float] = lambda: 0.0) -> int:
    return timer.tick(story.worker, Readings(story.worker, by_list=True), seconds)


def statuses(story: Story, entities: list[Entity]) -> list[str]:
    return [story.world.record(entity)["status"] for entity in entities]


# --- cost -------------------------------------------------------------------------------------------------------


def test_with_nothing_live_a_tick_asks_batch_nothing() -> None:
    story = Story()
    before = len(story.events("request"))
    assert run_tick(story) == 0
    assert len(story.events("request")) == before


def test_a_batch_job_is_listed_once_however_many_tasks_it_holds() -> None:
    story, _entities = trainings(8)
    before = len(story.events("request"))
    assert run_tick(story) == 8
    new = [event["operation"] for event in story.events("request")[before:]]
    assert new.count("list_tasks") == 1
    assert new.count("get_task") == 0
    assert len([one for one in new if one not in ("get_task_file", "list_task_files")]) <= 4


def test_all_that_ended_are_finished_by_one_tick() -> None:
    story, entities = trainings(8)
    finish_all(story)
    run_tick(story)
    assert statuses(story, entities) == ["Processed"] * 8


# --- records that cannot be dealt with --------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [0, 3, 7])
def test_one_broken_record_does_not_stop_the_others(broken: int) -> None:
    story, entities = trainings(8)
    finish_all(story)
    workload = story.worker.workloads[Kind.TRAINING]
    real = workload.outcome

    def breaks(run: Any, end: Any) -> Any:
        if run.entity == entities[broken]:
            raise KeyError("a field that nobody expected to be missing")
        return real(run, end)

    workload.outcome = breaks  # type: ignore[method-assign]
    with pytest.raises(ExceptionGroup) as raised:
        run_tick(story)
    assert [type(error) for error in raised.value.exceptions] == [KeyError]
    assert statuses(story, entities).count("Processed") == 7
    workload.outcome = real  # type: ignore[method-assign]
    run_tick(story)
    assert statuses(story, entities) == ["Processed"] * 8


def test_a_batch_job_that_cannot_be_read_does_not_stop_the_others() -> None:
    story, entities = trainings(3)
    inference = Entity(Kind.INFERENCE, PROJECT, "4821")
    story.world.save_record(inference, status="Queued", taskId=None)
    story.deliver(story.message("mi", "Queued", inference), Kind.INFERENCE)
    finish_all(story)
    story.fault(operation="list_tasks", job="tenant-training-h100-2026w02", status=503)
    run_tick(story)
    assert statuses(story, entities) == ["InProgress"] * 3
    assert story.world.record(inference)["status"] == "Processed"


def test_a_record_that_somebody_else_writes_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    story, entities = trainings(2)
    finish_all(story)
    first = story.world.ledger.read(entities[0].key)
    real = story.world.ledger.read

    def outrun(key: str) -> Any:
        version = real(key)
        if key == entities[0].key and version == first:
            assert version is not None
            story.world.ledger.replace(version, version.record)  # another timer, whose lease has run out
        return version

    monkeypatch.setattr(story.world.ledger, "read", outrun)
    assert run_tick(story) == 2
    assert statuses(story, entities) == ["InProgress", "Processed"]
    run_tick(story)
    assert statuses(story, entities) == ["Processed", "Processed"]


def test_a_record_that_is_gone_between_list_and_read_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    story, entities = trainings(2)
    version = story.world.ledger.read(entities[0].key)
    assert version is not None
    real = story.world.ledger.live

    def gone_after() -> Any:
        listed = real()
        story.world.ledger.remove(version)
        return listed

    monkeypatch.setattr(story.world.ledger, "live", gone_after)
    assert run_tick(story) == 2


# --- time -------------------------------------------------------------------------------------------------------


def test_a_tick_is_cut_short_and_the_next_one_goes_on() -> None:
    story, entities = trainings(6)
    finish_all(story)
    clock = iter([0.0, *[40.0 * n for n in range(100)]])
    with capture_logs() as logs:
        run_tick(story, lambda: next(clock))
    done = statuses(story, entities).count("Processed")
    assert 0 < done < 6
    assert "tick cut short" in [line["event"] for line in logs]
    run_tick(story)
    assert statuses(story, entities) == ["Processed"] * 6


def test_a_tick_that_is_cut_short_begins_with_the_oldest_requests() -> None:
    story, entities = trainings(6)
    for n, entity in enumerate(entities):
        version = story.world.ledger.read(entity.key)
        assert version is not None
        request = dataclasses.replace(version.record.request, asked=story.now() - timedelta(seconds=n))
        story.world.ledger.replace(version, dataclasses.replace(version.record, request=request))
    finish_all(story)
    clock = iter([0.0, 0.0, 0.0, *[1000.0] * 10])
    run_tick(story, lambda: next(clock))
    assert statuses(story, entities) == ["InProgress"] * 4 + ["Processed"] * 2


# --- waiting records --------------------------------------------------------------------------------------------


def waiting_story() -> Story:
    """A training that waits for quota, which is free again."""
    story = Story()
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached", times=1)
    story.ask()
    assert story.state is State.WAITING
    return story


def resumes(story: Story) -> list[Resume]:
    found = [from_bytes(text.encode()) for _visible_at, text in story.world.own_queue.messages]
    return [one for one in found if isinstance(one, Resume)]


def test_a_waiting_record_is_woken_once_when_it_is_due() -> None:
    story = waiting_story()
    run_tick(story)
    assert resumes(story) == [], "not due yet"
    story.world.batch_world.advance(70)
    for _ in range(3):
        run_tick(story)
        story.world.batch_world.advance(30)
    assert resumes(story) == [Resume(TRAINING, "m1", 1)]
    assert story.world.live_tasks() == [], "the timer places nothing itself"
    story.deliver_own()
    assert story.world.live_tasks() == [story.task_id()]


def test_a_wake_up_that_got_lost_is_repeated_after_a_while() -> None:
    story = waiting_story()
    story.world.batch_world.advance(70)
    run_tick(story)
    story.world.own_queue.messages.clear()
    story.world.batch_world.advance(299)
    run_tick(story)
    assert resumes(story) == []
    story.world.batch_world.advance(2)
    run_tick(story)
    assert resumes(story) == [Resume(TRAINING, "m1", 1)]


def test_the_next_look_is_stored_before_the_message_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a handler that is quick would lose its write to the timer's."""
    story = waiting_story()
    story.world.batch_world.advance(70)
    seen = []
    monkeypatch.setattr(story.world.own_queue, "send", lambda _text, _after=0: seen.append(story.record.not_before))
    run_tick(story)
    assert seen == [story.now() + timedelta(minutes=5)]


def test_a_handler_that_died_after_the_record_was_made_is_followed_by_the_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    with monkeypatch.context() as patch:
        patch.setattr("shared.triggers.messages._advance", lambda *_args: None)
        story.ask()
    assert (story.state, story.created()) == (State.WAITING, [])
    story.until(lambda: story.world.live_tasks(), ticks=5)
    assert story.created() == [story.task_id()]


def test_a_waiting_record_that_is_not_wanted_any_more_ends_without_a_message() -> None:
    story = waiting_story()
    story.cancel()
    run_tick(story)
    assert story.state is State.FINISHING
    assert resumes(story) == []
