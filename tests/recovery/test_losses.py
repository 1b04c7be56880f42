"""A run counts as lost on two sources only, the task and its node; what follows from a loss."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.batch.types import NodeView, TaskView
from shared.limits import Policy
from shared.pools import recovery
from shared.pools.recovery import RUNNING_WITHOUT_NODE
from shared.pools.routing import Decision
from shared.protocol import transitions
from shared.protocol.record import EndReason, Loss, NodeRun, Record, State
from shared.protocol.table import Seen
from tests.support.values import at, placement, record

POLICY = Policy(
    most_losses_per_pool=3,
    pool_cool_down=timedelta(minutes=30),
    rerun_grace=timedelta(minutes=5),
    queued_too_long=timedelta(minutes=15),
    max_run=None,
    max_wait=None,
)
RUN = NodeRun("node-1", at(10))
NOW = at(600)


def task(state: str, previous: str | None = None, **fields: Any) -> TaskView:
    """The attempt's task, started on node-1 ten seconds after noon."""
    base: dict[str, Any] = {"started_at": at(10), "node_id": "node-1", "pool_id": "h100"}
    return TaskView("trn-1", state, previous, **(base | fields))


QUEUED_AGAIN = task("active", "running")
RUNNING = task("running")
NO_NODE_INFO = {"started_at": None, "node_id": None}


def nodes(state: str = "running", booted: float = 0, changed: float = 0, name: str = "node-1") -> dict[str, NodeView]:
    return {name: NodeView(name, state, at(booted), at(changed))}


def placed(**fields: Any) -> Record:
    return record(State.PLACED, **({"node_run": RUN} | fields))


LOST = {
    "preempted": nodes("preempted"),
    "unusable": nodes("unusable"),
    "unknown": nodes("unknown"),
    "start task failed": nodes("starttaskfailed"),
    "gone": nodes(name="node-2"),
    "no node at all": {},
    "booted since": nodes("idle", booted=300),
    "booting": nodes("starting", booted=300),
}
WELL = {
    "running": nodes("running"),
    "idle": nodes("idle"),
    "booted before the run": nodes("running", booted=9),
    "booted as the run began": nodes("running", booted=10),
    "offline": nodes("offline"),
    "rebooted never": {"node-1": NodeView("node-1", "running")},
}


@pytest.mark.parametrize("node", LOST.values(), ids=LOST)
@pytest.mark.parametrize("seen", [QUEUED_AGAIN, RUNNING], ids=["queued again", "still called running"])
def test_both_sources_together_make_a_loss(seen: TaskView, node: dict[str, NodeView]) -> None:
    assert recovery.find_loss(placed(), seen, node, NOW)


@pytest.mark.parametrize("node", WELL.values(), ids=WELL)
@pytest.mark.parametrize("seen", [QUEUED_AGAIN, RUNNING], ids=["queued again", "still called running"])
def test_a_node_that_is_well_is_no_source(seen: TaskView, node: dict[str, NodeView]) -> None:
    assert recovery.find_loss(placed(), seen, node, NOW) is None


@pytest.mark.parametrize("seen", [QUEUED_AGAIN, RUNNING])
def test_nodes_that_were_not_read_are_no_source(seen: TaskView) -> None:
    assert recovery.find_loss(placed(), seen, None, NOW) is None


@pytest.mark.parametrize("node", LOST.values(), ids=LOST)
@pytest.mark.parametrize(
    "seen", [task("active"), task("active", "preparing"), task("preparing", "active"), task("completed", "running")]
)
def test_a_task_that_has_not_run_or_has_ended_is_no_source(seen: TaskView, node: dict[str, NodeView]) -> None:
    assert recovery.find_loss(placed(), seen, node, NOW) is None


def test_a_task_never_seen_on_a_node_has_lost_none() -> None:
    seen = task("active", "running", **NO_NODE_INFO)
    assert recovery.find_loss(placed(node_run=None), seen, nodes("preempted"), NOW) is None


def test_what_batch_does_not_tell_any_more_is_remembered() -> None:
    """Whether node and start time stay while a preempted task waits is not documented."""
    seen = task("active", "running", **NO_NODE_INFO)
    assert recovery.find_loss(placed(), seen, nodes("preempted"), NOW)
    assert recovery.find_loss(placed(), seen, nodes("idle", booted=300), NOW)


@pytest.mark.parametrize(
    ("since", "is_lost"),
    [(RUNNING_WITHOUT_NODE, True), (RUNNING_WITHOUT_NODE - timedelta(seconds=1), False), (timedelta(), False)],
)
def test_a_task_is_called_running_for_a_while_after_its_node_was_lost(since: timedelta, is_lost: bool) -> None:
    node = {"node-1": NodeView("node-1", "preempted", at(0), NOW - since)}
    assert bool(recovery.find_loss(placed(), RUNNING, node, NOW)) is is_lost
    assert recovery.find_loss(placed(), QUEUED_AGAIN, node, NOW), "queued again: no need to wait"


