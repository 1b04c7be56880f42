"""A tenant with a cap on its live tasks: the timer admits its jobs in turn, so that nobody fills a shared pool."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.batch import control
from shared.errors import NeedsOperator
from shared.kinds import Entity, Kind
from shared.ledger.port import Versioned
from shared.pools.placer import Placer, SharedNames
from shared.pools.readings import Readings
from shared.protocol.record import Request, State
from shared.requests.accept import accept
from shared.requests.turns import free_turns, in_turn
from shared.triggers import timer
from tests.support.hastes_task import JOB, TASK, Left
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import PROJECT, TRAINING
from tests.support.trainings import Trainings, at_most_one_each, pool
from tests.support.values import record
from tests.watching.test_cut_short import short_tick
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


def blocked(story: Trainings, *models: str) -> None:
    """Inferences that no pool takes: all of theirs are at their quota, and stay so."""
    for model in models:
        entity = Entity(Kind.INFERENCE, PROJECT, model)
        story.world.save_record(entity, status="Queued", taskId=None)
        story.deliver(story.message(f"i{model}", "Queued", entity, modelId=model), Kind.INFERENCE)


def version_of(story: Trainings, model: str) -> Versioned:
    found = story.world.ledger.read(Entity(Kind.INFERENCE, PROJECT, model).key)
    assert found is not None
    return found


def at_quota(story: Trainings) -> None:
    """Inferences have pools of their own, whose last resize ended at a quota a moment ago."""
    for pool_id in ("gpu1", "gpu2"):
        control.set_resize_errors(story.world.batch_world, pool_id, [{"code": "AccountCoreQuotaReached"}])
        story.world.batch_world.pool(pool_id).allocation_since = story.now()


def with_pools_of_their_own(most: int) -> Trainings:
    story = Trainings(pools=[pool("gpu1", 0), pool("gpu2", 0), pool("cpu", 3)])
    pools = {Kind.TRAINING: ("cpu",), Kind.INFERENCE: ("gpu1", "gpu2")}
    placer = Placer(story.worker.batch, lambda kind: pools.get(kind, ()), SharedNames("tenant"))
    return story.with_worker(placer=placer, limits=dataclasses.replace(story.worker.limits, most_live_tasks=most))


def test_jobs_that_no_pool_takes_leave_their_turn_to_others() -> None:
    """People's work comes first, and there are more of it than turns."""
    story = with_pools_of_their_own(2)
    at_quota(story)
    blocked(story, "90", "91", "92")
    story.train("1", "2", "3")
    for _ in range(4):
        at_quota(story)
        story.tick()
    assert story.running_in("cpu") == 2
    assert "quota" in version_of(story, "90").record.reason
    for _ in range(40):
        at_quota(story)
        story.tick()
        story.end_all()
    assert [story.ended(model) for model in "123"] == ["completed"] * 3
    assert most_at_once(story) <= 2


def test_a_job_that_no_pool_takes_is_not_tried_in_every_run() -> None:
    """It pauses ever longer, although jobs behind it wait for their turn all the time."""
    story = with_pools_of_their_own(1)
    at_quota(story)
    story.train("1")
    story.tick()
    blocked(story, "90", "91")
    for _ in range(90):
        at_quota(story)
        story.tick()
    assert [version_of(story, model).record.waits for model in ("90", "91")] == [1, 1], "no turn is free"
    story.end_all()
    for _ in range(90):
        at_quota(story)
        story.tick()
    assert all(2 < version_of(story, model).record.waits < 15 for model in ("90", "91"))


def test_a_job_that_waits_for_an_operator_leaves_its_turn_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    story = capped(1)
    story.train("1", "2")
    workload = story.worker.workloads[Kind.TRAINING]
    real = workload.check

    def check(entity: Entity) -> None:
        if entity.entity_id == "1":
            raise NeedsOperator("the role is missing")
        real(entity)

    monkeypatch.setattr(workload, "check", check)
    story.tick()
    assert story.live_of("2").state is State.PLACED
    assert "the role is missing" in story.live_of("1").reason


