"""Attempts that lose their node: moved, left to Batch's own re-run, given up; and tasks that will not end."""

from __future__ import annotations

from typing import Any

import pytest

from local.batch import Failure, RunEnd, control
from shared.protocol.record import EndReason, State
from tests.support.batch_calls import body
from tests.support.passing_waits import PassingWaits
from tests.support.story import TWO_POOLS, Story


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def preempt(story: Story, **options: Any) -> None:
    """The running task loses its machine."""
    ((job, task),) = story.world.runner.running()
    control.preempt_task(story.world.batch_world, job, task, **options)


def one_at_a_time(story: Story) -> None:
    """No two of the story's tasks ever ran, or could have run, at the same moment."""
    live: set[str] = set()
    for event in story.events("task_created", "task_completed", "task_deleted"):
        live = live | {event["task"]} if event["event"] == "task_created" else live - {event["task"]}
        assert len(live) <= 1, f"{live} at {event['time']}"


def test_a_lost_run_moves_to_a_pool_with_a_free_slot() -> None:
    story = Story(**TWO_POOLS)
    story.ask()
    assert story.record.placement is not None and story.record.placement.pool_id == "h100"
    story.tick()
    preempt(story)
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    record = story.record
    assert record.placement is not None and record.placement.pool_id == "t4"
    assert [(loss.pool_id, loss.attempt) for loss in record.losses] == [("h100", 1)]
    assert [placed.pool_id for placed in record.earlier] == ["h100"]
    assert any("lost this job" in line for line in record.placement.rejected)
    story.complete()
    story.until_done()
    assert story.shown["taskId"] == story.task_id(2)
    assert story.shown["status"] == "Processed"
    one_at_a_time(story)


def test_a_lost_run_without_another_free_pool_is_left_to_batch() -> None:
    story = Story(**TWO_POOLS)
    control.set_low_priority_available(story.world.batch_world, "t4", 0)
    control.preempt_node(story.world.batch_world, "t4", node=_only_node(story, "t4"))
    story.ask()
    story.tick()
    preempt(story, return_after_seconds=100)
    story.tick()
    story.tick()
    assert story.shown["note"] == "Interrupted after 1 min, waiting to run again"
    assert "no other pool is free" in story.record.reason or "preempted" in story.record.reason
    story.until(lambda: story.world.runner.running())
    assert story.started() == [story.task_id(), story.task_id()], "Batch's own second run of the same task"
    story.tick()
    assert story.record.attempt == 1
    assert story.record.reason.startswith("running since")
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}


def _only_node(story: Story, pool: str) -> str:
    (node,) = [node["id"] for node in control.dump(story.world.batch_world)["nodes"] if node["pool"] == pool]
    return str(node)


def test_a_pool_that_lost_the_job_is_avoided_for_a_while_though_it_is_preferred() -> None:
    story = Story(**TWO_POOLS)
    story.ask()
    story.tick()
    preempt(story, return_after_seconds=40)
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    assert story.record.placement is not None and story.record.placement.pool_id == "t4"
    story.tick()
    preempt(story, return_after_seconds=400)
    story.until(lambda: story.task_id(3) in story.world.live_tasks())
    assert story.record.placement.pool_id == "h100", "both have lost it: the one with a free slot is taken"
    assert [(loss.pool_id, loss.attempt) for loss in story.record.losses] == [("h100", 1), ("t4", 2)]
    one_at_a_time(story)


def test_two_losses_on_the_same_pool_are_counted_by_run() -> None:
    story = Story()
    story.ask()
    for loss in (1, 2):
        story.tick()
        preempt(story, return_after_seconds=5)
        story.tick(1)
        story.until(lambda: story.world.runner.running())
        story.tick()
        assert len(story.record.losses) == loss
    assert {(one.pool_id, one.attempt) for one in story.record.losses} == {("h100", 1)}
    assert story.record.attempt == 1
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}


