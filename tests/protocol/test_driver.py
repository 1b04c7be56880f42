"""A request's life on the real driver: accepted, run, cancelled, repeated, followed, however often it is delivered."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from local.batch import Failure, RunEnd, control
from shared.kinds import Kind
from shared.ledger.port import Listing
from shared.protocol.outcome import Result
from shared.protocol.record import State, task_id
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import INFERENCE, SmallWorld
from tests.support.story import TWO_POOLS, Story


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


# --- the plain course -------------------------------------------------------------------------------------------


def test_a_request_runs_and_is_shown() -> None:
    story = Story()
    story.ask()
    assert story.world.live_tasks() == [story.task_id()]
    assert story.shown | {"status": "InProgress", "taskId": story.task_id(), "jobStatus": "InProgress"} == story.shown
    story.complete()
    story.tick()
    assert story.shown["status"] == story.shown["jobStatus"] == "Processed"
    story.until_done()
    assert story.ends() == {"m1": "completed"}
    assert story.created() == story.started() == [story.task_id()]


def test_a_program_that_fails_is_a_failure_and_not_run_again() -> None:
    story = Story()
    story.ask()
    story.complete(exit_code=3)
    story.until_done()
    assert (story.shown["status"], story.shown["sentence"]) == ("Failed", "exit code 3")
    assert story.created() == [story.task_id()]


@pytest.mark.parametrize("when", ["at once", "while it runs", "after its end is shown", "after everything"])
def test_a_message_delivered_again_starts_nothing(when: str) -> None:
    story = Story()
    message = story.ask()
    if when == "at once":
        story.deliver(message)
    story.tick()
    if when == "while it runs":
        story.deliver(message)
    story.complete()
    story.tick()
    if when == "after its end is shown":
        story.deliver(message)
    story.until_done()
    shown = story.shown
    if when == "after everything":
        story.deliver(message)
        story.until_done()
    assert story.created() == story.started() == [story.task_id()]
    assert story.shown == shown
    assert story.ends() == {"m1": "completed"}


def test_a_request_that_ended_cancelled_stays_so_when_its_message_comes_again() -> None:
    story = Story()
    message = story.ask()
    story.cancel()
    story.until_done()
    story.deliver(message)
    story.until_done()
    assert story.created() == [story.task_id()]
    assert story.shown["status"] == "Cancelled"


# --- a newer request --------------------------------------------------------------------------------------------


def test_a_newer_request_takes_the_place_of_a_running_one() -> None:
    story = Story()
    story.ask("m1")
    story.tick()
    story.ask("m2")
    assert len(story.world.live_tasks()) == 1, "the old task is ended first"
    story.until(lambda: story.task_id(1, "m2") in story.world.live_tasks())
    assert story.world.live_tasks() == [story.task_id(1, "m2")]
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "superseded", "m2": "completed"}
    assert (story.shown["taskId"], story.shown["status"]) == (story.task_id(1, "m2"), "Processed")


def test_of_several_newer_requests_only_the_newest_runs_in_whatever_order_they_come() -> None:
    story = Story()
    messages = []
    for name in ("m1", "m2", "m3", "m4"):
        messages.append(story.message(name, "Queued"))
        story.world.batch_world.advance(1)
    for place in (0, 3, 1, 2):
        story.deliver(messages[place])
    story.until(lambda: story.task_id(1, "m4") in story.world.live_tasks())
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "superseded", "m2": "superseded", "m3": "superseded", "m4": "completed"}
    assert story.started() == [story.task_id(1, "m1"), story.task_id(1, "m4")]


def test_an_old_message_that_comes_late_does_not_replace_what_is_newer() -> None:
    story = Story()
    old = story.message("m0", "Queued")
    story.world.batch_world.advance(5)
    story.ask("m1")
    story.deliver(old)
    story.complete()
    story.until_done()
    story.deliver(old)
    story.until_done()
    assert story.ends() == {"m0": "superseded", "m1": "completed"}
    assert story.created() == [story.task_id()]


def test_a_newer_request_before_the_first_has_a_task() -> None:
    story = Story(record_is_there=False)
    story.ask("m1")
    story.world.batch_world.advance(1)
    story.ask("m2")
    story.world.save_record(story.record.entity, status="Queued", taskId=None)
    story.until(lambda: story.world.live_tasks())
    assert story.created() == [story.task_id(1, "m2")]
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "superseded", "m2": "completed"}


# --- cancel -----------------------------------------------------------------------------------------------------


def test_cancel_while_waiting_places_nothing() -> None:
    story = Story()
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    story.ask()
    assert story.state is State.WAITING
    story.cancel()
    story.mend()
    story.until_done()
    assert story.created() == []
    assert story.shown["status"] == "Cancelled"
    assert story.ends() == {"m1": "cancelled", "c1": "cancel"}


def test_cancel_while_it_runs() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.cancel()
    story.until_done()
    assert story.world.live_tasks() == []
    assert (story.shown["status"], story.shown["jobStatus"]) == ("Cancelled", "Cancelled")
    assert story.ends() == {"m1": "cancelled", "c1": "cancel"}


def test_cancel_of_a_task_that_batch_does_not_have_spends_its_id_first() -> None:
    """The create's answer was lost, and so is the task: a create that is still under way must find its id taken."""
    story = Story()
    story.fault(operation="create_task", status=503)
    message = story.ask()
    assert story.state is State.PLACED and story.created() == []
    story.mend()
    story.cancel()
    story.until_done()
    assert story.created() == [story.task_id()], "created once more, only to fail"
    spent = story.task(story.task_id())
    assert (spent["commandLine"], spent.get("resourceFiles"), spent.get("outputFiles")) == ("/bin/false", None, None)
    assert story.shown["status"] == "Cancelled"
    story.deliver(message)
    story.until_done()
    assert story.created() == [story.task_id()]


