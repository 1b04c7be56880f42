"""The pool list is read only where it can change the choice: counts alone decide for a preferred pool with a slot."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.batch.types import PoolCounts
from shared.pools.routing import Circumstances, PoolReading, route
from tests.support.passing_waits import PassingWaits
from tests.support.pool_readings import view
from tests.support.trainings import Trainings, pool, two_pools
from tests.support.values import NOON

COUNTS, POOLS = "list_pool_node_counts", "list_pools"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def asked_for(story: Trainings, model: str) -> list[str]:
    """What a training's message reads of the pools."""
    before = len(story.operations(COUNTS, POOLS))
    story.train(model)
    return story.operations(COUNTS, POOLS)[before:]


def test_a_free_slot_in_the_preferred_pool_is_seen_in_the_counts_alone() -> None:
    story = two_pools(h100=1, t4=1)
    assert asked_for(story, "1") == [COUNTS]
    assert story.pool_of("1") == "h100"


def test_before_another_pool_is_taken_all_pools_are_read() -> None:
    story = two_pools(h100=0, t4=1)
    assert asked_for(story, "1") == [COUNTS, POOLS]
    assert story.pool_of("1") == "t4"


def test_a_slot_that_a_task_of_ours_will_take_is_not_free() -> None:
    story = two_pools(h100=1, t4=1).with_counts_lag(30)
    story.train("1")
    assert asked_for(story, "2") == [COUNTS, POOLS]
    assert story.pool_of("2") == "t4"


def test_nothing_free_takes_both_readings() -> None:
    story = two_pools(h100=0, t4=0)
    assert asked_for(story, "1") == [COUNTS, POOLS]


def test_while_the_preferred_pool_cools_down_the_next_one_is_taken_by_its_counts() -> None:
    story = two_pools(h100=1, t4=1)
    until = story.now() + timedelta(minutes=30)
    story.worker.notes.update(lambda notes: notes.with_cool_down("h100", until, "found no capacity"))
    assert asked_for(story, "1") == [COUNTS]
    assert story.pool_of("1") == "t4"


def test_more_slots_than_one_per_node_are_seen_by_the_pool_list() -> None:
    """One idle node with two slots: the second task on its way has a slot too."""
    story = Trainings(pools=[pool("h100", 1, taskSlotsPerNode=2), pool("t4", 1)], candidates=("h100", "t4"))
    story.with_counts_lag(30)
    assert asked_for(story, "1") == [COUNTS]
    assert asked_for(story, "2") == [COUNTS, POOLS]
    assert [story.pool_of(model) for model in "12"] == ["h100", "h100"]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4), st.booleans()), min_size=2, max_size=4),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_where_the_counts_decide_the_pool_list_would_not_have_chosen_otherwise(
    found: list[tuple[int, int, int, bool]], taken: list[int]
) -> None:
    names = [f"p{n}" for n in range(len(found))]
    counts = {
        name: PoolCounts(name, idle, running, 0, 0)
        for name, (idle, running, _slots, _grows) in zip(names, found, strict=True)
    }
    views = {
        name: view(name, idle + running, auto_scales=grows, task_slots_per_node=slots)
        for name, (idle, running, slots, grows) in zip(names, found, strict=True)
    }
    around = Circumstances(NOON, taken=dict(zip(names, taken, strict=False)))
    by_counts = route(names, PoolReading(counts), around)
    if by_counts.has_free_slot and by_counts.pool_id == names[0]:
        assert route(names, PoolReading(counts, views), around) == by_counts
