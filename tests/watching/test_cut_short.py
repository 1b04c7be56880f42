"""A run of the timer that has no time left: the next one begins where it stopped, so that nobody waits for ever."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.memory import Turn
from shared.pools.readings import Readings
from shared.triggers import timer
from tests.support.passing_waits import PassingWaits
from tests.support.story import Story
from tests.watching.test_order import one
from tests.watching.test_tick import finish_all, run_tick, statuses, trainings


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def short_tick(story: Story, records: int) -> int:
    """A run of the timer that has time for so many records."""
    clock = itertools.chain([0.0] * (records + 1), itertools.repeat(1000.0))
    return timer.tick(story.worker, Readings(story.worker, by_list=True), lambda: next(clock))


def test_runs_that_are_always_cut_short_come_to_everybody_in_turn() -> None:
    """What the oldest need takes all of the time, again and again."""
    story, entities = trainings(6)
    finish_all(story)
    story.fault(operation="list_tasks", status=503)
    looked_at: list[str] = []
    real = story.world.ledger.read_listed
    story.world.ledger.read_listed = lambda summary: looked_at.append(summary.key) or real(summary)  # type: ignore
    for _ in range(6):
        short_tick(story, 2)
    assert sorted(looked_at) == sorted([entity.key for entity in entities] * 2)
    story.mend()
    run_tick(story)
    assert statuses(story, entities) == ["Processed"] * 6


def test_the_record_at_which_a_run_has_stopped_may_be_gone() -> None:
    story, entities = trainings(6)
    finish_all(story)
    short_tick(story, 2)
    assert statuses(story, entities).count("Processed") == 2
    short_tick(story, 2)
    short_tick(story, 2)
    assert statuses(story, entities) == ["Processed"] * 6


_keys = st.lists(st.tuples(st.integers(-9, -1), st.sampled_from("abcdef")), unique=True, max_size=20)


@given(_keys, st.data())
def test_nothing_is_left_out_and_nothing_comes_twice(found: list[tuple[int, str]], data: st.DataObject) -> None:
    live = [one(key, asked) for asked, key in sorted(found)]
    turn = Turn()
    assert turn.ordered(live) == live
    if not live:
        return
    stopped = data.draw(st.sampled_from(live))
    turn.stopped_before(stopped)
    still_there = [summary for summary in live if data.draw(st.booleans())]
    ordered = turn.ordered(still_there)
    assert sorted(ordered, key=still_there.index) == still_there
    later = [summary for summary in still_there if (summary.asked, summary.key) >= (stopped.asked, stopped.key)]
    assert ordered[: len(later)] == later
    turn.stopped_before(None)
    assert turn.ordered(still_there) == still_there