def test_cancel_while_an_attempt_is_ended_for_a_move_stops_the_move() -> None:
    story = Story(**TWO_POOLS)
    story.ask()
    story.tick()
    control.preempt_task(story.world.batch_world, story.job_id(), story.task_id())
    story.tick()
    assert story.state is State.ENDING
    story.cancel()
    story.until_done()
    assert story.created() == [story.task_id()]
    assert story.ends()["m1"] == "cancelled"


def test_cancel_after_the_end_does_not_undo_it() -> None:
    story = Story()
    story.ask()
    story.complete()
    story.tick()
    assert story.state is State.FINISHING
    story.cancel()
    assert story.shown["status"] == "Cancelled", "this is what HASTE's API has saved"
    story.until_done()
    assert (story.shown["status"], story.shown["jobStatus"]) == ("Processed", "Processed")
    story.cancel("c2")
    story.until_done()
    assert story.shown["status"] == "Processed"
    assert story.ends() == {"m1": "completed", "c1": "cancel", "c2": "cancel"}


def test_a_success_in_the_moment_of_the_cancel_stays_a_success() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.complete()
    story.cancel()
    story.until_done()
    assert story.ends()["m1"] == "completed"
    assert story.shown["status"] == "Processed"


def test_a_cancel_that_overtakes_its_request_cancels_it() -> None:
    story = Story()
    request = story.message("m1", "Queued")
    story.cancel()
    story.deliver(request)
    story.until_done()
    assert story.created() == []
    assert story.shown["status"] == "Cancelled"


def test_a_cancel_does_not_reach_the_request_that_follows_it() -> None:
    story = Story()
    story.ask("m1")
    story.tick(1)
    cancel = story.message("c1", "Cancelled")
    story.world.batch_world.advance(1)
    story.ask("m2")
    story.deliver(cancel)
    story.until(lambda: story.world.live_tasks() == [story.task_id(1, "m2")])
    story.complete()
    story.until_done()
    assert story.ends()["m2"] == "completed"
    assert story.ends()["m1"] in ("cancelled", "superseded")
    assert story.shown["status"] == "Processed"


