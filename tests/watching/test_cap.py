"""A tenant with a cap on its live tasks: the timer admits its jobs in turn, so that nobody fills a shared pool."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.batch import control
from shared.admission import admitted
from shared.kinds import Entity, Kind
from shared.ledger.port import LiveSummary
from shared.protocol.record import State
from tests.batch.passing_waits import PassingWaits
from tests.protocol.small_world import PROJECT
from tests.protocol.test_adopting import TASK, Left
from tests.recovery.trainings import Trainings, at_most_one_each, pool
from tests.watching.test_order import one

TEN = tuple(str(n) for n in range(1, 11))


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def capped(most: int, nodes: int = 3) -> Trainings:
    story = Trainings(pools=[pool("h100", nodes)])
    return story.with_worker(limits=dataclasses.replace(story.worker.limits, most_live_tasks=most))


def most_at_once(story: Trainings) -> int:
    """How many of the tenant's tasks were in Batch at once, by the account's event log."""
    live: set[str] = set()
    most = 0
    for event in story.events("task_created", "task_completed"):
        if event["event"] == "task_created" and event["job"] != "others":
            live.add(event["task"])
        else:
            live.discard(event["task"])
        most = max(most, len(live))
    return most


def somebody_else_runs_a_task(story: Trainings) -> None:
    story.call("POST", "/jobs", b'{"id": "others", "poolInfo": {"poolId": "h100"}}', status=201)
    story.call("POST", "/jobs/others/tasks", b'{"id": "theirs", "commandLine": "work"}', status=201)


def test_ten_at_once_run_two_by_two_and_another_tenant_starts_before_the_third() -> None:
    story = capped(2)
    story.train(*TEN)
    assert story.created() == [], "only the timer counts"
    assert "WORKER_TENANT_MAX_LIVE_TASKS" in story.live_of("1").reason
    assert story.shown_of("1")["note"] == "Waiting for capacity"
    story.tick()
    assert [story.live_of(model).state for model in TEN] == [State.PLACED] * 2 + [State.WAITING] * 8
    somebody_else_runs_a_task(story)
    assert story.running_in("h100") == 3
    for _ in range(60):
        story.tick()
        story.end_all()
    assert [story.ended(model) for model in TEN] == ["completed"] * 10
    assert most_at_once(story) == 2
    started = [event["task"] for event in story.events("task_started")]
    assert started.index("theirs") == 2
    placed = [event["task"] for event in story.events("task_created") if event["job"] != "others"]
    assert placed == [story.shown_of(model)["taskId"] for model in TEN], "in the order of the requests"
    at_most_one_each(story)


def test_an_attempt_that_is_being_ended_counts_until_its_task_is_completed() -> None:
    story = capped(1)
    story.train("1", "2")
    story.tick()
    story.fault(operation="terminate_task", status=503)
    story.deliver(story.message("c1", "Cancelled", story.live_of("1").entity, modelId="1"))
    for _ in range(5):
        story.tick()
    assert story.live_of("1").state is State.ENDING and story.live_of("2").state is State.WAITING
    story.mend()
    story.until(lambda: story.running_in("h100") == 1 and story.of("1") is None)
    assert most_at_once(story) == 1


def test_one_that_waits_is_cancelled_without_a_turn() -> None:
    story = capped(1)
    story.train("1", "2")
    story.tick()
    story.deliver(story.message("c2", "Cancelled", story.live_of("2").entity, modelId="2"))
    story.until(lambda: story.of("2") is None)
    assert story.ended("2") == "cancelled" and len(story.created()) == 1


def test_one_that_cannot_be_placed_holds_nobody_up() -> None:
    story = capped(1)
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached", times=1)
    story.train("1", "2")
    for _ in range(20):
        story.tick()
        story.end_all()
    assert [story.ended(model) for model in "12"] == ["completed"] * 2
    assert most_at_once(story) == 1


def test_a_task_of_haste_s_own_app_is_taken_over_whatever_the_cap() -> None:
    story = Left()
    story.worker = dataclasses.replace(story.worker, limits=dataclasses.replace(story.worker.limits, most_live_tasks=1))
    other = Entity(Kind.TRAINING, PROJECT, "77")
    story.world.save_record(other, status="Queued", taskId=None)
    story.deliver(story.message("m77", "Queued", other, modelId="77"))
    story.tick()
    story.fault(operation="get_job", status=503)
    story.poll()
    assert story.state is State.WAITING, "the timer has to go on with it"
    story.mend()
    story.until(lambda: story.state is State.PLACED)
    assert story.record.placement is not None and story.record.placement.task_id == TASK
    assert story.live is not None and len(story.created()) == 2


def test_a_job_that_was_lost_takes_its_turn_again() -> None:
    story = Trainings(pools=[pool("h100", 1), pool("t4", 1)], candidates=("h100", "t4"))
    story = story.with_worker(limits=dataclasses.replace(story.worker.limits, most_live_tasks=1))
    story.train("1", "2")
    story.tick()
    control.preempt_node(story.world.batch_world, "h100")
    story.until(lambda: story.pool_of("1") == "t4" and story.running_in("t4") == 1)
    assert story.live_of("1").attempt == 2
    assert most_at_once(story) == 1
    story.end_all()
    story.until(lambda: story.ended("1"))


# --- the decision -----------------------------------------------------------------------------------------------------


def test_people_come_before_trainings_and_the_oldest_first() -> None:
    due = [
        one("t1", -50),
        one("t2", -40),
        one("i1", -30, job_class="interactive"),
        one("i2", -20, job_class="interactive"),
    ]
    running = [
        one("x", -60, state=State.PLACED),
        one("y", -60, state=State.ENDING),
        one("z", -60, state=State.FINISHING),
    ]
    assert admitted(due, [*due, *running], 5) == {"i1", "i2", "t1"}


_records = st.lists(st.tuples(st.sampled_from(list(State)), st.booleans()), max_size=30)


@given(_records, st.integers(1, 10))
def test_never_more_than_the_cap_and_never_a_free_turn_for_nobody(found: list[tuple[State, bool]], most: int) -> None:
    live: list[LiveSummary] = [
        one(f"{n:02}", n - 100, state=state, job_class="training" if training else "interactive")
        for n, (state, training) in enumerate(found)
    ]
    chosen = admitted(live, live, most)
    taken = sum(state in (State.PLACED, State.ENDING) for state, _ in found)
    waiting = sum(state is State.WAITING for state, _ in found)
    assert len(chosen) == min(waiting, max(0, most - taken))


def test_a_waiting_job_costs_no_write_in_a_tick() -> None:
    story = capped(1)
    story.train("1", "2", "3")
    story.tick()
    before = {model: story.world.ledger.read(story.live_of(model).entity.key) for model in "23"}
    story.wait(timedelta(minutes=3))
    story.tick()
    assert {model: story.world.ledger.read(story.live_of(model).entity.key) for model in "23"} == before
