"""In which order a tick looks at records: older requests first, and nobody for ever behind somebody else."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from local.batch import control
from shared.ledger.port import LiveSummary
from shared.protocol.record import State
from shared.requests.turns import in_order
from tests.placement.test_choosing import QUOTA, growing, resize_failed
from tests.support.values import NOON, at

DUE, LATER = -1.0, 600.0


def one(
    key: str,
    asked: float,
    looked_at: float = DUE,
    state: State = State.WAITING,
    *,
    waited: bool = False,
    job_class: str = "training",
) -> LiveSummary:
    """Asked and looked at again so many seconds after noon, which is now."""
    return LiveSummary(key, state, at(looked_at), at(asked), job_class, has_waited=waited)


def keys(*live: LiveSummary) -> list[str]:
    return [summary.key for summary in in_order(live, NOON)]


# --- who is due -------------------------------------------------------------------------------------------------------


def test_what_is_due_comes_in_the_order_of_the_requests() -> None:
    assert keys(one("c", -10), one("a", -30), one("b", -20)) == ["a", "b", "c"]
    assert keys(one("b", -10), one("a", -10)) == ["a", "b"], "ties by key, the same every time"


def test_what_is_not_due_is_left_alone() -> None:
    assert keys(one("a", -30, LATER), one("b", -20, LATER, waited=True), one("c", -10, LATER, State.FINISHING)) == []
    assert keys(one("a", -30, 0.0)) == ["a"], "due at this moment"


def test_what_is_in_batch_is_looked_at_in_every_tick() -> None:
    assert keys(one("a", -30, LATER, State.PLACED), one("b", -20, LATER, State.ENDING)) == ["a", "b"]


# --- older jobs first ------------------------------------------------------------------------------------------------


def test_a_job_that_was_refused_comes_before_a_newer_one_though_its_own_pause_is_longer() -> None:
    assert keys(one("new", -10), one("old", -30, LATER, waited=True)) == ["old", "new"]


def test_a_job_that_is_not_wanted_any_more_takes_no_place_and_makes_nobody_come_early() -> None:
    cancelled = replace(one("cancelled", -10), is_unwanted=True)
    assert keys(cancelled, one("old", -30, LATER, waited=True)) == ["cancelled"]


def test_without_a_newer_one_its_pause_counts() -> None:
    old = one("old", -30, LATER, waited=True)
    assert keys(old) == []
    assert keys(old, one("older", -40)) == ["older"]
    assert keys(old, one("new", -10, LATER)) == []


def test_a_newer_one_that_has_its_place_overtakes_nobody() -> None:
    for state in (State.PLACED, State.ENDING, State.FINISHING):
        assert keys(one("old", -30, LATER, waited=True), one("new", -10, DUE, state)) == ["new"]


def test_one_that_waits_for_something_else_is_not_tried_for_a_newer_ones_sake() -> None:
    """Its handler has just been told, or HASTE's record is not there yet."""
    assert keys(one("old", -30, LATER), one("new", -10)) == ["new"]


def test_the_classes_do_not_wait_for_each_other() -> None:
    old = one("old", -30, LATER, waited=True, job_class="training")
    assert keys(old, one("new", -10, job_class="interactive")) == ["new"]
    both = [old, one("new", -10), one("person", -5, job_class="interactive")]
    assert keys(*both) == ["old", "new", "person"]


def test_the_oldest_of_many_are_tried_and_the_newer_one_is_not_left_out() -> None:
    waiting = [one(f"{n:03}", -1000 + n, LATER, waited=True) for n in range(100)]
    chosen = keys(*reversed(waiting), one("new", -10))
    assert chosen[-1] == "new"
    assert chosen[:-1] == [f"{n:03}" for n in range(20)]


_summaries = st.lists(
    st.builds(
        lambda asked, looked, state, waited, job_class: (asked, looked, state, waited, job_class),
        st.integers(-50, -1),
        st.sampled_from([DUE, LATER]),
        st.sampled_from(list(State)),
        st.booleans(),
        st.sampled_from(["training", "interactive"]),
    ),
    max_size=40,
).map(
    lambda found: [
        one(f"key-{n}", asked, looked, state, waited=waited and state is State.WAITING, job_class=job_class)
        for n, (asked, looked, state, waited, job_class) in enumerate(found)
    ]
)


@given(_summaries)
def test_all_that_is_due_is_there_once_and_in_order(live: list[LiveSummary]) -> None:
    chosen = in_order(live, NOON)
    assert len({summary.key for summary in chosen}) == len(chosen)
    due = {s.key for s in live if s.state in (State.PLACED, State.ENDING) or s.not_before <= NOON}
    assert due <= {summary.key for summary in chosen}
    assert chosen == sorted(chosen, key=lambda summary: (summary.asked, summary.key))
    assert chosen == in_order(reversed(live), NOON), "the order of the list does not matter"


@given(_summaries)
def test_what_is_not_due_is_there_only_before_a_newer_one_of_its_class(live: list[LiveSummary]) -> None:
    chosen = in_order(live, NOON)
    for summary in chosen:
        if summary.state in (State.PLACED, State.ENDING) or summary.not_before <= NOON:
            continue
        assert summary.has_waited
        assert any(
            newer.state is State.WAITING
            and newer.not_before <= NOON
            and newer.asked > summary.asked
            and newer.job_class == summary.job_class
            for newer in chosen
        )


@given(_summaries)
def test_the_other_class_changes_nothing(live: list[LiveSummary]) -> None:
    mine = [summary for summary in live if summary.job_class == "training"]
    assert [s for s in in_order(live, NOON) if s.job_class == "training"] == in_order(mine, NOON)


def test_ten_thousand_records_are_no_trouble() -> None:
    """Half of them wait, half are in Batch: no comparison of each with each."""
    live = [one(f"w{n}", -20_000 + n, LATER, waited=True) for n in range(5_000)]
    live += [one(f"p{n}", -10_000 + n, LATER, State.PLACED) for n in range(5_000)]
    small = [*live[:250], *live[5_000:5_250], one("new", -1)]
    seconds = {}
    for name, some in (("all", [*live, one("new", -1)]), ("a twentieth", small)):
        began = time.process_time()
        for _ in range(3 if name == "all" else 60):
            in_order(some, NOON)
        seconds[name] = time.process_time() - began
    assert seconds["all"] < 10 * seconds["a twentieth"], "the work grows with the records, not with their square"


# --- by messages and ticks ----------------------------------------------------------------------------------------


def test_jobs_that_wait_for_quota_are_placed_in_the_order_in_which_they_were_asked_for() -> None:
    """The oldest has been refused most often, so that its own pause is the longest."""
    story = growing()
    for name in ("h100", "t4"):
        resize_failed(story, name, QUOTA)
    for model in ("1", "2", "3"):
        story.train(model)
        for _ in range(12):
            for name in ("h100", "t4"):
                resize_failed(story, name, QUOTA)
            story.tick()
    assert story.created() == []
    pauses = [story.live_of(model).not_before for model in "123"]
    assert pauses[0] > story.now() + timedelta(minutes=1)
    for name in ("h100", "t4"):
        control.set_resize_errors(story.world.batch_world, name, [])
    story.until(lambda: len(story.created()) == 3, ticks=30)
    placed = [story.live_of(model).placement for model in "123"]
    times = [one.at for one in placed if one is not None]
    assert len(times) == 3 and times == sorted(times)
