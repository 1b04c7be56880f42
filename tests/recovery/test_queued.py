"""Tasks that wait for a node: how long is too long, and when their credentials would not last."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.batch.types import TaskView
from shared.pools import recovery
from shared.pools.routing import Decision
from shared.protocol.record import EndReason, Loss, Placement, Record, State
from shared.settings.lifetimes import MARGIN, sas_expiry
from tests.recovery.test_losses import FREE, FULL, GROWS, POLICY
from tests.support.values import NOON, at, placement, record

NOWHERE = Decision(None, "every candidate pool is at its quota")
FIFTEEN = 15 * 60


def queued(since: float | None, state: str = "active") -> TaskView:
    """A task whose state has last changed so many seconds after noon."""
    return TaskView("trn-1", state, state_changed_at=None if since is None else at(since))


def placed(seconds: float) -> Record:
    """A record whose attempt was placed so many seconds after noon."""
    return record(State.PLACED, placement=replace(placement(), at=at(seconds)))


# --- too long -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("placed_at", "since", "now", "too_long"),
    [
        (0, 0, FIFTEEN - 1, False),
        (0, 0, FIFTEEN, True),
        (0, None, FIFTEEN, True),
        (0, 100, FIFTEEN, False),  # queued again after its node was lost
        (0, 100, FIFTEEN + 100, True),
        (100, 0, FIFTEEN, False),  # the clocks of Batch and of the worker differ
    ],
)
def test_a_task_is_queued_too_long_after_a_quarter_of_an_hour(
    placed_at: float, since: float | None, now: float, too_long: bool
) -> None:
    assert recovery.is_queued_too_long(placed(placed_at), queued(since), POLICY, at(now)) is too_long


@pytest.mark.parametrize("state", ["preparing", "running"])
def test_a_task_on_a_node_is_not_queued(state: str) -> None:
    assert not recovery.is_queued_too_long(placed(0), queued(0, state), POLICY, at(99999))


@pytest.mark.parametrize(
    ("elsewhere", "pool_exists", "reason"),
    [
        (FREE, True, EndReason.MOVE),
        (GROWS, True, None),
        (FULL, True, None),
        (NOWHERE, True, None),
        (None, True, None),
        (FREE, False, EndReason.MOVE),
        (GROWS, False, EndReason.MOVE),
        (FULL, False, EndReason.MOVE),
        (NOWHERE, False, None),
        (None, False, None),
    ],
)
def test_what_becomes_of_a_task_that_is_queued_too_long(
    elsewhere: Decision | None, pool_exists: bool, reason: EndReason | None
) -> None:
    """A queue that stands is left for a free slot only; a pool that is gone for any other."""
    verdict = recovery.judge_queued(placed(0), elsewhere, pool_exists=pool_exists)
    assert verdict.end_reason is reason
    assert "h100" in verdict.why
    if reason is not None:
        assert elsewhere is not None and elsewhere.pool_id is not None and elsewhere.pool_id in verdict.why
    if not pool_exists and reason is None:
        assert "does not exist" in verdict.why


# --- credentials ----------------------------------------------------------------------------------------------------

WAIT = timedelta(hours=24)
LIMITED = replace(POLICY, max_wait=WAIT, max_run=timedelta(hours=48))


@pytest.mark.parametrize(
    ("waited", "run_out"),
    [
        (timedelta(), False),
        (WAIT - timedelta(seconds=1), False),
        (WAIT, True),
        (WAIT + timedelta(days=3), True),
    ],
)
@pytest.mark.parametrize("previous", [None, "preparing", "running"])
def test_a_task_is_replaced_when_its_wait_is_used_up(waited: timedelta, run_out: bool, previous: str | None) -> None:
    """However it came to be queued: one that is queued again after a loss starts from the beginning as well."""
    task = TaskView("trn-1", "active", previous, state_changed_at=NOON)
    assert recovery.credentials_run_out(placed(0), task, LIMITED, NOON + waited) is run_out


@pytest.mark.parametrize("state", ["preparing", "running", "completed"])
def test_a_task_that_has_begun_is_left_alone(state: str) -> None:
    assert not recovery.credentials_run_out(placed(0), queued(0, state), LIMITED, NOON + timedelta(days=9))


def test_where_no_credentials_are_in_the_task_none_run_out() -> None:
    assert not recovery.credentials_run_out(placed(0), queued(0), POLICY, NOON + timedelta(days=99))


@given(
    wait=st.integers(0, 72).map(lambda hours: timedelta(hours=hours)),
    run=st.integers(1, 72).map(lambda hours: timedelta(hours=hours)),
    added_late=st.integers(0, 3600).map(lambda seconds: timedelta(seconds=seconds)),
    waited=st.integers(0, 4 * 24 * 3600).map(lambda seconds: timedelta(seconds=seconds)),
)
def test_a_task_that_is_left_queued_can_run_its_whole_time_and_upload(
    wait: timedelta, run: timedelta, added_late: timedelta, waited: timedelta
) -> None:
    """Its SAS is made when it is added, after it was placed; what starts now ends before it, with the margin left."""
    policy = replace(POLICY, max_wait=wait, max_run=run)
    now: datetime = NOON + waited
    if recovery.credentials_run_out(placed(0), queued(0), policy, now):
        assert waited >= wait, "not replaced without need"
    else:
        assert now + run + MARGIN <= sas_expiry(NOON + added_late, wait, run)


def test_every_attempt_counts_its_own_wait() -> None:
    second = Placement("h100", "job", "trn-2", NOON + WAIT, "")
    live = record(State.PLACED, attempt=2, placement=second, earlier=(placement(),))
    assert not recovery.credentials_run_out(live, queued(0), LIMITED, NOON + 2 * WAIT - timedelta(seconds=1))
    assert recovery.credentials_run_out(live, queued(0), LIMITED, NOON + 2 * WAIT)


# --- budgets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("losses", "spent"), [(0, False), (2, False), (3, True), (4, True)])
def test_a_budget_is_spent_by_losses_on_the_pool_of_this_attempt(losses: int, spent: bool) -> None:
    many: dict[str, Any] = {pool: tuple(Loss(pool, 1, at(n), at(n)) for n in range(losses)) for pool in ("h100", "t4")}
    assert recovery.budget_is_spent(record(State.PLACED, losses=many["h100"]), POLICY) is spent
    assert recovery.budget_is_spent(record(State.PLACED, losses=many["t4"]), POLICY) is False
