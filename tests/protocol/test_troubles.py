"""Submission when Batch refuses, does not answer, or answers what is not true; and HASTE's records that come late."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.errors import NotThere
from shared.protocol.record import State
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import TRAINING
from tests.support.story import TRAINING_NAME, TWO_POOLS, Story


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


# --- create_task ------------------------------------------------------------------------------------------------


def test_a_task_that_batch_refuses_for_good_fails_with_a_sentence_and_its_id_is_spent() -> None:
    story = Story()
    story.fault(operation="create_task", status=400, code="InvalidPropertyValue", message="secret detail", times=1)
    message = story.ask()
    story.until_done()
    assert story.shown["status"] == "Failed"
    assert story.shown["sentence"] == "Azure Batch answered 400 InvalidPropertyValue"
    assert story.created() == [story.task_id()]
    assert story.task(story.task_id())["commandLine"] == "/bin/false"
    story.deliver(message)
    story.until_done()
    assert story.created() == [story.task_id()]
    assert story.ends() == {"m1": "failed"}


@pytest.mark.parametrize("fault", [{"code": "InternalError"}, {"status": 503}, {"drop_connection": True}])
def test_a_create_that_was_carried_out_without_a_true_answer_makes_one_task(fault: dict[str, object]) -> None:
    """The second try meets the first one's task, which is success."""
    story = Story()
    story.fault(operation="create_task", when="after", times=1, **fault)
    story.ask()
    assert story.created() == story.started() == [story.task_id()]
    assert story.shown["status"] == "InProgress"
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_create_that_is_never_answered_is_repeated_with_the_same_id(when: str) -> None:
    story = Story()
    story.fault(operation="create_task", when=when, drop_connection=True)
    message = story.ask()
    assert story.state is State.PLACED
    story.tick()
    story.deliver(message)
    assert set(story.created()) <= {story.task_id()}
    story.mend()
    story.tick()
    assert story.created() == [story.task_id()]
    assert story.shown["taskId"] == story.task_id()


def test_a_job_whose_create_was_not_answered_stays_where_it_was_placed_though_another_pool_is_free() -> None:
    """Whether a task of the lost answer is there nobody knows: another pool would make it two."""
    story = Story(**TWO_POOLS)
    story.fault(operation="create_task", when="after", drop_connection=True)
    story.ask()
    for _ in range(3):
        story.tick()
    story.mend()
    story.tick()
    assert story.world.live_tasks() == [story.task_id()]
    assert {event["job"] for event in story.events("task_created")} == {story.job_id()}


def test_a_late_create_of_an_attempt_that_moved_on_finds_its_id_taken() -> None:
    """A first create lands nowhere; the pool's job ends; attempt 2 runs. The first create is then sent once more."""
    story = Story()
    story.fault(operation="create_task", drop_connection=True)
    story.ask()
    first = story.record
    story.mend()
    story.cancel()
    story.until_done()
    placed = first.placement
    assert placed is not None
    spec = story.worker.workloads[TRAINING.kind].prepare(first.run(), lambda url: url)
    transfer = story.worker.tasks.transfer(TRAINING.kind)
    story.worker.batch.create_task(
        placed.job_id, story.worker.tasks.body(placed.task_id, TRAINING.kind, spec, transfer)
    )
    story.world.batch_world.tick()
    assert story.world.live_tasks() == []


def test_a_task_that_batch_does_not_list_is_created_under_the_same_id() -> None:
    story = Story()
    story.ask()
    job = story.job_id()
    ((_, name),) = story.world.runner.running()
    story.worker.batch.delete_stuck_task(job, name)
    story.world.batch_world.tick()
    assert story.world.live_tasks() == []
    story.tick()
    assert story.created() == [story.task_id(), story.task_id()]
    assert story.record.attempt == 1


# --- quota, and Batch out of order -----------------------------------------------------------------------------


def test_quota_is_waited_for_with_a_reason_and_growing_pauses() -> None:
    story = Story()
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    story.ask()
    pauses: list[timedelta] = []
    looked = None
    for _ in range(150):
        record = story.record
        if record.waits != looked:
            looked = record.waits
            pauses.append(record.not_before - story.now())
            assert "ActiveJobAndScheduleQuotaReached" in record.reason
        story.tick()
    assert story.shown["status"] == "Queued", "not the user's fault"
    assert pauses == sorted(pauses) and len(pauses) >= 5
    assert timedelta(seconds=50) < pauses[0] < timedelta(seconds=70)
    assert pauses[-1] <= timedelta(minutes=66)
    story.mend()
    story.until(lambda: story.world.live_tasks(), ticks=150)
    assert story.record.waits == 0
    assert story.created() == [story.task_id()]
    assert len(story.world.batch_world.jobs) == 1


def test_pauses_never_grow_beyond_an_hour() -> None:
    story = Story()
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    story.ask()
    for _ in range(12):
        story.world.batch_world.advance((story.record.not_before - story.now()).total_seconds())
        story.tick(0)
        assert story.record.not_before - story.now() < timedelta(minutes=67)
    assert story.record.waits >= 10


