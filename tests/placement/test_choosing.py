"""Where jobs go, told by messages: what the worker reads for that, and what it does when no pool takes the job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from local.batch import control
from shared.kinds import Kind
from shared.protocol.record import State
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import INFERENCE
from tests.support.trainings import Trainings, at_most_one_each, pool, two_pools

GROWING: dict[str, Any] = {"autoscale": {"max": 4, "interval_seconds": 300}}
QUOTA = "AccountLowPriorityCoreQuotaReached"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def growing() -> Trainings:
    """Two pools that grow from nothing, by themselves."""
    pools = [pool("h100", 0, **GROWING), pool("t4", 0, **GROWING)]
    return Trainings(pools=pools, candidates=("h100", "t4"))


def resize_failed(story: Trainings, name: str, code: str) -> None:
    """The pool's last resize, just now, has ended with this error, and every other one will."""
    control.set_resize_errors(story.world.batch_world, name, [{"code": code}])
    story.world.batch_world.pool(name).allocation_since = story.now()


# --- what is read -------------------------------------------------------------------------------------------------


def test_with_one_candidate_no_pool_is_read() -> None:
    story = Trainings(pools=[pool("h100", 2)])
    story.train("1", "2")
    assert story.operations("list_pools", "list_pool_node_counts", "get_pool", "list_nodes") == []


@pytest.mark.parametrize("candidates", [2, 20])
def test_a_choice_costs_two_calls_at_most_however_many_candidates_there_are(candidates: int) -> None:
    names = [f"p{n}" for n in range(candidates)]
    story = Trainings(pools=[pool(name) for name in names], candidates=tuple(names))
    for model in ("1", "2", "3"):  # a free slot in the preferred pool; in the next one; in the one after that, if any
        before = story.operations("list_pools", "list_pool_node_counts")
        story.train(model)
        calls = story.operations("list_pools", "list_pool_node_counts")[len(before) :]
        assert calls.count("list_pool_node_counts") == 1 and calls.count("list_pools") <= 1
    assert calls.count("list_pools") == 1, "counts alone do not tell what a pool that is not free is like"
    assert story.operations("get_pool", "list_nodes") == []


@pytest.mark.parametrize("broken", [["list_pools"], ["list_pool_node_counts"], ["list_pools", "list_pool_node_counts"]])
@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 400, "code": "InvalidQuery"}])
def test_readings_that_fail_do_not_hold_a_job_back(
    broken: list[str], fault: dict[str, Any], waits: PassingWaits
) -> None:
    story = two_pools()
    for operation in broken:
        story.fault(operation=operation, **fault)
    story.train("1")
    record = story.live_of("1")
    assert (record.state, record.attempt) == (State.PLACED, 1)
    assert record.placement is not None
    if "list_pool_node_counts" in broken:
        assert str(fault["status"]) in " ".join((record.placement.why, *record.placement.rejected))
    assert sum(waits.seconds) <= 60


DENIED = {"status": 403, "code": "AuthorizationFailure"}


@pytest.mark.parametrize("denied", ["list_pool_node_counts", "list_pools"])
def test_no_pool_is_chosen_blindly_while_access_is_denied(denied: str) -> None:
    """The preferred pool is not free: the choice needs both readings."""
    story = two_pools(h100=0, t4=1)
    story.fault(operation=denied, **DENIED)
    with capture_logs() as logs:
        story.train("1")
    record = story.live_of("1")
    assert record.state is State.WAITING and record.reason.startswith("waiting for an operator: ")
    assert "Azure Batch Job Submitter" in record.reason
    assert [line["log_level"] for line in logs if line["event"] == "waits for an operator"] == ["error"]
    assert story.shown_of("1")["note"] == "Waiting for an operator"
    assert story.operations("create_job", "create_task") == []
    story.mend()
    story.until(lambda: story.world.runner.running(), ticks=20)
    assert story.pool_of("1") == "t4"
    assert "operator" not in story.live_of("1").reason


@pytest.mark.parametrize("denied", ["list_pool_node_counts", "list_pools"])
def test_denied_readings_move_no_task_and_are_told(denied: str) -> None:
    """One runs, and one is queued for longer than it is left alone."""
    story = two_pools(h100=1, t4=1)
    story.train("1", "2", "3")
    before = {model: story.live_of(model).placement for model in "123"}
    story.fault(operation=denied, **DENIED)
    with capture_logs() as logs:
        story.wait(timedelta(minutes=30))
        story.tick()
    assert {model: story.live_of(model).placement for model in "123"} == before
    assert {story.live_of(model).state for model in "123"} == {State.PLACED}
    assert [line["log_level"] for line in logs if line["event"] == "waits for an operator"]
    assert story.live_of("3").reason.startswith("waiting for an operator: ")
    assert story.shown_of("1").get("note") is None, "it runs"
    assert story.shown_of("3")["note"] == "Waiting for capacity", "it is in Batch"
    story.mend()
    story.wait(timedelta(hours=1))  # its next turn
    story.tick()
    assert "operator" not in story.live_of("3").reason


# --- tasks of ours that the counts cannot show yet ----------------------------------------------------------------