# --- follow-up --------------------------------------------------------------------------------------------------


def test_a_follow_up_starts_exactly_once() -> None:
    story = Story(follow_up=Kind.INFERENCE)
    story.world.save_record(INFERENCE, status=None, taskId=None)
    story.ask()
    story.complete()
    story.until(lambda: story.live is None)
    follow_up = task_id(Kind.INFERENCE, "m1+inference", 1)
    assert story.world.live_tasks() == [follow_up]
    assert story.world.record(INFERENCE)["taskId"] == follow_up
    story.complete()
    story.until(lambda: not list(story.world.ledger.live()))
    assert story.created() == [story.task_id(), follow_up]
    assert story.world.record(INFERENCE)["status"] == "Processed"


def test_a_follow_up_that_ended_before_its_parent_is_not_taken_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer that had started it died, and nobody looked at the parent for long."""
    story = Story(follow_up=Kind.INFERENCE)
    story.world.save_record(INFERENCE, status=None, taskId=None)
    story.ask()
    story.complete()
    story.tick()
    real = story.world.ledger.live
    with monkeypatch.context() as patch:
        patch.setattr(
            story.world.ledger, "live", lambda: Listing(tuple(one for one in real() if one.key == INFERENCE.key))
        )
        story.complete()
        story.until(lambda: story.world.ledger.read(INFERENCE.key) is None)
    monkeypatch.setattr(story.world.ledger, "create", None)  # nobody makes a record any more
    story.until(lambda: story.live is None)
    assert len(story.created()) == 2


@pytest.mark.parametrize("result", [Result.FAILED, Result.CANCELLED])
def test_nothing_follows_another_end(result: Result) -> None:
    story = Story(follow_up=Kind.INFERENCE)
    story.ask()
    if result is Result.CANCELLED:
        story.cancel()
    else:
        story.complete(exit_code=1)
    story.until_done()
    assert story.created() == [story.task_id()]


# --- maximum run time -------------------------------------------------------------------------------------------


def limited(world: SmallWorld, max_run: timedelta) -> None:
    """The worker's tasks may run for so long."""
    world.worker = dataclasses.replace(
        world.worker,
        tasks=dataclasses.replace(world.worker.tasks, max_run=dict.fromkeys(Kind, max_run)),
        recovery={kind: dataclasses.replace(policy, max_run=max_run) for kind, policy in world.worker.recovery.items()},
    )


def test_a_task_that_reaches_its_maximum_run_time_has_failed_by_itself() -> None:
    story = Story()
    limited(story.world, timedelta(minutes=10))
    story.worker = story.world.worker
    story.ask()
    story.until_done(ticks=40)
    assert story.created() == [story.task_id()], "no second attempt"
    assert [event["code"] for event in story.events("task_completed")] == ["TaskEnded"]
    assert story.ends() == {"m1": "failed"}
    assert story.shown["status"] == "Failed"


def test_a_task_that_somebody_ended_before_that_runs_again() -> None:
    story = Story()
    limited(story.world, timedelta(minutes=10))
    story.worker = story.world.worker
    story.ask()
    story.tick(60)
    story.worker.batch.terminate_task(story.job_id(), story.task_id())
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}
    assert story.shown["taskId"] == story.task_id(2)


def test_outputs_that_could_not_be_uploaded_are_judged_by_the_workload() -> None:
    story = Story()
    story.ask()
    ((job, task),) = story.world.runner.running()
    failure = Failure("FileUploadAccessDenied", "usererror", "The SAS has expired", stage="upload")
    story.world.runner.finish(job, task, RunEnd(exit_code=0, failure=failure))
    story.until_done()
    assert story.ends() == {"m1": "failed"}
    assert story.created() == [story.task_id()]