@pytest.mark.parametrize(("after", "is_stuck"), [(299, False), (300, True)])
def test_a_task_that_is_called_running_after_its_loss_is_stuck_from_the_limit_on(after: float, is_stuck: bool) -> None:
    """Counted from the latest loss."""
    losses = (Loss("h100", 1, at(2), at(5)), Loss("h100", 1, at(10), at(600)))
    lost = placed(losses=losses)
    limit = timedelta(minutes=5)
    assert recovery.is_stuck_for(limit, lost, RUNNING, at(600 + after)) is is_stuck
    assert not recovery.is_stuck_for(limit, lost, QUEUED_AGAIN, at(600 + after))


def test_a_run_that_has_just_begun_is_not_held_against_an_old_state_of_the_node() -> None:
    seen = task("running", started_at=at(580))
    assert recovery.find_loss(placed(), seen, nodes("preempted", changed=0), at(600)) is None


def test_a_loss_is_noted_once() -> None:
    noted = transitions.with_loss_of(placed(), RUN, NOW)
    assert noted.losses == (Loss("h100", 1, at(10), NOW),)
    assert recovery.is_lost(noted, QUEUED_AGAIN)
    assert recovery.find_loss(noted, QUEUED_AGAIN, nodes("preempted"), at(999)) is None


def test_the_next_run_of_the_same_task_can_be_lost_as_well() -> None:
    noted = transitions.with_loss_of(placed(), RUN, NOW)
    again = task("running", started_at=at(700))
    assert not recovery.is_lost(noted, again)
    assert recovery.find_loss(noted, again, nodes("preempted", changed=800), at(1000))


def test_the_loss_of_an_earlier_attempt_is_not_this_ones() -> None:
    earlier = Loss("h100", 1, at(10), at(20))
    assert not recovery.is_lost(placed(attempt=2, losses=(earlier,)), QUEUED_AGAIN)


# --- what a completed task amounts to ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "exit_code", "is_the_programs"),
    [
        ("FailureExitCode", 1, True),
        ("FailureExitCode", 137, True),
        ("CommandProgramNotFound", None, True),
        ("FileUploadAccessDenied", 0, True),
        ("BlobAccessDenied", None, True),
        ("ContainerInvalidImage", None, True),
        ("Unknown", None, True),
        ("DiskFull", None, False),
        ("ResourceDirectoryCreateFailed", None, False),
        ("ResourceFileCreateFailed", None, False),
        ("ResourceFileWriteFailed", None, False),
        ("ContainerMiscError", None, False),
        ("MaxInternalRetryCountReached", None, False),
        ("TaskEnded", None, False),
    ],
)
def test_whose_failure_it_is(failure: str, exit_code: int | None, is_the_programs: bool) -> None:
    """Whether the preempted run was still fetching its inputs does not matter: it never completes (tested above)."""
    seen = recovery.seen(task("completed", "running", failure_code=failure, exit_code=exit_code), POLICY)
    assert seen is (Seen.ENDED_BY_ITSELF if is_the_programs else Seen.ENDED_OTHERWISE)


def test_the_other_readings() -> None:
    assert recovery.seen(None, POLICY) is Seen.ABSENT
    for state in ("active", "preparing", "running"):
        assert recovery.seen(task(state, failure_code="TaskEnded"), POLICY) is Seen.LIVE
    assert recovery.seen(task("completed", succeeded=True, exit_code=0), POLICY) is Seen.ENDED_WITH_SUCCESS


@pytest.mark.parametrize(
    ("max_run", "started", "ended", "by_itself"),
    [
        (timedelta(hours=1), at(0), at(3600), True),
        (timedelta(hours=1), at(0), at(3597), True),  # the service's clocks are not exact
        (timedelta(hours=1), at(0), at(3500), False),
        (timedelta(hours=1), None, at(3600), False),
        (timedelta(hours=1), at(0), None, False),
        (None, at(0), at(360000), False),
    ],
)
def test_ended_by_its_maximum_run_time_or_by_somebody(
    max_run: timedelta | None, started: datetime | None, ended: datetime | None, by_itself: bool
) -> None:
    """Batch gives the same code for both."""
    seen = task("completed", failure_code="TaskEnded", started_at=started, ended_at=ended)
    policy = replace(POLICY, max_run=max_run)
    assert (recovery.seen(seen, policy) is Seen.ENDED_BY_ITSELF) is by_itself


# --- what to do about a loss ------------------------------------------------------------------------------------

BOTH = ("h100", "t4")
FREE = Decision("t4", "has a free slot", has_free_slot=True)
GROWS = Decision("t4", "can grow", can_grow=True)
FULL = Decision("t4", "preferred")


def lost(h100: int = 0, t4: int = 0, noticed: float = 0, here: str = "h100") -> Record:
    """Losses so far; the latest was noticed so many seconds after noon."""
    losses = [Loss(pool, 1, at(n), at(noticed)) for pool, count in (("h100", h100), ("t4", t4)) for n in range(count)]
    return record(State.PLACED, placement=placement(pool=here), losses=tuple(losses))


