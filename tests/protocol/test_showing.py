"""Rule 8: which end HASTE's record must show, and over what it may be written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.haste.visibility import as_done, end_to_show, may_show_end, may_show_progress, progress_needs_ends, shows
from shared.haste.workload import Shown
from shared.kinds import Kind
from shared.protocol.outcome import Outcome, Result
from shared.protocol.record import Done, Record, State, task_id, task_ids
from tests.support.values import at, cancelled, ended, in_state, placement, record, request


def mine(n: int = 1) -> str:
    return task_id(Kind.TRAINING, "m1", n)


def finishing(result: Result = Result.COMPLETED, **fields: object) -> Record:
    return record(State.FINISHING, outcome=Outcome(result, "a sentence", at(100)), **fields)


SOMEBODYS = "trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a71"
WORDS = {Result.COMPLETED: "Processed", Result.FAILED: "Failed", Result.CANCELLED: "Cancelled"}

# --- which end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "done", "whose"),
    [
        (None, [], None),
        (None, [cancelled("c", 5)], None),
        (record(State.PLACED), [], None),
        (finishing(), [], "m1"),
        (finishing(), [ended("m0", -5)], "m1"),
        (finishing(), [ended("m2", 5)], "m2"),
        (finishing(Result.SUPERSEDED), [ended("m0", -5)], "m0"),
        (finishing(Result.SUPERSEDED), [], None),
        (None, [ended("m0", -5), ended("m1", 0, Result.SUPERSEDED)], "m0"),
        (record(State.PLACED), [ended("m0", -5), ended("m00", -9)], "m0"),
        (finishing(), [ended("m0", 0)], "m1"),
        (finishing(), [ended("m2", 0)], "m2"),
    ],
)
def test_the_newest_request_with_an_end_is_shown(live: Record | None, done: list[Done], whose: str | None) -> None:
    end = end_to_show(live, done)
    assert (end.request_id if end else None) == whose
    if end:
        assert end.is_mine == (live is not None and whose == "m1")


def test_task_ids_that_are_not_newer_are_known() -> None:
    live = finishing(request=request(held_task_ids=("held",)), attempt=3)
    done = [ended("m0", -5, attempts=2), ended("m9", 9, Result.SUPERSEDED), cancelled("c", 1)]
    end = end_to_show(live, done)
    assert end is not None
    assert end.own_task_ids == task_ids(Kind.TRAINING, "m1", 3)
    assert end.known_task_ids == {*end.own_task_ids, "held", *task_ids(Kind.TRAINING, "m0", 2)}


def test_an_end_of_another_request_knows_the_live_ones_tasks_only_if_they_are_older() -> None:
    newer = end_to_show(record(State.PLACED, attempt=2), [ended("m2", 5)])
    older = end_to_show(record(State.PLACED, attempt=2), [ended("m0", -5)])
    assert newer is not None and older is not None
    assert set(task_ids(Kind.TRAINING, "m1", 2)) <= newer.known_task_ids
    assert not set(task_ids(Kind.TRAINING, "m1", 2)) & older.known_task_ids


# --- over what --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", WORDS)
@pytest.mark.parametrize(
    ("shown", "may"),
    [
        (Shown("Queued", None), True),
        (Shown("InProgress", mine(), "InProgress"), True),
        (Shown("InProgress", mine(2), "InProgress"), True),
        (Shown("Queued", "held", None), True),
        (Shown("Processed", task_id(Kind.TRAINING, "m0", 1), "Processed"), True),
        (Shown("InProgress", SOMEBODYS, "InProgress"), False),
        (Shown("Cancelled", SOMEBODYS, "Cancelled"), False),
        (Shown("Queued", mine(3), None), False),  # an attempt that this request never had
    ],
)
def test_my_end_is_shown_unless_a_newer_run_stands_there(result: Result, shown: Shown, may: bool) -> None:
    live = finishing(result, attempt=2, request=request(held_task_ids=("held",)))
    end = end_to_show(live, [ended("m0", -5)])
    assert end is not None
    assert may_show_end(end, shown) is may


@pytest.mark.parametrize("result", WORDS)
def test_an_end_that_is_shown_is_not_written_again(result: Result) -> None:
    end = end_to_show(finishing(result), [])
    assert end is not None
    word = WORDS[result]
    assert shows(end, Shown(word, mine(), word))
    assert not may_show_end(end, Shown(word, mine(), word))
    assert may_show_end(end, Shown("Queued", mine(), word)), "a late save put the old status back"
    assert may_show_end(end, Shown(word, mine(), "InProgress")), "the API's word alone does not show the end"
    assert may_show_end(end, Shown(word, None, word))


@pytest.mark.parametrize("live", [None, record(State.PLACED), record(State.WAITING)])
@pytest.mark.parametrize(
    ("shown", "may"),
    [
        (Shown("Cancelled", task_id(Kind.TRAINING, "m0", 1), "Processed"), True),
        (Shown("Cancelled", None), True),
        (Shown("Queued", task_id(Kind.TRAINING, "m0", 1), "Processed"), False),
        (Shown("InProgress", task_id(Kind.TRAINING, "m0", 1), "InProgress"), False),
        (Shown("Queued", None), False),
        (Shown("Cancelled", SOMEBODYS, "InProgress"), False),
    ],
)
def test_the_end_of_another_request_is_shown_over_cancelled_only(live: Record | None, shown: Shown, may: bool) -> None:
    end = end_to_show(live, [ended("m0", -5)])
    assert end is not None
    assert may_show_end(end, shown) is may


@pytest.mark.parametrize("result", WORDS)
@pytest.mark.parametrize(
    ("shown", "may"),
    [
        (Shown("Queued", None), False),
        (Shown(None, None), False),
        (Shown("Cancelled", None), False),
        (Shown("Queued", "held"), False),
        (Shown("InProgress", SOMEBODYS, "InProgress"), False),
        (Shown("InProgress", mine(), "InProgress"), True),
        (Shown("Queued", mine(2), "InProgress"), True),
    ],
)
def test_an_end_whose_record_was_deleted_is_shown_in_that_very_record_only(
    result: Result, shown: Shown, may: bool
) -> None:
    live = finishing(result, attempt=2, request=request(held_task_ids=("held",)), haste_record_gone=True)
    for end in (end_to_show(live, []), end_to_show(None, [as_done(live)])):
        assert end is not None
        assert may_show_end(end, shown) is (may and end.is_mine)


# --- progress ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "may"),
    [
        (Shown("Queued", None), True),
        (Shown("Queued", "held"), True),
        (Shown("Processed", "held", "Processed"), True),
        (Shown("Failed", task_id(Kind.TRAINING, "m0", 1), "Failed"), True),
        (Shown("InProgress", mine(), "InProgress"), True),
        (Shown("Queued", mine(), "InProgress"), True),
        (Shown("InProgress", mine(2), "InProgress"), True),
        (Shown("Processed", mine(2), "Processed"), False),
        (Shown("Failed", mine(), "Failed"), False),
        (Shown("Cancelled", mine(2), "InProgress"), False),
        (Shown("Cancelled", mine(2), "Cancelled"), False),
        (Shown("Cancelled", SOMEBODYS, "InProgress"), False),
        (Shown("InProgress", SOMEBODYS, "InProgress"), False),
        (Shown("Queued", mine(3)), False),
        (Shown("InProgress", task_id(Kind.TRAINING, "m2", 1), "InProgress"), False),
    ],
)
def test_progress(shown: Shown, may: bool) -> None:
    live = record(State.PLACED, attempt=2, request=request(held_task_ids=("held",)))
    done = [ended("m0", -5), ended("m2", 5), cancelled("c", -1)]
    assert may_show_progress(live, done, shown) is may


@pytest.mark.parametrize("task", [None, "held", task_id(Kind.TRAINING, "m0", 1)])
@pytest.mark.parametrize(
    ("cancels", "may"), [((), False), ((-1,), True), ((0,), False), ((-1, 3), False), ((-2, -1), True)]
)
def test_a_cancel_of_an_older_run_is_written_over(task: str | None, cancels: tuple[int, ...], may: bool) -> None:
    live = record(State.PLACED, request=request(held_task_ids=("held",)))
    done = [ended("m0", -5), *(cancelled(f"c{n}", at) for n, at in enumerate(cancels))]
    shown = Shown("Cancelled", task, "Cancelled")
    assert progress_needs_ends(live, shown)
    assert may_show_progress(live, done, shown) is may


@given(
    st.sampled_from(["Queued", "InProgress", "Processed", "Failed", "Cancelled", None]),
    st.sampled_from([None, mine(), mine(2), "held", SOMEBODYS, task_id(Kind.TRAINING, "m0", 1)]),
    st.sampled_from(["InProgress", "Processed", "Failed", "Cancelled", None]),
    st.sampled_from(list(WORDS)),
)
def test_what_is_written_is_never_wanted_again(
    status: str | None, task: str | None, job: str | None, result: Result
) -> None:
    """Showing an end ends there: after it nothing is to be written, and progress does not undo it."""
    live = finishing(result, attempt=2, placement=None, request=request(held_task_ids=("held",)))
    done = [ended("m0", -5)]
    end = end_to_show(live, done)
    assert end is not None
    if may_show_end(end, Shown(status, task, job)):
        after = Shown(WORDS[result], mine(2), WORDS[result])
        assert not may_show_end(end, after)
        running = in_state(live, State.PLACED, placement=placement(attempt=2))
        assert not may_show_progress(running, done, after)
    elif task != SOMEBODYS:
        assert shows(end, Shown(status, task, job))
