"""Tasks that are queued too long: moved when another pool is free, replaced when their credentials would not last."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from local.batch import control
from local.batch.config import PoolConfig
from local.batch.pool_life import add_configured_pool
from shared.kinds import Kind
from shared.protocol.record import EndReason, State
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import NoCredentials
from tests.support.trainings import Trainings, at_most_one_each, pool, two_pools

QUARTER = timedelta(minutes=15)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def queue_of(waiting: int) -> Trainings:
    """One training runs on h100, so many are queued behind it; t4 has no nodes. They are queued too long."""
    story = two_pools(h100=1, t4=0).with_counts_lag(5)
    story.train(*(str(n) for n in range(waiting + 1)))
    story.tick()
    assert story.running_in("h100") == 1
    assert {story.pool_of(str(n)) for n in range(waiting + 1)} == {"h100"}
    story.wait(QUARTER)
    return story


def moved(story: Trainings) -> list[str]:
    """Models whose request has left its first attempt, or is about to."""
    models = [str(n) for n in range(60) if story.of(str(n)) is not None]
    records = {model: story.live_of(model) for model in models}
    return [
        model
        for model, record in records.items()
        if record.attempt > 1 or record.end_reason is EndReason.MOVE or record.state is State.WAITING
    ]


# --- another pool is free -------------------------------------------------------------------------------------------


def test_a_queued_task_moves_when_another_pool_is_free() -> None:
    story = queue_of(1)
    story.resize("t4", 1)
    story.until(lambda: story.running_in("t4"))
    assert story.pool_of("1") == "t4"
    record = story.live_of("1")
    assert (record.attempt, record.losses) == (2, ()), "no node was lost"
    assert record.placement is not None and record.placement.why == "has a free slot"
    story.end_all()
    story.until(lambda: not story.states())
    assert story.ended("1") == "completed"
    at_most_one_each(story)


def test_before_that_it_keeps_its_place() -> None:
    story = two_pools(h100=1, t4=0)
    story.train("0", "1")
    story.resize("t4", 1)
    for _ in range(28):
        story.tick()
        assert moved(story) == []
    story.until(lambda: story.running_in("t4"), ticks=6)


@pytest.mark.parametrize("free", [1, 2, 3])
def test_no_more_move_than_there_are_free_slots(free: int) -> None:
    """Neither in the tick that sees them, nor in the next ones, while those that moved are on their way."""
    story = queue_of(6)
    story.resize("t4", free)
    for _ in range(6):
        story.tick()
        assert len(moved(story)) <= free, story.states()
    assert story.running_in("t4") == free
    assert len(moved(story)) == free
    assert {story.live_of(model).attempt for model in moved(story)} == {2}


def test_the_oldest_move_first() -> None:
    story = queue_of(4)
    story.resize("t4", 2)
    for _ in range(5):
        story.tick()
    assert moved(story) == ["1", "2"]


def test_when_more_slots_become_free_more_move() -> None:
    story = queue_of(4)
    story.resize("t4", 1)
    for _ in range(5):
        story.tick()
    story.resize("t4", 3)
    story.until(lambda: story.running_in("t4") == 3)
    assert len(moved(story)) == 3
    for _ in range(30):
        story.end_all()
        story.tick()
    assert story.states() == []
    assert [story.ended(str(n)) for n in range(5)] == ["completed"] * 5
    at_most_one_each(story)


def test_slots_that_other_tasks_of_ours_will_take_are_not_free() -> None:
    """Two are queued on t4 already when its only node comes."""
    story = queue_of(2)
    story.worker.notes.update(lambda notes: notes.with_cool_down("h100", story.now() + timedelta(hours=1), "a reason"))
    story.train("10", "11")
    assert story.pool_of("10") == story.pool_of("11") == "t4"
    story.resize("t4", 1)
    for _ in range(4):
        story.tick()
    assert moved(story) == []


@pytest.mark.parametrize("t4", [pool("t4", 1), pool("t4", 0, autoscale={"max": 4, "interval_seconds": 90_000})])
def test_a_pool_that_is_busy_or_could_only_grow_is_no_reason_to_leave_the_queue(t4: dict[str, Any]) -> None:
    story = Trainings(pools=[pool("h100", 1), t4], candidates=("h100", "t4"))
    story.worker.notes.update(lambda notes: notes.with_cool_down("t4", story.now() + timedelta(minutes=1), "a reason"))
    story.train("0")
    story.train("1")
    if t4["targetLowPriorityNodes"]:
        story.world.account.create_job("somebody-elses", "t4", None, None)
        story.world.account.spend_task_id("somebody-elses", "task")
    assert story.pool_of("1") == "h100"
    story.wait(QUARTER)
    for _ in range(4):
        story.tick()
    assert moved(story) == []
    assert story.live_of("1").reason == "queued on h100; no other pool is free"
    assert story.shown_of("1")["note"] == "Waiting for capacity", "nothing was interrupted"


def test_with_one_candidate_it_waits_as_long_as_it_takes() -> None:
    story = Trainings(pools=[pool("h100", 1)])
    story.train("0", "1")
    story.wait(timedelta(days=3))
    story.tick()
    assert moved(story) == []
    story.end_all()
    story.until(lambda: story.ended("0") and story.running_in("h100"))
    assert story.live_of("1").attempt == 1


# --- many lose their nodes at once ---------------------------------------------------------------------------------


def preempt_all(story: Trainings, name: str) -> None:
    for node in list(story.world.batch_world.pool(name).nodes):
        control.preempt_node(story.world.batch_world, name, node)


@pytest.mark.parametrize("free", [1, 2])
def test_of_many_that_lost_their_nodes_no_more_move_than_there_are_free_slots(free: int) -> None:
    """The others have a better chance where they are: Batch may give them a node again."""
    story = two_pools(h100=4, t4=free).with_counts_lag(5)
    story.worker.notes.update(lambda notes: notes.with_cool_down("t4", story.now() + timedelta(seconds=20), "not yet"))
    story.train("0", "1", "2", "3")
    assert story.running_in("h100") == 4
    story.tick()
    preempt_all(story, "h100")
    for _ in range(7):  # no longer than the grace
        story.tick()
        assert len(moved(story)) <= free
    assert story.running_in("t4") == free
    assert [len(story.live_of(model).losses) for model in "0123"] == [1, 1, 1, 1]
    at_most_one_each(story)


def test_one_that_loses_its_node_a_little_later_need_not_wait_for_the_first() -> None:
    story = two_pools(h100=2, t4=2).with_counts_lag(5)
    story.worker.notes.update(lambda notes: notes.with_cool_down("t4", story.now() + timedelta(seconds=20), "not yet"))
    story.train("0", "1")
    story.tick()
    first, second = (story.live_of(model).placement for model in "01")
    assert first is not None and second is not None
    control.preempt_task(story.world.batch_world, first.job_id, first.task_id)
    story.tick()
    assert story.live_of("0").state is State.ENDING
    control.preempt_task(story.world.batch_world, second.job_id, second.task_id)
    story.tick()
    assert moved(story) == ["0", "1"], "there is a slot for each of them"


# --- the pool is gone -----------------------------------------------------------------------------------------------


def test_queued_in_a_pool_that_somebody_deletes_it_goes_to_another_even_a_busy_one() -> None:
    story = two_pools()
    story.train("0", "1", "2")
    assert [story.pool_of(model) for model in "012"] == ["h100", "t4", "h100"]
    story.tick()
    story.call("DELETE", "/pools/h100")
    story.wait(QUARTER)
    story.until(lambda: story.pool_of("2") == "t4")
    assert any("h100: does not exist" in line for line in story.live_of("2").placement.rejected)  # type: ignore[union-attr]
    for _ in range(12):
        story.end_all()
        story.tick()
    assert [story.ended(model) for model in "012"] == ["completed"] * 3
    at_most_one_each(story)


def test_running_in_a_pool_that_somebody_deletes_it_goes_to_another_even_a_busy_one() -> None:
    story = two_pools()
    story.train("0", "1")
    story.tick()
    assert (story.running_in("h100"), story.running_in("t4")) == (1, 1)
    story.call("DELETE", "/pools/h100")
    story.until(lambda: story.pool_of("0") == "t4", ticks=5)
    assert [loss.pool_id for loss in story.live_of("0").losses] == ["h100"]
    story.end_all()
    story.until(lambda: story.ended("1") and story.running_in("t4"))
    story.end_all()
    story.until(lambda: story.ended("0"))
    assert story.ended("0") == "completed"
    at_most_one_each(story)


def test_without_another_candidate_it_waits_for_the_pool_and_says_so() -> None:
    story = Trainings(pools=[pool("h100", 1)])
    story.train("0", "1")
    story.tick()
    story.call("DELETE", "/pools/h100")
    story.wait(QUARTER)
    story.tick()
    assert "pool h100 does not exist" in story.live_of("1").reason
    assert story.live_of("1").attempt == 1
    add_configured_pool(story.world.batch_world, PoolConfig("h100", targetLowPriorityNodes=2))
    story.until(lambda: story.running_in("h100") == 2)
    story.end_all()
    story.until(lambda: story.ended("0") and story.ended("1"))
    at_most_one_each(story)


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 403, "code": "AuthorizationFailure"}])
def test_a_list_of_pools_that_could_not_be_read_does_not_say_that_one_is_gone(fault: dict[str, Any]) -> None:
    story = two_pools()
    story.train("0", "1", "2")
    story.wait(QUARTER)
    story.fault(operation="list_pools", **fault)
    story.fault(operation="list_pool_node_counts", **fault)
    for _ in range(3):
        story.tick()
    assert moved(story) == []
    story.end_all(pool="h100")
    story.until(lambda: story.ended("0"))


# --- credentials that would not last --------------------------------------------------------------------------------


def limited(story: Trainings, wait: timedelta) -> Trainings:
    """Tasks have credentials, whose life allows for so long a wait; each making of them is counted."""
    made: list[NoCredentials] = []

    def transfer(_kind: Kind) -> NoCredentials:
        made.append(NoCredentials())
        return made[-1]

    tasks = dataclasses.replace(story.worker.tasks, transfer=transfer)
    story.with_policy(max_wait=wait, max_run=timedelta(hours=48)).with_worker(tasks=tasks)
    story.transfers = made  # type: ignore[attr-defined]
    return story


def test_a_task_that_has_waited_as_long_as_it_may_is_replaced_by_one_with_fresh_credentials() -> None:
    story = limited(Trainings(pools=[pool("h100", 1)]), timedelta(hours=24))
    story.train("0", "1")
    story.tick()
    story.wait(timedelta(hours=23, minutes=50))
    story.tick()
    assert story.live_of("1").attempt == 1
    before = len(story.transfers)  # type: ignore[attr-defined]
    story.wait(timedelta(minutes=10))
    story.until(lambda: (story.live_of("1").attempt, story.live_of("1").state) == (2, State.PLACED))
    assert len(story.transfers) == before + 1  # type: ignore[attr-defined]
    assert story.pool_of("1") == "h100"
    assert story.live_of("1").losses == (), "it costs nothing of its budget"
    assert story.live_of("0").attempt == 1, "the one that runs is left alone"
    story.end_all()
    story.until(lambda: story.ended("0") and story.running_in("h100"))
    story.end_all()
    story.until(lambda: story.ended("1"))
    assert story.ended("1") == "completed"
    at_most_one_each(story)


def test_a_task_that_waits_to_run_again_is_replaced_as_well() -> None:
    """It would begin from the start, with what is left of its credentials."""
    story = limited(Trainings(pools=[pool("h100", 1)]), timedelta(hours=24))
    story.train("0")
    story.tick()
    control.preempt_task(story.world.batch_world, *story.world.runner.running()[0])
    story.tick()
    assert len(story.live_of("0").losses) == 1
    story.wait(timedelta(hours=24))
    story.until(lambda: story.live_of("0").attempt == 2 and story.live_of("0").state is State.PLACED)
    at_most_one_each(story)


def test_it_is_replaced_again_after_as_long_a_wait() -> None:
    story = limited(Trainings(pools=[pool("h100", 1)]), timedelta(hours=2))
    story.train("0", "1")
    for attempt in (2, 3):
        story.wait(timedelta(hours=2))
        story.until(lambda wanted=attempt: story.live_of("1").attempt == wanted)  # type: ignore[misc]
        story.until(lambda: story.live_of("1").state is State.PLACED)
        placed = story.live_of("1").placement
        assert placed is not None and story.now() - placed.at < timedelta(minutes=2)
    at_most_one_each(story)


def test_without_credentials_in_the_task_it_keeps_its_place_for_weeks() -> None:
    story = Trainings(pools=[pool("h100", 1)])
    story.train("0", "1")
    for _ in range(5):
        story.wait(timedelta(days=1))
        story.tick()
    assert story.live_of("1").attempt == 1


# --- nodes that vanish unnoticed ----------------------------------------------------------------------------------


def vanish(story: Trainings, model: str) -> None:
    """The node of a running task is gone; Batch goes on calling the task running."""
    placed = story.live_of(model).placement
    assert placed is not None
    node = control.preempt_task(story.world.batch_world, placed.job_id, placed.task_id, stuck=True)
    del story.world.batch_world.pool(placed.pool_id).nodes[node]


@pytest.mark.parametrize("ticks_before", [1, 4, 9])
def test_a_task_whose_node_has_vanished_is_found_within_five_minutes(ticks_before: int) -> None:
    """Nothing points to it: the pool has no lost nodes, and another tenant's task runs there."""
    story = two_pools(h100=2, t4=1)
    story.train("0")
    story.world.account.create_job("somebody-elses", "h100", None, None)
    story.world.account.spend_task_id("somebody-elses", "trn-1")
    for _ in range(ticks_before):
        story.tick()
    vanish(story, "0")
    story.until(lambda: story.live_of("0").losses, ticks=11)
    story.until(lambda: story.running_in("t4"), ticks=50)
    assert story.pool_of("0") == "t4", "after its id was spent: Batch never sees the old task end"
    at_most_one_each(story)


def test_nodes_are_listed_for_that_no_more_than_every_five_minutes() -> None:
    story = Trainings(pools=[pool("h100", 2)])
    story.train("0", "1")
    for _ in range(40):  # 20 minutes
        story.tick()
    assert 3 <= len(story.operations("list_nodes")) <= 5