@pytest.mark.parametrize(
    ("live", "elsewhere", "seconds", "reason"),
    [
        (lost(1), FREE, 0, EndReason.MOVE),
        (lost(3), FREE, 0, EndReason.MOVE),
        (lost(1), None, 0, None),
        (lost(1), FULL, 0, None),
        (lost(1), FULL, 9999, None),
        (lost(1), GROWS, 0, None),
        (lost(1), GROWS, 299, None),
        (lost(1), GROWS, 300, EndReason.MOVE),
        (lost(1), Decision(None, "none is left"), 9999, None),
        (lost(2), None, 0, None),
        (lost(3), None, 0, EndReason.MOVE),
        (lost(3, 2), None, 0, EndReason.MOVE),
        (lost(3, 3), None, 0, EndReason.GIVE_UP),
        (lost(4, 3), None, 0, EndReason.GIVE_UP),
        (lost(2, 3), None, 0, None),
        (lost(2, 3, here="t4"), None, 0, EndReason.MOVE),
    ],
)
def test_what_follows_from_a_loss(
    live: Record, elsewhere: Decision | None, seconds: float, reason: EndReason | None
) -> None:
    verdict = recovery.judge_lost(live, elsewhere, BOTH, POLICY, at(seconds))
    assert verdict.end_reason is reason
    assert verdict.why


@pytest.mark.parametrize(
    ("elsewhere", "reason"),
    [
        (FREE, EndReason.MOVE),
        (GROWS, EndReason.MOVE),
        (FULL, EndReason.MOVE),
        (Decision(None, "none is left"), None),
        (None, None),
    ],
)
def test_a_pool_that_is_gone_runs_nothing_again(elsewhere: Decision | None, reason: EndReason | None) -> None:
    """So any other candidate is better at once; without one the job waits for its pool."""
    verdict = recovery.judge_lost(lost(1), elsewhere, BOTH, POLICY, at(0), pool_exists=False)
    assert verdict.end_reason is reason
    assert reason is None or "t4" in verdict.why


def test_giving_up_names_the_counts() -> None:
    assert "h100: 3, t4: 4" in recovery.judge_lost(lost(3, 4), None, BOTH, POLICY, at(0)).why
    alone = recovery.judge_lost(lost(3), None, ("h100",), POLICY, at(0))
    assert alone.end_reason is EndReason.GIVE_UP and "h100: 3" in alone.why


def test_losses_on_a_pool_that_is_no_candidate_any_more_do_not_keep_the_job() -> None:
    assert recovery.judge_lost(lost(3), None, ("t4",), POLICY, at(0)).end_reason is EndReason.MOVE


# --- pools to avoid ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "is_avoided"), [(0, True), (1799, True), (1800, False), (9999, False)])
def test_a_pool_cools_down_after_a_loss(seconds: float, is_avoided: bool) -> None:
    avoid = recovery.pools_to_avoid(lost(1), POLICY, at(seconds))
    assert set(avoid) == ({"h100"} if is_avoided else set())
    assert not any(one.for_good for one in avoid.values())


def test_the_cool_down_counts_from_the_latest_loss() -> None:
    losses = (Loss("h100", 1, at(0), at(0)), Loss("h100", 1, at(1000), at(1000)))
    live = record(State.PLACED, losses=losses)
    assert "h100" in recovery.pools_to_avoid(live, POLICY, at(2799))
    assert recovery.pools_to_avoid(live, POLICY, at(2800)) == {}


def test_a_spent_budget_excludes_the_pool_for_good() -> None:
    avoid = recovery.pools_to_avoid(lost(3, 1), POLICY, at(99999))
    assert set(avoid) == {"h100"}
    assert avoid["h100"].for_good
    assert "3 times" in avoid["h100"].why


@given(st.integers(0, 5), st.integers(0, 5), st.sampled_from(BOTH), st.sampled_from([FREE, GROWS, FULL, None]))
def test_an_attempt_is_given_up_only_when_no_candidate_has_budget(
    h100: int, t4: int, here: str, found: Decision | None
) -> None:
    live = lost(h100, t4, here=here)
    elsewhere = found if here == "h100" else None
    verdict = recovery.judge_lost(live, elsewhere, BOTH, POLICY, at(10))
    counts = recovery.losses_by_pool(live)
    if verdict.end_reason is EndReason.GIVE_UP:
        assert all(counts.get(pool, 0) >= 3 for pool in BOTH)
    if counts.get(here, 0) >= 3:
        assert verdict.end_reason is not None, "a pool with its budget spent is left"


# --- a loss that nobody saw -------------------------------------------------------------------------------------


def test_a_run_that_nobody_saw_lost_is_counted_when_the_next_one_is_seen() -> None:
    later = NodeRun("node-1", at(700))
    assert recovery.was_interrupted_unseen(placed(), later)
    assert not recovery.was_interrupted_unseen(placed(), RUN)
    assert not recovery.was_interrupted_unseen(placed(node_run=None), later)
    assert not recovery.was_interrupted_unseen(transitions.with_loss_of(placed(), RUN, NOW), later)
