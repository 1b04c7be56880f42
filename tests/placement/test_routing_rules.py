"""Whatever is read of the pools, a decision keeps the rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.pools.routing import Avoid, Circumstances, PoolReading, route
from tests.support.pool_readings import NOON, around, counts, view

POOLS = "abcd"
CODES = ["AccountCoreQuotaReached", "AllocationFailed", "UnsupportedVMSize", "NobodyKnows", "ResizeStopped"]

_few = st.integers(0, 2)
_counts = st.tuples(_few, _few, _few, _few)
_views: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "state": st.sampled_from(["active", "active", "deleting"]),
        "allocation_state": st.sampled_from(["steady", "steady", "resizing"]),
        "auto_scales": st.booleans(),
        "target_nodes": _few,
        "current_nodes": _few,
        "task_slots_per_node": st.integers(1, 3),
        "maximum_nodes": st.sampled_from([None, 0, 3]),
        "resize_error_codes": st.lists(st.sampled_from(CODES), max_size=2).map(tuple),
        "allocation_changed_at": st.sampled_from([None, NOON, NOON - timedelta(days=3)]),
    }
)


@st.composite
def readings(draw: st.DrawFn) -> PoolReading:
    """Any of the two calls may have failed; any pool may be missing from either."""
    counted = draw(st.one_of(st.none(), st.dictionaries(st.sampled_from(POOLS), _counts)))
    listed = draw(st.one_of(st.none(), st.dictionaries(st.sampled_from(POOLS), _views)))
    return PoolReading(
        None if counted is None else {pool: counts(pool, *nodes) for pool, nodes in counted.items()},
        None if listed is None else {pool: view(pool, **fields) for pool, fields in listed.items()},
        "" if counted is not None and listed is not None else "a call failed",
    )


_avoid = st.dictionaries(st.sampled_from(POOLS), st.booleans().map(lambda for_good: Avoid("a reason", for_good)))
_arounds = st.builds(
    lambda avoid, taken, slots: around(avoid=avoid, taken=taken, required_slots=slots),
    _avoid,
    st.dictionaries(st.sampled_from(POOLS), st.integers(0, 4)),
    st.integers(1, 2),
)
_candidates = st.permutations(list(POOLS)).flatmap(
    lambda order: st.integers(1, len(order)).map(lambda count: tuple(order[:count]))
)


def is_out(pool: str, found: PoolReading) -> bool:
    """Batch says that the pool is not there or is being deleted."""
    return found.pools is not None and (pool not in found.pools or found.pools[pool].state != "active")


def free_slots(pool: str, found: PoolReading, taken: int) -> int:
    nodes = (found.counts or {}).get(pool)
    settings = (found.pools or {}).get(pool)
    return 0 if nodes is None else nodes.idle * (settings.task_slots_per_node if settings else 1) - taken


def is_small(pool: str, found: PoolReading, slots: int) -> bool:
    return found.pools is not None and pool in found.pools and found.pools[pool].task_slots_per_node < slots


@given(_candidates, readings(), _arounds)
def test_a_decision_is_a_candidate_or_none_and_always_says_why(
    candidates: tuple[str, ...], found: PoolReading, circumstances: Circumstances
) -> None:
    decision = route(candidates, found, circumstances)
    assert decision.why
    assert decision.pool_id is None or decision.pool_id in candidates
    named = [line.partition(": ")[0] for line in decision.rejected]
    assert len(named) == len(set(named)) and set(named) <= set(candidates) - {decision.pool_id}
    assert all(line.partition(": ")[2] for line in decision.rejected)
    if decision.pool_id is None:
        assert set(named) == set(candidates), "why not, for each of them"
        assert not decision.has_free_slot and not decision.can_grow
    else:
        assert not decision.never
        before = candidates[: candidates.index(decision.pool_id)]
        assert set(before) <= set(named), "whatever is preferred and not taken was rejected for a reason"


@given(_candidates, readings(), _arounds)
def test_what_must_not_be_taken_is_not(
    candidates: tuple[str, ...], found: PoolReading, circumstances: Circumstances
) -> None:
    pool = route(candidates, found, circumstances).pool_id
    if pool is None:
        return
    assert pool not in circumstances.avoid or not circumstances.avoid[pool].for_good
    if len(candidates) > 1:
        assert not is_out(pool, found)
    assert not is_small(pool, found, circumstances.required_slots)


@given(_candidates.filter(lambda order: len(order) > 1), readings(), _arounds)
def test_the_first_free_slot_in_the_order_of_preference_is_taken(
    candidates: tuple[str, ...], found: PoolReading, circumstances: Circumstances
) -> None:
    usable = [
        pool
        for pool in candidates
        if pool not in circumstances.avoid
        and not is_out(pool, found)
        and not is_small(pool, found, circumstances.required_slots)
    ]
    free = [
        pool
        for pool in usable
        if free_slots(pool, found, circumstances.taken.get(pool, 0)) >= circumstances.required_slots
    ]
    decision = route(candidates, found, circumstances)
    if free:
        assert (decision.pool_id, decision.has_free_slot) == (free[0], True)
    if decision.has_free_slot and decision.pool_id is not None:
        taken = circumstances.taken.get(decision.pool_id, 0)
        assert free_slots(decision.pool_id, found, taken) >= circumstances.required_slots


@given(_candidates.filter(lambda order: len(order) > 1), readings(), _arounds)
def test_a_pool_that_cools_down_is_taken_only_if_no_other_takes_the_job(
    candidates: tuple[str, ...], found: PoolReading, circumstances: Circumstances
) -> None:
    decision = route(candidates, found, circumstances)
    if decision.pool_id is None or decision.pool_id not in circumstances.avoid:
        return
    cool = {pool: Avoid("cools down", for_good=True) for pool in circumstances.avoid}
    without = route(candidates, found, replace(circumstances, avoid=cool))
    assert without.pool_id is None, without


@given(_candidates, readings(), _arounds)
def test_only_what_fits_nowhere_is_refused(
    candidates: tuple[str, ...], found: PoolReading, circumstances: Circumstances
) -> None:
    decision = route(candidates, found, circumstances)
    usable = [pool for pool in candidates if pool not in circumstances.avoid or not circumstances.avoid[pool].for_good]
    assert decision.never is all(is_small(pool, found, circumstances.required_slots) for pool in usable)


@given(_candidates, readings(), _arounds, st.data())
def test_one_more_task_on_its_way_to_another_pool_changes_nothing_here(
    candidates: tuple[str, ...], found: PoolReading, circumstances: Circumstances, data: Any
) -> None:
    decision = route(candidates, found, circumstances)
    behind = [pool for pool in candidates if pool != decision.pool_id] or ["elsewhere"]
    other = data.draw(st.sampled_from(behind))
    more = {**circumstances.taken, other: circumstances.taken.get(other, 0) + 1}
    assert route(candidates, found, replace(circumstances, taken=more)).pool_id == decision.pool_id


@given(readings(), _arounds)
def test_every_reading_is_enough_for_a_single_candidate(found: PoolReading, circumstances: Circumstances) -> None:
    decision = route(("a",), found, circumstances)
    is_refused = "a" in circumstances.avoid and circumstances.avoid["a"].for_good
    assert (decision.pool_id is None) is (is_refused or is_small("a", found, circumstances.required_slots))