def test_batch_out_of_order_before_the_placement_leaves_the_request_waiting() -> None:
    story = Story()
    story.fault(operation="create_job", status=503)
    story.ask()
    assert story.state is State.WAITING
    story.mend()
    story.until(lambda: story.world.live_tasks())
    assert story.created() == [story.task_id()]


# --- reading ----------------------------------------------------------------------------------------------------


def test_failed_readings_however_many_are_no_reason_for_anything() -> None:
    story = Story(**TWO_POOLS)
    story.ask()
    story.tick()
    for operation in ("list_tasks", "get_task", "list_nodes", "list_pool_node_counts"):
        story.fault(operation=operation, status=503)
    for _ in range(5):
        story.tick()
    story.mend()
    story.tick()
    assert (story.record.attempt, story.state, story.record.losses) == (1, State.PLACED, ())
    assert story.started() == [story.task_id()]


# --- HASTE's record ---------------------------------------------------------------------------------------------


def test_a_record_that_comes_within_two_minutes_is_waited_for() -> None:
    story = Story(record_is_there=False)
    story.ask()
    assert TRAINING_NAME in story.record.reason
    for _ in range(10):
        story.tick(5)
    story.world.save_record(TRAINING, status="Queued", taskId=None)
    story.tick(5)
    story.tick(5)
    assert story.world.live_tasks() == [story.task_id()]


@pytest.mark.parametrize("ahead_minutes", [-5, 5])
def test_a_host_whose_clock_is_wrong_waits_for_it_as_long(ahead_minutes: int) -> None:
    story = Story(record_is_there=False)
    clock = story.world.clock
    story.worker = replace(story.worker, now=lambda: clock.now() + timedelta(minutes=ahead_minutes))
    story.ask()
    story.tick(5)
    assert story.state is State.WAITING
    story.world.save_record(TRAINING, status="Queued", taskId=None)
    story.until(lambda: story.world.live_tasks() == [story.task_id()], ticks=20)


def test_a_record_that_never_comes_fails_the_request_and_is_not_made_up() -> None:
    story = Story(record_is_there=False)
    story.ask()
    story.tick(100)
    assert story.state is State.WAITING
    story.tick(21)
    story.tick(10)
    story.until_done()
    assert story.ends() == {"m1": "failed"}
    assert story.world.haste.blobs == {}
    assert story.world.batch_world.jobs == {}


def test_a_record_that_vanishes_after_the_placement_ends_the_request() -> None:
    story = Story()
    story.fault(operation="create_task", drop_connection=True)
    story.ask()
    story.mend()
    del story.world.haste.blobs[TRAINING_NAME]
    story.world.worker.workloads[TRAINING.kind].prepare = _gone  # type: ignore[method-assign,assignment]
    story.until_done()
    assert story.ends() == {"m1": "failed"}
    assert story.task(story.task_id())["commandLine"] == "/bin/false"


def _gone(*_args: object) -> None:
    raise NotThere(TRAINING_NAME)


# --- HASTE's late saves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [1, 20, 55])
def test_a_save_that_lands_after_the_end_is_corrected(seconds: float) -> None:
    story = Story()
    story.ask()
    before = dict(story.shown)
    story.complete()
    story.tick(seconds)
    assert story.shown["status"] == "Processed"
    story.world.save_record(TRAINING, **(before | {"status": "Queued", "taskId": None, "jobStatus": None}))
    story.until_done()
    assert (story.shown["status"], story.shown["taskId"]) == ("Processed", story.task_id())


def test_a_late_save_of_a_cancel_is_corrected_too() -> None:
    """The request was asked long ago, the cancel just now; the API saves what it had read before."""
    story = Story()
    story.ask()
    for _ in range(5):
        story.tick()
    before = dict(story.shown)
    story.deliver(story.message("c1", "Cancelled"))
    for _ in range(5):
        story.tick(10)
    assert story.shown["jobStatus"] == "Cancelled"
    story.world.save_record(TRAINING, **(before | {"status": "Cancelled"}))
    assert story.shown["jobStatus"] == "InProgress"
    story.until_done()
    assert (story.shown["status"], story.shown["jobStatus"]) == ("Cancelled", "Cancelled")


def test_a_save_that_lands_while_it_runs_is_corrected_by_the_next_progress() -> None:
    story = Story()
    story.ask()
    story.world.save_record(TRAINING, status="Queued", taskId=None, jobStatus=None)
    story.tick()
    assert (story.shown["status"], story.shown["taskId"]) == ("InProgress", story.task_id())


def test_progress_leaves_a_record_of_a_newer_run_alone() -> None:
    story = Story()
    story.ask()
    story.world.save_record(TRAINING, status="InProgress", taskId="trn-somebody-elses")
    story.tick()
    story.complete()
    story.until_done()
    assert (story.shown["status"], story.shown["taskId"]) == ("InProgress", "trn-somebody-elses")
    assert story.ends() == {"m1": "completed"}


def test_a_late_cancelled_of_the_api_over_an_end_is_corrected() -> None:
    story = Story()
    story.ask()
    story.complete()
    story.until_done()
    story.cancel()
    assert story.shown["status"] == "Cancelled"
    for _ in range(3):
        story.tick()
    assert (story.shown["status"], story.shown["jobStatus"]) == ("Processed", "Processed")
    assert story.live is None and not story.world.own_queue.messages