def test_a_job_that_waits_has_its_turn_although_all_runs_are_cut_short() -> None:
    """There is more to look at than a run has time for."""
    story = capped(20, nodes=10)
    story.train("1", "2", "3", "4", "5", "6")
    story.tick()
    story.end_all()
    story.fault(operation="list_tasks", status=503)
    story.train("7")
    for _ in range(6):
        short_tick(story, 3)
    assert story.live_of("7").state is State.PLACED


def test_runs_that_are_always_cut_short_come_to_everybody_that_is_in_batch() -> None:
    """Those that wait for a turn change places among themselves, and nobody else's."""
    story = capped(1)
    story.fault(operation="list_tasks", status=503)
    kinds = {"w2": Kind.INFERENCE}
    for seconds, name in enumerate(("w1", "w2", "p1")):
        request = Request(f"m-{name}", story.now() + timedelta(seconds=seconds))
        state = State.PLACED if name.startswith("p") else State.WAITING
        made = record(state, request=request, not_before=story.now())
        entity = Entity(kinds.get(name, Kind.TRAINING), PROJECT, name)
        story.world.ledger.create(dataclasses.replace(made, entity=entity))
    looked_at: set[str] = set()
    real = story.world.ledger.read_listed
    story.world.ledger.read_listed = lambda summary: looked_at.add(summary.key) or real(summary)  # type: ignore
    for _ in range(6):
        short_tick(story, 1)
    assert looked_at == {Entity(Kind.TRAINING, PROJECT, "p1").key}


def test_a_run_that_is_not_alone_any_more_admits_nobody() -> None:
    story = capped(2)
    story.train("1", "2", "3")
    answers = iter([True, False, False])
    timer.tick(story.worker, Readings(story.worker, by_list=True), lambda: 0.0, lambda: next(answers))
    assert [story.live_of(model).state for model in "123"] == [State.PLACED, State.WAITING, State.WAITING]


def test_a_task_of_haste_s_own_app_is_taken_over_whatever_the_cap() -> None:
    story = Left()
    story.worker = dataclasses.replace(story.worker, limits=dataclasses.replace(story.worker.limits, most_live_tasks=1))
    other = Entity(Kind.TRAINING, PROJECT, "77")
    story.world.save_record(other, status="Queued", taskId=None)
    story.deliver(story.message("m77", "Queued", other, modelId="77"))
    story.tick()
    accept(story.worker, TRAINING, Request(TASK, story.now(), adopted_job_id=JOB))
    assert story.state is State.WAITING, "its handler is dead: the timer has to go on with it"
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
        dataclasses.replace(one("gone", -60), is_unwanted=True),
        dataclasses.replace(one("adopted", -60), is_taken_over=True),
        one("x", -60, state=State.PLACED),
    ]
    assert [found.key for found in in_turn(due)] == ["i1", "i2", "t1", "t2", "gone", "adopted", "x"]
    assert [found.key for found in in_turn(due[::-1])] == ["x", "adopted", "gone", "i1", "i2", "t1", "t2"]


@given(st.lists(st.sampled_from(list(State)), max_size=30), st.integers(1, 10))
def test_what_may_be_in_batch_counts(states: list[State], most: int) -> None:
    live = [one(f"{n:02}", n - 100, state=state) for n, state in enumerate(states)]
    taken = sum(state in (State.PLACED, State.ENDING) for state in states)
    assert free_turns(live, most) == max(0, most - taken)


def test_a_waiting_job_costs_no_write_in_a_tick() -> None:
    story = capped(1)
    story.train("1", "2", "3")
    story.tick()
    before = {model: story.world.ledger.read(story.live_of(model).entity.key) for model in "23"}
    story.wait(timedelta(minutes=3))
    story.tick()
    assert {model: story.world.ledger.read(story.live_of(model).entity.key) for model in "23"} == before
