"""A message that names a task of our own (newer HASTE sends stored records again) ends and starts nothing."""

from __future__ import annotations

from typing import Any

import pytest

from shared.protocol.record import State
from tests.protocol.test_moving import preempt
from tests.support.hastes_task import JOB, TASK, Left
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import TRAINING
from tests.support.story import TWO_POOLS, Story


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def send_again(story: Story, message_id: str = "p1", task: str | None = None) -> None:
    """The record of a running training as a message: it names job and task."""
    job = story.job_id() if story.live and story.live.placement else "tenant-training-h100-2026w02"
    named = {"jobId": job, "taskId": task or story.task_id()}
    story.deliver(story.message(message_id, "InProgress", trainingJob=named))


def test_a_running_task_of_our_own_runs_on() -> None:
    story = Story()
    story.ask()
    story.tick()
    before = story.record
    for number in range(5):
        send_again(story, f"p{number}")
        story.tick()
    assert story.record == before
    story.complete()
    story.until_done()
    send_again(story, "p9")
    story.tick()
    assert story.live is None
    assert story.created() == story.started() == [story.task_id()]
    assert story.events("task_terminated") == []
    assert story.ends() == {"m1": "completed"}
    assert story.kept.blobs == {}


def test_an_earlier_attempt_that_was_left_is_known_as_ours() -> None:
    story = Story(**TWO_POOLS)
    story.ask()
    story.tick()
    preempt(story)
    story.until(lambda: story.record.attempt == 2 and story.state is State.PLACED)
    before = story.record
    send_again(story, "p1", story.task_id(1))
    assert story.record == before
    story.complete()
    story.until_done()
    send_again(story, "p2", story.task_id(1))
    send_again(story, "p3", story.task_id(2))
    assert story.live is None
    assert story.created() == [story.task_id(1), story.task_id(2)]


def test_it_does_not_take_the_place_of_a_run_that_the_user_has_started_since() -> None:
    story = Story()
    story.ask("m1")
    story.tick()
    story.world.batch_world.advance(2)
    story.ask("m2")
    story.world.batch_world.advance(2)
    send_again(story)
    story.until(lambda: story.task_id(1, "m2") in story.world.live_tasks())
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "superseded", "m2": "completed"}


@pytest.mark.parametrize("state", [State.ENDING, State.FINISHING])
def test_in_no_state_of_its_record(state: State) -> None:
    story = Story()
    story.ask()
    story.world.batch_world.tick()
    if state is State.ENDING:
        story.fault(operation="terminate_task", status=503)
        story.cancel()
    else:
        story.complete()
    story.tick(5)
    assert story.state is state
    before = story.record
    send_again(story)
    assert story.record == before
    story.mend()
    story.until_done()
    assert story.created() == [story.task_id()]


# --- tasks of HASTE's own app, and the requests that met them -----------------------------------------------------


def saved_as_running(story: Story, **fields: Any) -> None:
    story.world.save_record(TRAINING, status="InProgress", taskId=TASK, jobStatus="InProgress", **fields)


@pytest.mark.parametrize("waits", [False, True])
def test_a_poll_message_behind_the_users_new_request_ends_the_old_task_and_leaves_the_request(waits: bool) -> None:
    """HASTE's record names the old task still: the API saves late. `waits`: the request waits behind another."""
    story = Left()
    if waits:
        story.ask("m1")
        story.world.batch_world.advance(2)
        saved_as_running(story)
    story.ask("m2")
    saved_as_running(story)
    story.world.batch_world.advance(2)
    story.poll()
    story.until(lambda: story.world.live_tasks() == [story.task_id(1, "m2")])
    story.complete()
    story.until_done()
    assert story.ends()["m2"] == "completed"
    assert TASK not in story.ends(), "it was never taken over"


def test_a_request_that_was_asked_for_before_the_poll_message_comes_after_the_task() -> None:
    """The user's message lies in the queue when HASTE's app looks at the task for the last time."""
    story = Left()
    asked = story.message("m1", "Queued")
    story.world.batch_world.advance(5)
    story.poll()
    assert story.record.request.request_id == TASK
    story.deliver(asked)
    story.until(lambda: story.world.live_tasks() == [story.task_id()])
    story.complete()
    story.until_done()
    assert story.ends() == {TASK: "superseded", "m1": "completed"}
    assert story.shown["taskId"] == story.task_id()
    assert story.shown["status"] == "Processed"


def test_also_when_the_task_has_ended_before_the_message_is_handled() -> None:
    story = Left()
    asked = story.message("m1", "Queued")
    story.world.batch_world.advance(5)
    story.poll()
    story.complete()
    story.until_done()
    saved_as_running(story)  # HASTE's API saves what it had read
    story.deliver(asked)
    story.until(lambda: story.world.live_tasks() == [story.task_id()])
    story.complete()
    story.until_done()
    assert story.ends() == {TASK: "completed", "m1": "completed"}
    assert (story.shown["taskId"], story.shown["status"]) == (story.task_id(), "Processed")


def test_a_task_that_an_ended_request_had_met_is_ended() -> None:
    story = Left()
    story.ask("m1")
    story.world.batch_world.advance(2)
    story.cancel()
    story.until(lambda: "m1" in story.ends())
    story.until_done()
    story.world.save_record(TRAINING, taskId=TASK, status="InProgress")
    story.poll("p2")
    story.world.batch_world.advance(5)
    assert story.world.live_tasks() == []
    assert story.live is None
    assert JOB in {event["job"] for event in story.events("task_created", task=TASK)}
