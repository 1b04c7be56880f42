"""What the errors of a pool's last resize mean: they stay listed until the next one, for days on a parked pool."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.batch.types import PoolCounts, PoolView
from shared.pools.resize_errors import trouble
from shared.pools.routing import Avoid, Decision, PoolReading, route
from tests.support.pool_readings import NOON, around, counts, reading, view

BOTH = ("h100", "t4")
FRESH_FOR = timedelta(minutes=30)
QUOTA = [
    "AccountCoreQuotaReached",
    "AccountVMSeriesCoreQuotaReached",
    "AccountLowPriorityCoreQuotaReached",
    "AccountSpotCoreQuotaReached",
]
CAPACITY = ["AllocationFailed", "AllocationTimedout", "OverconstrainedAllocationRequestError"]
PERMANENT = [
    "UnsupportedVMSize",
    "IncompatibleVMSize",
    "DependentResourceNotFound",
    "FailedIdentityOperation",
    "DiskEncryptionFailure",
    "CommunicationEnabledPoolReachedMaxVMCount",
    "ResourceDisallowedByPolicy",
]
UNKNOWN = ["AllocationFailedWithDetails", "ZoneResourcePoolExhaustedWithDetails", "X", ""]
HARMLESS = ["ResizeStopped", "RemoveNodesFailed"]


def failed(pool: str, *codes: str, minutes_ago: float = 1, nodes: int = 0, **fields: Any) -> PoolView:
    """An autoscaled pool whose last resize has left these errors."""
    base: dict[str, Any] = {
        "auto_scales": True,
        "resize_error_codes": codes,
        "allocation_changed_at": NOON - timedelta(minutes=minutes_ago),
    }
    return view(pool, nodes, **(base | fields))


FULL_T4 = (counts("t4", running=1), view("t4", 1))
GROWING_T4 = (counts("t4"), view("t4", auto_scales=True))


def beside(other: tuple[PoolCounts, PoolView], h100: PoolView, **nodes: int) -> Decision:
    """Where a job goes that prefers h100."""
    return route(BOTH, reading((counts("h100", **nodes), h100), other), around(fresh_for=FRESH_FOR))


# --- kinds of errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelled", [str, str.lower, str.upper])
@pytest.mark.parametrize("code", QUOTA + CAPACITY + UNKNOWN)
def test_a_fresh_error_spills_the_job_to_the_next_pool(code: str, spelled: Any) -> None:
    """Also a code that nobody knows: it is taken for passing lack of capacity, and told to the log."""
    decision = beside(GROWING_T4, failed("h100", spelled(code)))
    assert (decision.pool_id, decision.can_grow) == ("t4", True)
    (line,) = decision.rejected
    assert line.startswith("h100: ") and f"({spelled(code)})" in line
    assert ("quota" in line) is (code in QUOTA)
    assert bool(decision.warnings) is (code in UNKNOWN)
    if code in UNKNOWN:
        assert decision.warnings == (f"h100: found no capacity ({spelled(code)})",)


@pytest.mark.parametrize("code", QUOTA + CAPACITY + UNKNOWN)
def test_an_old_error_of_a_parked_pool_does_not_hold_it_back(code: str) -> None:
    for minutes in (30, 31, 3 * 24 * 60):
        decision = beside(GROWING_T4, failed("h100", code, minutes_ago=minutes))
        assert (decision.pool_id, decision.can_grow, decision.warnings) == ("h100", True, ())
    assert beside(GROWING_T4, failed("h100", code, minutes_ago=29.9)).pool_id == "t4"


@pytest.mark.parametrize("code", QUOTA + CAPACITY)
def test_a_fixed_pool_that_got_fewer_nodes_than_it_wants_does_not_grow_by_itself(code: str) -> None:
    """Batch does not repeat the resize, however long ago it was; while one goes on, there may be nodes soon."""
    gave_up = failed("h100", code, minutes_ago=300, auto_scales=False, target_nodes=1)
    assert beside(GROWING_T4, gave_up).pool_id == "t4"
    assert beside(GROWING_T4, replace(gave_up, allocation_state="resizing")).pool_id == "h100"
    assert beside(FULL_T4, gave_up).pool_id == "h100", "nothing else grows either"


@pytest.mark.parametrize("code", HARMLESS)
def test_an_error_that_says_nothing_about_capacity_is_none(code: str) -> None:
    assert beside(GROWING_T4, failed("h100", code)).pool_id == "h100"


@pytest.mark.parametrize("minutes", [1, 3 * 24 * 60])
@pytest.mark.parametrize("spelled", [str, str.lower])
@pytest.mark.parametrize("code", PERMANENT)
def test_a_pool_that_is_set_up_wrongly_is_out_however_old_the_error_is(code: str, spelled: Any, minutes: float) -> None:
    decision = beside(FULL_T4, failed("h100", "ResizeStopped", spelled(code), minutes_ago=minutes))
    assert decision.pool_id == "t4"
    assert decision.rejected[0] == f"h100: cannot allocate nodes ({spelled(code)})"


def test_with_every_pool_set_up_wrongly_the_job_waits_and_says_why() -> None:
    broken = reading(*((counts(pool), failed(pool, "UnsupportedVMSize")) for pool in BOTH))
    decision = route(BOTH, broken, around())
    assert (decision.pool_id, decision.never) == (None, False)
    assert decision.rejected == tuple(f"{pool}: cannot allocate nodes (UnsupportedVMSize)" for pool in BOTH)


def test_the_gravest_error_counts() -> None:
    found = trouble(failed("h100", "AllocationFailed", "AccountCoreQuotaReached"), NOON, FRESH_FOR)
    assert found is not None and found.is_quota and not found.is_permanent
    found = trouble(failed("h100", "AccountCoreQuotaReached", "UnsupportedVMSize"), NOON, FRESH_FOR)
    assert found is not None and found.is_permanent and not found.is_quota
    found = trouble(failed("h100", "NobodyKnows", "AllocationFailed"), NOON, FRESH_FOR)
    assert found is not None and not found.is_unknown, "one of them is known"


@pytest.mark.parametrize("state", ["resizing", "stopping"])
@pytest.mark.parametrize("code", [QUOTA[0], CAPACITY[0], PERMANENT[0], UNKNOWN[0]])
def test_while_the_pool_is_resized_its_errors_are_of_the_past(code: str, state: str) -> None:
    assert beside(GROWING_T4, failed("h100", code, allocation_state=state)).pool_id == "h100"


def test_an_error_whose_age_nobody_knows_is_taken_for_fresh() -> None:
    assert beside(GROWING_T4, failed("h100", "AllocationFailed", allocation_changed_at=None)).pool_id == "t4"


# --- nodes that work speak against an error -----------------------------------------------------------------------


@pytest.mark.parametrize("code", QUOTA + CAPACITY + UNKNOWN + PERMANENT)
def test_a_free_slot_is_taken_whatever_the_last_resize_has_left(code: str) -> None:
    """A pool of spot nodes only, for one: two of them are there although it wanted three."""
    decision = beside(GROWING_T4, failed("h100", code, nodes=2), idle=2)
    assert (decision.pool_id, decision.has_free_slot) == ("h100", True)


def test_a_pool_with_nodes_at_work_takes_tasks_though_it_gets_no_more_of_them() -> None:
    working = failed("h100", "DependentResourceNotFound", nodes=2)
    alone = route(("h100", "gone"), reading((counts("h100", running=2), working)), around())
    assert alone.pool_id == "h100"
    assert beside(GROWING_T4, working, running=2).pool_id == "t4", "the other can grow"
    assert beside(FULL_T4, working, running=2).pool_id == "t4"


@pytest.mark.parametrize(
    ("nodes", "taken", "pool"),
    [({"running": 1}, 0, "h100"), ({"idle": 1}, 1, "h100"), ({}, 0, None), ({"starting": 1}, 0, None)],
)
def test_one_node_at_work_is_enough(nodes: dict[str, int], taken: int, pool: str | None) -> None:
    broken = failed("h100", "DependentResourceNotFound", nodes=1)
    decision = route(("h100", "gone"), reading((counts("h100", **nodes), broken)), around(taken={"h100": taken}))
    assert decision.pool_id == pool


@pytest.mark.parametrize(("nodes", "pool"), [(2, "h100"), (1, "h100"), (0, None)])
def test_without_counts_the_pools_own_number_of_nodes_tells(nodes: int, pool: str | None) -> None:
    uncounted = PoolReading(None, {"h100": failed("h100", "DependentResourceNotFound", nodes=nodes)}, "503")
    assert route(("h100", "gone"), uncounted, around()).pool_id == pool


# --- quota --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", QUOTA)
def test_with_every_pool_at_its_quota_the_job_waits(code: str) -> None:
    decision = route(BOTH, reading(*((counts(pool), failed(pool, code)) for pool in BOTH)), around())
    assert (decision.pool_id, decision.never) == (None, False)
    assert "quota" in decision.why
    assert decision.rejected == tuple(f"{pool}: is at its quota ({code})" for pool in BOTH)


def test_quota_here_and_no_capacity_there_is_left_to_batch() -> None:
    mixed = reading(
        (counts("h100"), failed("h100", QUOTA[0])),
        (counts("t4"), failed("t4", "AllocationFailed")),
    )
    decision = route(BOTH, mixed, around())
    assert decision.pool_id == "h100"
    assert "is at its quota (AccountCoreQuotaReached)" in decision.why, "its own trouble is told as well"
    assert "t4: found no capacity (AllocationFailed)" in decision.rejected


def test_a_pool_that_is_busy_is_better_than_one_at_its_quota() -> None:
    decision = beside(FULL_T4, failed("h100", QUOTA[0]))
    assert decision.pool_id == "t4"
    assert "h100: is at its quota (AccountCoreQuotaReached)" in decision.rejected


def test_a_pool_that_cools_down_is_better_than_waiting_for_quota() -> None:
    free = reading((counts("h100"), failed("h100", QUOTA[0])), (counts("t4", idle=1), view("t4", 1)))
    decision = route(BOTH, free, around(avoid={"t4": Avoid("lost this job")}))
    assert (decision.pool_id, decision.has_free_slot) == ("t4", True)
    for_good = route(BOTH, free, around(avoid={"t4": Avoid("lost this job 3 times", for_good=True)}))
    assert for_good.pool_id is None
    assert "t4: lost this job 3 times" in for_good.rejected
    every_one = reading(*((counts(pool), failed(pool, QUOTA[0])) for pool in BOTH))
    assert route(BOTH, every_one, around(avoid={"t4": Avoid("lost this job")})).pool_id is None


@given(
    st.lists(st.sampled_from([*QUOTA, *CAPACITY, *UNKNOWN, *PERMANENT, *HARMLESS]), max_size=4),
    st.sampled_from(["steady", "resizing", "stopping"]),
    st.one_of(st.none(), st.integers(0, 100)),
)
def test_any_errors_have_one_meaning(codes: list[str], state: str, minutes: int | None) -> None:
    changed = None if minutes is None else NOON - timedelta(minutes=minutes)
    found = trouble(failed("h100", *codes, allocation_state=state, allocation_changed_at=changed), NOON, FRESH_FOR)
    same = trouble(
        failed("h100", *reversed([code.swapcase() for code in codes]), allocation_state=state,
               allocation_changed_at=changed), NOON, FRESH_FOR,
    )  # fmt: skip
    kinds = [(one.is_quota, one.is_permanent, one.is_unknown) for one in (found, same) if one is not None]
    assert len(set(kinds)) == min(len(kinds), 1) and len(kinds) in (0, 2), "neither order nor case matters"
    if state != "steady" or set(codes) <= set(HARMLESS):
        assert found is None
    elif set(codes) & set(PERMANENT):
        assert found is not None and found.is_permanent
    elif minutes is not None and minutes >= 30:
        assert found is None
    else:
        assert found is not None and found.is_quota is bool(set(codes) & set(QUOTA))
