"""What is remembered about pools: cool-downs, nodes that fail every task at once, pools of dead nodes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.batch.types import PoolCounts
from shared.ledger.pool_notes import PoolNotes, QuickFailure
from tests.support.pool_readings import NOON, counts

EMPTY = PoolNotes()


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


# --- cool-downs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "cools"), [(0, True), (1799, True), (1800, False), (9999, False)])
def test_a_pool_cools_down_until_its_time(seconds: float, cools: bool) -> None:
    notes = EMPTY.with_cool_down("h100", NOON + after(1800), "found no capacity")
    avoid = notes.avoid(NOON + after(seconds))
    assert set(avoid) == ({"h100"} if cools else set())
    for one in avoid.values():
        assert one.why == "found no capacity (until 12:30:00)"
        assert not one.for_good


def test_the_latest_cool_down_counts() -> None:
    notes = EMPTY.with_cool_down("h100", NOON + after(1800), "one").with_cool_down("h100", NOON + after(60), "two")
    assert notes.avoid(NOON)["h100"].why.startswith("two")
    assert notes.avoid(NOON + after(61)) == {}


def test_pools_cool_down_on_their_own() -> None:
    notes = EMPTY.with_cool_down("h100", NOON + after(1800), "one").with_cool_down("t4", NOON + after(60), "two")
    assert set(notes.avoid(NOON)) == {"h100", "t4"}
    assert set(notes.avoid(NOON + after(600))) == {"h100"}


# --- nodes that fail every task at once -----------------------------------------------------------------------------


def failing(*failures: tuple[str, str, str, float], pool: str = "h100") -> PoolNotes:
    """Failures as (node, task, request, seconds after noon)."""
    notes = EMPTY
    for node, task, request, seconds in failures:
        notes = notes.with_quick_failure(pool, QuickFailure(node, task, request, NOON + after(seconds)))
    return notes


def test_three_tasks_of_two_requests_make_a_black_hole() -> None:
    two = [("node", "trn-1", "m1", 0.0), ("node", "trn-2", "m2", 8.0)]
    assert not failing(*two).is_black_hole("h100", "node")
    assert failing(*two, ("node", "trn-3", "m1", 9.0)).is_black_hole("h100", "node")


@pytest.mark.parametrize(
    "failures",
    [
        [("node", "trn-1", "m1", 0.0)],
        [("node", f"trn-{n}", "m1", n) for n in range(9)],  # one user's broken program, however often
        [("node", "trn-1", "m1", 0.0)] * 2 + [("node", "trn-2", "m2", 1.0)] * 5,  # the same ones seen again
        [(f"node-{n}", f"trn-{n}", f"m{n}", n) for n in range(9)],  # a different node each time
    ],
    ids=["one", "one request", "seen again", "many nodes"],
)
def test_less_is_no_black_hole(failures: list[tuple[str, str, str, float]]) -> None:
    notes = failing(*failures)
    assert not any(notes.is_black_hole("h100", node) for node, *_ in failures)


def test_another_pools_node_of_the_same_name_is_another_node() -> None:
    three = [("node", f"trn-{n}", f"m{n}", float(n)) for n in range(3)]
    assert not failing(*three, pool="t4").is_black_hole("h100", "node")
    assert failing(*three, pool="t4").is_black_hole("t4", "node")


@pytest.mark.parametrize(("minutes", "is_one"), [(59, True), (60, False), (600, False)])
def test_failures_are_forgotten_after_an_hour(minutes: float, is_one: bool) -> None:
    """Nodes keep their ids when they come back: what was an hour ago is another machine."""
    notes = failing(("node", "trn-1", "m1", 0), ("node", "trn-2", "m2", 0), ("node", "trn-3", "m3", minutes * 60))
    assert notes.is_black_hole("h100", "node") is is_one


def test_a_failure_seen_again_is_not_news() -> None:
    notes = failing(("node", "trn-1", "m1", 0), ("node", "trn-2", "m2", 1))
    again = QuickFailure("node", "trn-1", "m1", NOON)
    assert notes.with_quick_failure("h100", again) is notes, "so that nothing is written"


_failure = st.tuples(
    st.sampled_from(["node-1", "node-2"]), st.integers(0, 5), st.integers(0, 3), st.floats(0, 7200)
).map(lambda one: (one[0], f"trn-{one[1]}-{one[2]}", f"m{one[2]}", one[3]))


@given(st.lists(_failure, max_size=12))
def test_a_black_hole_has_three_tasks_of_two_requests_on_one_node(
    failures: list[tuple[str, str, str, float]],
) -> None:
    notes = failing(*failures)
    for node in ("node-1", "node-2"):
        there = [(task, request) for name, task, request, _ in failures if name == node]
        if notes.is_black_hole("h100", node):
            assert len({task for task, _ in there}) >= 3 and len({request for _, request in there}) >= 2
    kept = notes.pools["h100"].quick_failures if failures else ()
    assert len({one.task_id for one in kept}) == len(kept)
    if failures:
        assert any(one.task_id == failures[-1][1] for one in kept), "the newest is always there"


@given(st.lists(_failure, max_size=8).map(lambda found: sorted(found, key=lambda one: one[3])))
def test_noting_a_failure_twice_is_noting_it_once(failures: list[tuple[str, str, str, float]]) -> None:
    """Whoever loses a write looks again, and notes again."""
    once, twice = failing(*failures), failing(*[one for one in failures for _ in range(2)])
    assert once == twice


# --- pools whose nodes never become usable ---------------------------------------------------------------------------

DEAD = counts("h100", lost=2)
STARTING = counts("h100", starting=2)
PARTLY = counts("h100", starting=1, lost=1)
EMPTY_POOL = counts("h100")
IDLE = counts("h100", idle=1, lost=1)
RUNNING = counts("h100", running=1, lost=1)


def seen(*counted: PoolCounts) -> PoolNotes:
    notes = EMPTY
    for one in counted:
        notes = notes.with_counts(one)
    return notes


def test_three_times_dead_in_a_row_is_never_usable() -> None:
    twice = [STARTING, DEAD, STARTING, DEAD]
    assert not seen(*twice).never_usable("h100")
    assert not seen(*twice, STARTING).never_usable("h100")
    assert seen(*twice, STARTING, DEAD).never_usable("h100")


@pytest.mark.parametrize("between", [PARTLY, EMPTY_POOL, STARTING])
def test_a_new_cycle_begins_when_not_all_nodes_are_dead(between: PoolCounts) -> None:
    assert seen(DEAD, between, DEAD, between, DEAD).never_usable("h100")


def test_a_pool_that_stays_dead_has_died_once() -> None:
    assert not seen(*[DEAD] * 50).never_usable("h100")


@pytest.mark.parametrize("usable", [IDLE, RUNNING])
def test_a_node_that_works_ends_the_row(usable: PoolCounts) -> None:
    assert not seen(DEAD, STARTING, DEAD, STARTING, usable, DEAD, STARTING, DEAD).never_usable("h100")
    assert not seen(DEAD, STARTING, DEAD, STARTING, DEAD, usable).never_usable("h100")


def test_after_it_was_demoted_a_pool_is_counted_anew() -> None:
    notes = seen(DEAD, STARTING, DEAD, STARTING, DEAD)
    notes = notes.with_cool_down("h100", NOON + after(1800), "its nodes never become usable").counting_anew("h100")
    assert not notes.never_usable("h100")
    assert "h100" in notes.avoid(NOON)
    for one in (DEAD, STARTING, DEAD, STARTING, DEAD, STARTING):  # the first DEAD is the one it was demoted for
        notes = notes.with_counts(one)
        assert not notes.never_usable("h100")
    assert notes.with_counts(DEAD).never_usable("h100")


def test_counts_that_tell_nothing_new_leave_the_notes_as_they_are() -> None:
    for counted in (EMPTY_POOL, STARTING, IDLE):
        assert EMPTY.with_counts(counted) is EMPTY
    notes = seen(DEAD)
    assert notes.with_counts(DEAD) is notes


_any_counts = st.builds(PoolCounts, st.just("h100"), *[st.integers(0, 1)] * 4)


@given(st.lists(_any_counts, max_size=15))
def test_a_pool_is_never_usable_only_after_three_deaths_without_a_node_that_worked(counted: list[PoolCounts]) -> None:
    notes, deaths, was_dead = EMPTY, 0, False
    for one in counted:
        notes = notes.with_counts(one)
        is_dead = bool(one.lost) and not (one.idle or one.running or one.starting)
        deaths = 0 if one.idle or one.running else deaths + (is_dead and not was_dead)
        was_dead = is_dead
        assert notes.never_usable("h100") is (deaths >= 3)


# --- what is noted of one thing does not touch the others -------------------------------------------------------------

_change = st.sampled_from(
    [
        lambda notes: notes.with_cool_down("h100", NOON + after(60), "why"),
        lambda notes: notes.with_cool_down("t4", NOON + after(90), "why"),
        lambda notes: notes.with_counts(counts("t4", lost=1)),
        lambda notes: notes.with_quick_failure("h100", QuickFailure("node", "trn-1", "m1", NOON)),
        lambda notes: notes.counting_anew("h100"),
    ]
)


@given(st.lists(_change, max_size=6), st.lists(_change, max_size=6))
def test_notes_of_other_pools_and_kinds_stay(before: list[object], later: list[object]) -> None:
    notes = EMPTY
    for change in before:
        notes = change(notes)  # type: ignore[operator]
    notes = notes.with_cool_down("v100", NOON + after(600), "mine")
    for change in later:
        notes = change(notes)  # type: ignore[operator]
    assert notes.avoid(NOON)["v100"].why.startswith("mine")
