"""Which pool a job goes to, on one reading of all pools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.batch.types import PoolView
from shared.placement.routing import Avoid, PoolReading, route
from tests.placement.readings import counts, reading, view

BOTH = ("h100", "t4")


def test_the_first_candidate_with_a_free_slot_is_taken() -> None:
    free = reading((counts("h100", idle=1), view("h100", 1)), (counts("t4", idle=5), view("t4", 5)))
    decision = route(BOTH, free, {})
    assert (decision.pool_id, decision.has_free_slot, decision.rejected) == ("h100", True, ())
    assert route(("t4", "h100"), free, {}).pool_id == "t4"


def test_a_busy_pool_is_passed_over_and_the_decision_says_why() -> None:
    decision = route(
        BOTH, reading((counts("h100", running=2, lost=1), view("h100", 3)), (counts("t4", idle=1), view("t4", 1))), {}
    )
    assert decision.pool_id == "t4"
    assert decision.why == "has a free slot"
    assert decision.rejected == ("h100: no idle node (2 running, 0 starting, 1 lost)",)


@pytest.mark.parametrize("lost", [{"lost": 4}, {"starting": 4}, {"running": 4}])
def test_nodes_that_cannot_take_a_task_now_are_no_free_slots(lost: dict[str, int]) -> None:
    decision = route(
        BOTH, reading((counts("h100", **lost), view("h100", 4)), (counts("t4", idle=1), view("t4", 1))), {}
    )
    assert decision.pool_id == "t4"


@pytest.mark.parametrize(
    ("h100", "grows"),
    [
        (view("h100", 0, auto_scales=True), True),
        (view("h100", 0, auto_scales=True, maximum_nodes=4), True),
        (view("h100", 4, auto_scales=True, maximum_nodes=4), False),
        (view("h100", 4, target_nodes=5), True),
        (view("h100", 4), False),
    ],
)
def test_without_a_free_slot_the_first_that_can_grow_is_taken(h100: PoolView, grows: bool) -> None:
    full = h100.current_nodes
    decision = route(
        ("t4", "h100"), reading((counts("t4", running=1), view("t4", 1)), (counts("h100", running=full), h100)), {}
    )
    assert decision.pool_id == ("h100" if grows else "t4")
    assert decision.can_grow is grows
    assert not decision.has_free_slot
    assert not [line for line in decision.rejected if line.startswith(f"{decision.pool_id}: ")]


def test_an_autoscaled_pool_at_zero_is_submitted_to_without_waiting_for_a_node() -> None:
    empty = reading((counts("h100"), view("h100", auto_scales=True)), (counts("t4"), view("t4", auto_scales=True)))
    assert route(BOTH, empty, {}).pool_id == "h100"


def test_a_pool_whose_nodes_are_all_taken_is_submitted_to_as_well() -> None:
    full = reading((counts("h100", running=2), view("h100", 2)), (counts("t4", running=2), view("t4", 2)))
    decision = route(BOTH, full, {})
    assert decision.pool_id == "h100"
    assert "preferred" in decision.why


def test_nodes_that_were_lost_leave_room_to_grow() -> None:
    """Preempted nodes stay listed, but Batch replaces them: what is there is what can work."""
    spot = reading((counts("h100", running=1, lost=1), view("h100", 2)), (counts("t4", running=1), view("t4", 1)))
    assert route(("t4", "h100"), spot, {}).pool_id == "h100"


# --- pools that cannot take tasks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "AllocationTimedout",
        "AllocationTimedOut",
        "AllocationFailed",
        "ResizeStopped",
        "AllocationFailedWithDetails",
        "X",
    ],
)
def test_errors_of_a_resize_that_waiting_mends_or_that_nobody_knows_do_not_exclude_a_pool(code: str) -> None:
    """They stay on the pool until its next resize, for days on one that is parked at 0 nodes."""
    parked = view("h100", auto_scales=True, resize_error_codes=(code,))
    assert (
        route(BOTH, reading((counts("h100"), parked), (counts("t4", running=1), view("t4", 1))), {}).pool_id == "h100"
    )


@pytest.mark.parametrize(
    "code", ["DependentResourceNotFound", "dependentresourcenotfound", "UnsupportedVMSize", "IncompatibleVMSize"]
)
def test_a_pool_that_is_set_up_wrongly_is_excluded(code: str) -> None:
    broken = view("h100", auto_scales=True, resize_error_codes=("ResizeStopped", code))
    decision = route(BOTH, reading((counts("h100"), broken), (counts("t4", running=1), view("t4", 1))), {})
    assert decision.pool_id == "t4"
    assert decision.rejected[0] == f"h100: cannot allocate nodes ({code})"


def test_nodes_that_work_or_a_resize_under_way_speak_against_the_error() -> None:
    error: dict[str, Any] = {"resize_error_codes": ("DependentResourceNotFound",)}
    busy = (counts("t4", running=1), view("t4", 1))
    assert route(BOTH, reading((counts("h100", idle=2), view("h100", 2, **error)), busy), {}).pool_id == "h100"
    resizing = view("h100", auto_scales=True, allocation_state="resizing", **error)
    assert route(BOTH, reading((counts("h100"), resizing), busy), {}).pool_id == "h100"


def test_a_pool_that_does_not_exist_or_is_deleted_is_excluded() -> None:
    only_t4 = reading((counts("t4", running=1), view("t4", 1)))
    assert route(BOTH, only_t4, {}).pool_id == "t4"
    assert "h100: does not exist" in route(BOTH, only_t4, {}).rejected
    deleting = reading(
        (counts("h100", idle=1), view("h100", 1, state="deleting")), (counts("t4", running=1), view("t4", 1))
    )
    assert route(BOTH, deleting, {}).pool_id == "t4"
    nothing = route(BOTH, PoolReading({}, {}), {})
    assert nothing.pool_id is None
    assert nothing.rejected == ("h100: does not exist", "t4: does not exist")


# --- readings that failed ---------------------------------------------------------------------------------------


def test_without_pool_settings_the_counts_decide() -> None:
    half = PoolReading({"t4": counts("t4", idle=1)}, None, "pools not read (503)")
    decision = route(BOTH, half, {})
    assert (decision.pool_id, decision.has_free_slot) == ("t4", True)
    assert "pools not read (503)" in decision.rejected[0]


def test_without_counts_the_first_that_can_grow_is_taken() -> None:
    half = PoolReading(None, {"h100": view("h100", 1), "t4": view("t4", auto_scales=True)}, "nodes not counted (503)")
    assert route(BOTH, half, {}).pool_id == "t4"


def test_without_any_reading_the_preferred_pool_is_taken_and_the_decision_says_so() -> None:
    decision = route(BOTH, PoolReading(fault="nodes not counted (503); pools not read (503)"), {})
    assert decision.pool_id == "h100"
    assert "503" in decision.why


def test_one_candidate_needs_no_reading() -> None:
    assert route(("h100",), PoolReading(), {}).pool_id == "h100"


# --- pools to avoid ---------------------------------------------------------------------------------------------

FREE = reading((counts("h100", idle=1), view("h100", 1)), (counts("t4", running=1), view("t4", 1)))


def test_a_pool_to_avoid_is_taken_only_if_there_is_no_other() -> None:
    assert route(BOTH, FREE, {"h100": Avoid("lost it")}).pool_id == "t4"
    assert "h100: lost it" in route(BOTH, FREE, {"h100": Avoid("lost it")}).rejected
    assert route(BOTH, FREE, {"h100": Avoid("lost it"), "t4": Avoid("too")}).pool_id == "h100"
    assert route(("h100",), PoolReading(), {"h100": Avoid("lost it")}).pool_id == "h100"


def test_a_pool_that_is_out_for_good_is_never_taken() -> None:
    for_good = Avoid("lost it 3 times", for_good=True)
    assert route(BOTH, FREE, {"h100": for_good, "t4": Avoid("cooling down")}).pool_id == "t4"
    assert route(("h100",), PoolReading(), {"h100": for_good}).pool_id is None
    assert route(BOTH, FREE, {"h100": for_good, "t4": for_good}).rejected == (
        "h100: lost it 3 times",
        "t4: lost it 3 times",
    )


_nodes = st.integers(0, 2)
_pool = st.tuples(
    _nodes,
    _nodes,
    _nodes,
    _nodes,
    st.booleans(),
    st.sampled_from([None, 0, 3]),
    st.sampled_from(["active", "deleting"]),
)


@given(
    st.dictionaries(st.sampled_from("abcd"), _pool),
    st.booleans(),
    st.booleans(),
    st.dictionaries(st.sampled_from("abcd"), st.booleans()),
)
def test_whatever_is_read_the_choice_keeps_the_rules(
    pools: dict[str, tuple[int, int, int, int, bool, int | None, str]],
    counted: bool,
    listed: bool,
    avoided: dict[str, bool],
) -> None:
    all_counts = {name: counts(name, *found[:4]) for name, found in pools.items()}
    views = {
        name: view(name, sum(found[:4]), auto_scales=found[4], maximum_nodes=found[5], state=found[6])
        for name, found in pools.items()
    }
    avoid = {name: Avoid("why", for_good) for name, for_good in avoided.items()}
    decision = route("abcd", PoolReading(all_counts if counted else None, views if listed else None), avoid)
    usable = [
        name
        for name in "abcd"
        if not avoided.get(name) and (not listed or (name in views and views[name].state == "active"))
    ]
    if not usable:
        assert decision.pool_id is None
        return
    assert decision.pool_id in usable
    fresh = [name for name in usable if name not in avoided] or usable
    assert decision.pool_id in fresh
    free = [name for name in fresh if counted and name in all_counts and all_counts[name].idle]
    assert decision.has_free_slot is bool(free)
    if free:
        assert decision.pool_id == free[0]
    assert decision.why
    assert {line.partition(":")[0] for line in decision.rejected} <= set("abcd") - {decision.pool_id}
