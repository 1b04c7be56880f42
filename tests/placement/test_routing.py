"""Which pool a job goes to, on one reading of all pools."""

from __future__ import annotations

import pytest

from shared.batch.types import PoolView
from shared.pools.routing import Avoid, PoolReading, route
from tests.support.pool_readings import around, counts, reading, view

BOTH = ("h100", "t4")


def test_the_first_candidate_with_a_free_slot_is_taken() -> None:
    free = reading((counts("h100", idle=1), view("h100", 1)), (counts("t4", idle=5), view("t4", 5)))
    decision = route(BOTH, free, around())
    assert (decision.pool_id, decision.has_free_slot, decision.rejected) == ("h100", True, ())
    assert route(("t4", "h100"), free, around()).pool_id == "t4"


def test_a_busy_pool_is_passed_over_and_the_decision_says_why() -> None:
    decision = route(
        BOTH,
        reading((counts("h100", running=2, lost=1), view("h100", 3)), (counts("t4", idle=1), view("t4", 1))),
        around(),
    )
    assert decision.pool_id == "t4"
    assert decision.why == "has a free slot"
    assert decision.rejected == ("h100: no idle node (2 running, 0 starting, 1 lost)",)


@pytest.mark.parametrize("lost", [{"lost": 4}, {"starting": 4}, {"running": 4}])
def test_nodes_that_cannot_take_a_task_now_are_no_free_slots(lost: dict[str, int]) -> None:
    decision = route(
        BOTH, reading((counts("h100", **lost), view("h100", 4)), (counts("t4", idle=1), view("t4", 1))), around()
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
        ("t4", "h100"),
        reading((counts("t4", running=1), view("t4", 1)), (counts("h100", running=full), h100)),
        around(),
    )
    assert decision.pool_id == ("h100" if grows else "t4")
    assert decision.can_grow is grows
    assert not decision.has_free_slot
    assert not [line for line in decision.rejected if line.startswith(f"{decision.pool_id}: ")]


def test_an_autoscaled_pool_at_zero_is_submitted_to_without_waiting_for_a_node() -> None:
    empty = reading((counts("h100"), view("h100", auto_scales=True)), (counts("t4"), view("t4", auto_scales=True)))
    assert route(BOTH, empty, around()).pool_id == "h100"


def test_a_pool_whose_nodes_are_all_taken_is_submitted_to_as_well() -> None:
    full = reading((counts("h100", running=2), view("h100", 2)), (counts("t4", running=2), view("t4", 2)))
    decision = route(BOTH, full, around())
    assert decision.pool_id == "h100"
    assert "preferred" in decision.why


def test_nodes_that_were_lost_leave_room_to_grow() -> None:
    """Preempted nodes stay listed, but Batch replaces them: what is there is what can work."""
    spot = reading((counts("h100", running=1, lost=1), view("h100", 2)), (counts("t4", running=1), view("t4", 1)))
    assert route(("t4", "h100"), spot, around()).pool_id == "h100"


# --- our own tasks that are on their way ----------------------------------------------------------------------------


def test_tasks_of_ours_that_the_counts_cannot_show_yet_take_slots() -> None:
    free = reading((counts("h100", idle=2), view("h100", 2)), (counts("t4", idle=1), view("t4", 1)))
    assert [route(BOTH, free, around(taken={"h100": n})).pool_id for n in (0, 1, 2, 3)] == ["h100", "h100", "t4", "t4"]
    decision = route(BOTH, free, around(taken={"h100": 2}))
    assert decision.rejected == ("h100: its idle nodes (2) are taken by tasks of ours on their way (2)",)
    assert route(BOTH, free, around(taken={"t4": 9})).pool_id == "h100", "another pool's tasks do not matter"


@pytest.mark.parametrize(("slots", "taken", "pool"), [(1, 1, "t4"), (4, 3, "h100"), (4, 4, "t4")])
def test_a_node_has_as_many_slots_as_its_pool_says(slots: int, taken: int, pool: str) -> None:
    free = reading(
        (counts("h100", idle=1), view("h100", 1, task_slots_per_node=slots)), (counts("t4", idle=1), view("t4", 1))
    )
    assert route(BOTH, free, around(taken={"h100": taken})).pool_id == pool


def test_pools_whose_slots_are_all_taken_are_chosen_by_their_growth() -> None:
    both = reading(
        (counts("h100", idle=1), view("h100", 1)), (counts("t4", idle=1), view("t4", auto_scales=True, current_nodes=1))
    )
    decision = route(BOTH, both, around(taken={"h100": 1, "t4": 1}))
    assert (decision.pool_id, decision.has_free_slot, decision.can_grow) == ("t4", False, True)


# --- requests that need several slots -----------------------------------------------------------------------------


def test_a_request_goes_to_a_pool_whose_nodes_have_enough_slots() -> None:
    mixed = reading(
        (counts("h100", idle=5), view("h100", 5)), (counts("t4", running=1), view("t4", 1, task_slots_per_node=2))
    )
    decision = route(BOTH, mixed, around(required_slots=2))
    assert decision.pool_id == "t4"
    assert "h100: has 1 slots per node, 2 are needed" in decision.rejected