def test_jobs_that_come_within_a_second_do_not_crowd_into_one_free_slot() -> None:
    story = two_pools(h100=1, t4=1).with_counts_lag(30)
    story.train("1", "2", "3")
    assert [story.pool_of(model) for model in "123"] == ["h100", "t4", "h100"]
    placed = story.live_of("2").placement
    assert placed is not None
    assert placed.rejected == ("h100: its idle nodes (1) are taken by tasks of ours on their way (1)",)


def test_a_task_that_the_counts_show_already_is_not_counted_twice() -> None:
    """No tick has seen it running, but it has been running for a while."""
    story = two_pools(h100=2, t4=1)
    story.train("1")
    story.wait(timedelta(seconds=20))
    story.train("2")
    assert [story.pool_of(model) for model in "12"] == ["h100", "h100"]


def test_a_job_of_another_kind_counts_as_well() -> None:
    story = two_pools(h100=1, t4=1).with_counts_lag(30)
    story.train("1")
    story.world.save_record(INFERENCE, status="Queued", taskId=None)
    story.deliver(story.message("mi", "Queued", INFERENCE), Kind.INFERENCE)
    found = story.world.ledger.read(INFERENCE.key)
    assert found is not None and found.record.placement is not None
    assert found.record.placement.pool_id == "t4"


def test_few_tasks_are_asked_for_however_many_are_on_their_way() -> None:
    story = two_pools(h100=1, t4=1).with_counts_lag(600)
    story.train(*(str(n) for n in range(20)))
    before = len(story.operations("get_task"))
    story.train("30")
    assert 1 <= len(story.operations("get_task")) - before <= 5


# --- no pool takes the job ----------------------------------------------------------------------------------------


def test_with_all_pools_at_their_quota_a_job_waits_and_runs_when_there_is_quota_again() -> None:
    story = growing()
    for name in ("h100", "t4"):
        resize_failed(story, name, QUOTA)
    story.train("1")
    pauses: list[timedelta] = []
    waits = -1
    for _ in range(100):
        record = story.live_of("1")
        assert record.state is State.WAITING
        if record.waits != waits:
            waits = record.waits
            pauses.append(record.not_before - story.now())
            assert "every candidate pool is at its quota" in record.reason
            assert f"h100: is at its quota ({QUOTA})" in record.reason
        for name in ("h100", "t4"):
            resize_failed(story, name, QUOTA)
        story.tick()
    assert len(pauses) >= 5 and pauses == sorted(pauses)
    assert story.shown_of("1")["status"] == "Queued", "never failed"
    assert story.shown_of("1")["note"] == "Waiting for capacity"
    assert story.created() == []
    for name in ("h100", "t4"):
        control.set_resize_errors(story.world.batch_world, name, [])
    story.until(lambda: story.world.runner.running(), ticks=150)
    assert len(story.created()) == 1
    story.end_all()
    story.until(lambda: story.ended("1"))
    at_most_one_each(story)


def test_with_one_pool_at_its_quota_the_other_is_taken_at_once() -> None:
    story = growing()
    resize_failed(story, "h100", QUOTA)
    story.train("1")
    assert story.pool_of("1") == "t4"
    assert story.live_of("1").placement.rejected == (f"h100: is at its quota ({QUOTA})",)  # type: ignore[union-attr]


def test_an_error_of_days_ago_does_not_hold_jobs_back() -> None:
    story = growing()
    resize_failed(story, "h100", "AllocationTimedout")
    story.wait(timedelta(days=3))
    control.set_resize_errors(story.world.batch_world, "h100", [{"code": "AllocationTimedout"}], later=False)
    story.train("1")
    assert story.pool_of("1") == "h100"


def test_an_error_that_nobody_knows_is_spilled_and_told_to_the_log() -> None:
    story = growing()
    resize_failed(story, "h100", "AllocationFailedWithDetails")
    with capture_logs() as logs:
        story.train("1")
    assert story.pool_of("1") == "t4"
    (line,) = [line for line in logs if line["event"].startswith("unknown resize error")]
    assert line["log_level"] == "warning"
    assert "AllocationFailedWithDetails" in line["what"]


def test_a_pool_that_cools_down_for_everybody_is_left_alone_until_its_time() -> None:
    story = two_pools(h100=2, t4=2)
    until = story.now() + timedelta(minutes=30)
    story.worker.notes.update(lambda notes: notes.with_cool_down("h100", until, "found no capacity"))
    story.train("1")
    assert story.pool_of("1") == "t4"
    assert "h100: found no capacity" in story.live_of("1").placement.rejected[0]  # type: ignore[union-attr]
    story.wait(timedelta(minutes=30))
    story.train("2")
    assert story.pool_of("2") == "h100"


def test_the_decision_is_stored_and_logged_with_what_was_rejected_and_why() -> None:
    story = two_pools(h100=0, t4=1)
    with capture_logs() as logs:
        story.train("1")
    (routed,) = [line for line in logs if line["event"] == "routed"]
    placed = story.live_of("1").placement
    assert placed is not None
    assert (routed["chosen"], routed["why"]) == (placed.pool_id, placed.why) == ("t4", "has a free slot")
    assert tuple(routed["rejected"]) == placed.rejected == ("h100: no idle node (0 running, 0 starting, 0 lost)",)