def test_one_loss_is_counted_once_however_many_ticks_see_it() -> None:
    story = Story(pools=[{"id": "h100", "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None}])
    story.ask()
    story.tick()
    preempt(story)
    for _ in range(5):
        story.tick()
    assert len(story.record.losses) == 1
    assert story.state is State.PLACED


def test_with_every_budget_spent_the_request_fails_and_says_how_often() -> None:
    story = Story(**TWO_POOLS, most_losses=2)
    story.ask()
    for _ in range(40):
        if story.live is None or story.state is State.FINISHING:
            break
        story.tick()
        if story.world.runner.running():
            preempt(story, return_after_seconds=40)
    story.until_done(ticks=20)
    assert story.ends() == {"m1": "failed"}
    assert "h100: 2" in story.shown["sentence"] and "t4: 2" in story.shown["sentence"]
    assert len(story.events("run_lost")) == 4
    one_at_a_time(story)


def test_a_pool_with_its_budget_spent_is_left_for_one_that_can_only_wait() -> None:
    """Three losses on the preferred pool, the other is busy: the attempt is ended and queued there."""
    story = Story(**TWO_POOLS, most_losses=1)
    control.set_low_priority_available(story.world.batch_world, "t4", 0)
    control.preempt_node(story.world.batch_world, "t4", node=_only_node(story, "t4"))
    story.ask()
    story.tick()
    preempt(story)
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    assert story.record.placement is not None and story.record.placement.pool_id == "t4"
    assert story.world.runner.running() == []
    control.set_low_priority_available(story.world.batch_world, "t4", None)
    control.bring_back(story.world.batch_world, "t4", _only_node(story, "t4"))
    story.until(lambda: story.world.runner.running())
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}


@pytest.mark.parametrize("code", ["DiskFull", "ContainerMiscError", "ResourceFileWriteFailed"])
def test_a_failure_of_the_node_is_not_the_programs(code: str) -> None:
    story = Story()
    story.ask()
    story.tick()
    ((job, task),) = story.world.runner.running()
    story.world.runner.finish(job, task, RunEnd(failure=Failure(code, "servererror", "the node's fault")))
    story.until(lambda: story.task_id(2) in story.world.live_tasks())
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}


def test_a_failure_of_the_node_every_time_ends_some_day() -> None:
    story = Story()
    story.ask()
    for _ in range(30):
        for job, task in story.world.runner.running():
            story.world.runner.finish(job, task, RunEnd(failure=Failure("DiskFull", "servererror", "disk full")))
        story.tick()
    assert story.ends() == {"m1": "failed"}


def test_a_pool_that_runs_it_again_at_once_spends_its_budget_as_well() -> None:
    """The node is back before anybody looks: each loss is work lost all the same."""
    story = Story(most_losses=3)
    story.ask()
    for _ in range(20):
        story.tick()
        if story.world.runner.running():
            preempt(story, return_after_seconds=1)
    story.until_done()
    assert story.ends() == {"m1": "failed"}
    assert "h100: 3" in story.shown["sentence"]
    assert 3 <= len(story.events("run_lost")) <= 5
    one_at_a_time(story)


def test_a_cancel_meanwhile_wins_over_the_move() -> None:
    story = Story(**TWO_POOLS)
    story.ask()
    story.tick()
    preempt(story)
    story.tick()
    assert story.record.end_reason is EndReason.MOVE
    story.cancel()
    story.until_done()
    assert story.created() == [story.task_id()]
    assert story.ends()["m1"] == "cancelled"


# --- tasks that stay running --------------------------------------------------------------------------------------


def test_a_task_stuck_in_running_whose_node_comes_back_is_noticed() -> None:
    story = Story(**TWO_POOLS)
    story.ask()
    story.tick()
    preempt(story, stuck=True)
    story.until(lambda: len(story.record.losses) == 1)
    assert story.record.losses[0].pool_id == "h100"


def test_on_the_only_pool_it_is_ended_as_well_although_no_other_is_free() -> None:
    """Batch goes on calling the task running: without an end of ours that would be for ever."""
    story = Story()
    story.ask()
    story.tick()
    preempt(story, stuck=True, return_after_seconds=5)
    story.until(lambda: len(story.record.losses) == 1)
    story.until(lambda: story.state is State.ENDING, ticks=45)
    assert "Batch has called it running" in story.record.reason
    story.until(lambda: story.record.attempt == 2 and story.state is State.PLACED, ticks=60)
    story.tick()
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}
    one_at_a_time(story)


def test_not_before_the_time_of_the_stuck_rule() -> None:
    story = Story()
    story.ask()
    story.tick()
    preempt(story, stuck=True, return_after_seconds=5)
    story.until(lambda: len(story.record.losses) == 1)
    for _ in range(39):  # 20 minutes less one tick
        story.tick()
    assert story.state is State.PLACED
    assert story.events("task_terminated") == []


def remove_nodes(story: Story, pool: str) -> None:
    """The pool shrinks to nothing."""
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    body = b'{"targetLowPriorityNodes": 0, "nodeDeallocationOption": "requeue"}'
    answer = story.world.batch_world.handle(
        "POST", f"/pools/{pool}/resize", {"api-version": "2025-06-01"}, headers, body
    )
    assert answer.status == 202, answer.json()
    story.world.batch_world.advance(10)


@pytest.mark.parametrize("fate", [{"return_after_seconds": None}, {"return_after_seconds": 5}, {"state": "unusable"}])
def test_a_task_that_will_not_end_is_deleted_only_if_its_node_is_seen_lost(fate: dict[str, Any]) -> None:
    """Its node may be listed still, or again: what ran on it is gone."""
    story = Story()
    story.ask()
    story.tick()
    preempt(story, stuck=True, **fate)
    story.cancel()
    story.tick()
    assert story.state is State.ENDING
    story.fault(operation="list_nodes", status=503)
    for _ in range(50):  # 25 minutes: beyond the limit, but nobody can see the node
        story.tick()
    assert story.events("task_deleted") == []
    story.mend()
    story.tick()
    assert [event["task"] for event in story.events("task_deleted")] == [story.task_id()]
    story.until_done()
    assert story.created() == [story.task_id(), story.task_id()], "its id is spent after that"
    assert story.task(story.task_id())["commandLine"] == "/bin/false"
    assert story.ends()["m1"] == "cancelled"


def test_a_task_that_will_not_end_is_found_beside_nodes_that_are_well() -> None:
    story = Story()
    story.ask()
    story.tick()
    story.worker.batch.create_task(story.job_id(), body("somebody-elses"))
    story.world.batch_world.tick()
    node = control.preempt_task(story.world.batch_world, story.job_id(), story.task_id(), stuck=True)
    del story.world.batch_world.pools["h100"].nodes[node]
    story.cancel()
    for _ in range(44):
        story.tick()
    assert [event["task"] for event in story.events("task_deleted")] == [story.task_id()]
    story.until_done()
    assert story.ends()["m1"] == "cancelled"


def test_a_task_that_will_not_end_is_not_deleted_before_the_limit() -> None:
    story = Story()
    story.ask()
    story.tick()
    preempt(story, stuck=True)
    remove_nodes(story, "h100")
    story.cancel()
    for _ in range(38):
        story.tick()
    assert story.events("task_deleted") == []
    assert story.state is State.ENDING
    for _ in range(6):
        story.tick()
    assert len(story.events("task_deleted")) == 1
    story.until_done()
    one_at_a_time(story)