@pytest.mark.parametrize("candidates", [("h100",), BOTH])
def test_a_request_that_fits_no_candidate_never_will(candidates: tuple[str, ...]) -> None:
    one_slot = reading((counts("h100", idle=5), view("h100", 5)), (counts("t4"), view("t4", auto_scales=True)))
    decision = route(candidates, one_slot, around(required_slots=2))
    assert (decision.pool_id, decision.never) == (None, True)
    assert "h100: has 1 slots per node, 2 are needed" in decision.rejected


def test_a_pool_that_may_fit_when_it_is_there_again_is_waited_for() -> None:
    only_t4 = reading((counts("t4", idle=1), view("t4", 1)))
    decision = route(BOTH, only_t4, around(required_slots=2))
    assert (decision.pool_id, decision.never) == (None, False)
    assert not route(BOTH, PoolReading(fault="pools not read (503)"), around(required_slots=2)).never


def test_enough_free_slots_for_one_are_not_enough_for_a_request_of_several() -> None:
    pools = reading(
        (counts("h100", idle=1), view("h100", 1, task_slots_per_node=4)),
        (counts("t4", idle=1), view("t4", 1, task_slots_per_node=4)),
    )
    assert route(BOTH, pools, around(required_slots=2, taken={"h100": 3})).pool_id == "t4"
    assert route(BOTH, pools, around(required_slots=2, taken={"h100": 2})).pool_id == "h100"


# --- pools that cannot take tasks -------------------------------------------------------------------------------


def test_a_pool_of_lost_nodes_comes_last_but_is_not_out() -> None:
    dead = (counts("h100", lost=3), view("h100", 3, auto_scales=True, maximum_nodes=9))
    full = (counts("t4", running=1), view("t4", 1))
    decision = route(BOTH, reading(dead, full), around())
    assert decision.pool_id == "t4", "its node works, and will be free some day"
    assert "h100: has only lost nodes (3)" in decision.rejected
    assert route(("h100", "gone"), reading(dead), around()).pool_id == "h100", "there is no other"


def test_a_pool_that_does_not_exist_or_is_deleted_is_excluded() -> None:
    only_t4 = reading((counts("t4", running=1), view("t4", 1)))
    assert route(BOTH, only_t4, around()).pool_id == "t4"
    assert "h100: does not exist" in route(BOTH, only_t4, around()).rejected
    deleting = reading(
        (counts("h100", idle=1), view("h100", 1, state="deleting")), (counts("t4", running=1), view("t4", 1))
    )
    assert route(BOTH, deleting, around()).pool_id == "t4"
    nothing = route(BOTH, PoolReading({}, {}), around())
    assert nothing.pool_id is None
    assert nothing.rejected == ("h100: does not exist", "t4: does not exist")


# --- readings that failed ---------------------------------------------------------------------------------------


def test_without_pool_settings_the_counts_decide() -> None:
    half = PoolReading({"t4": counts("t4", idle=1)}, None, "pools not read (503)")
    decision = route(BOTH, half, around())
    assert (decision.pool_id, decision.has_free_slot) == ("t4", True)
    assert "pools not read (503)" in decision.rejected[0]


def test_without_counts_the_first_that_can_grow_is_taken() -> None:
    half = PoolReading(None, {"h100": view("h100", 1), "t4": view("t4", auto_scales=True)}, "nodes not counted (503)")
    assert route(BOTH, half, around()).pool_id == "t4"


def test_without_any_reading_the_preferred_pool_is_taken_and_the_decision_says_so() -> None:
    decision = route(BOTH, PoolReading(fault="nodes not counted (503); pools not read (503)"), around())
    assert decision.pool_id == "h100"
    assert "503" in decision.why


def test_one_candidate_needs_no_reading() -> None:
    assert route(("h100",), PoolReading(), around()).pool_id == "h100"


# --- pools to avoid ---------------------------------------------------------------------------------------------

FREE = reading((counts("h100", idle=1), view("h100", 1)), (counts("t4", running=1), view("t4", 1)))


def test_a_pool_to_avoid_is_taken_only_if_there_is_no_other() -> None:
    assert route(BOTH, FREE, around(avoid={"h100": Avoid("lost it")})).pool_id == "t4"
    assert "h100: lost it" in route(BOTH, FREE, around(avoid={"h100": Avoid("lost it")})).rejected
    assert route(BOTH, FREE, around(avoid={"h100": Avoid("lost it"), "t4": Avoid("too")})).pool_id == "h100"
    assert route(("h100",), PoolReading(), around(avoid={"h100": Avoid("lost it")})).pool_id == "h100"


def test_a_pool_that_is_out_for_good_is_never_taken() -> None:
    for_good = Avoid("lost it 3 times", for_good=True)
    assert route(BOTH, FREE, around(avoid={"h100": for_good, "t4": Avoid("cooling down")})).pool_id == "t4"
    assert route(("h100",), PoolReading(), around(avoid={"h100": for_good})).pool_id is None
    assert route(BOTH, FREE, around(avoid={"h100": for_good, "t4": for_good})).rejected == (
        "h100: lost it 3 times",
        "t4: lost it 3 times",
    )
