"""The protocol's two tables, cell by cell: a message meets the ledger, a record meets Batch."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.protocol import table
from shared.protocol.outcome import Result
from shared.protocol.record import Done, EndReason, Record, Request, State
from shared.protocol.table import Accept, Cancel, Do, Seen, Step, Verdict
from tests.support.values import at, cancelled, ended, record, request

MOVE = Verdict(EndReason.MOVE, "lost its node")
LATER = (request("m2", 10),)


# --- a start message --------------------------------------------------------------------------------------------


def test_a_request_without_a_record_becomes_one() -> None:
    assert table.accept(None, request()) is Accept.CREATE


@pytest.mark.parametrize(
    ("state", "decision"),
    [
        (State.WAITING, Accept.CONTINUE),
        (State.PLACED, Accept.CONTINUE),
        (State.ENDING, Accept.ACKNOWLEDGE),
        (State.FINISHING, Accept.ACKNOWLEDGE),
    ],
)
def test_a_message_that_comes_again_meets_its_own_record(state: State, decision: Accept) -> None:
    assert table.accept(record(state), request("m1", 999)) is decision, "the id decides, whatever else the message says"


@pytest.mark.parametrize("state", State)
def test_a_message_that_waits_already_is_acknowledged(state: State) -> None:
    assert table.accept(record(state, next=LATER), request("m2", 10)) is Accept.ACKNOWLEDGE


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("asked", [-5, 5])
def test_another_request_looks_at_the_ends_first(state: State, asked: float) -> None:
    assert table.accept(record(state, next=LATER), request("m3", asked)) is Accept.LIST_DONE


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize(
    ("name", "asked", "waiting", "done", "decision"),
    [
        ("m2", 5, (), [], Accept.ADD_NEXT),
        ("m2", -5, (), [], Accept.SUPERSEDED),
        ("m2", 0, (), [], Accept.ADD_NEXT),  # within one second the ids decide, for all alike
        ("m0", 0, (), [], Accept.SUPERSEDED),
        ("m3", 5, LATER, [], Accept.SUPERSEDED),
        ("m3", 15, LATER, [], Accept.ADD_NEXT),
        ("m2", 5, (), [ended("m0", 9)], Accept.SUPERSEDED),
        ("m2", 5, (), [ended("m0", 4)], Accept.ADD_NEXT),
        ("m2", 5, (), [ended("m2", 5)], Accept.ACKNOWLEDGE),
        ("m2", 5, (), [ended("m2", 5, Result.SUPERSEDED), ended("m3", 9)], Accept.ACKNOWLEDGE),
        ("m2", 5, (), [cancelled("c", 9)], Accept.ADD_NEXT),  # a cancel is no request
        ("m2", 5, (), [cancelled("m2", 9)], Accept.ADD_NEXT),
    ],
)
def test_a_message_beside_another_request(
    state: State, name: str, asked: float, waiting: tuple[Request, ...], done: list[Done], decision: Accept
) -> None:
    assert table.accept_beside(record(state, next=waiting), request(name, asked), done) is decision


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcdef")), min_size=2, max_size=4, unique_by=lambda r: r[1])
)
def test_in_whatever_order_messages_come_the_newest_request_is_left(asked: list[tuple[int, str]]) -> None:
    newest = max(asked)[1]
    for order in permutations(asked):
        first, *others = (request(name, seconds) for seconds, name in order)
        live: Record = record(State.PLACED, request=first)
        done: list[Done] = []
        for other in others:
            if table.accept_beside(live, other, done) is Accept.ADD_NEXT:
                live = replace(live, next=tuple(sorted((*live.next, other), key=lambda one: one.order)))
            else:
                done.append(ended(other.request_id, (other.asked - at(0)).total_seconds(), Result.SUPERSEDED))
        assert (live.next[-1] if live.next else live.request).request_id == newest


# --- a cancel message -------------------------------------------------------------------------------------------


def test_a_cancel_without_a_record_asserts_the_end_again() -> None:
    assert table.cancel(None, at(0)) is Cancel.REASSERT


@pytest.mark.parametrize("asked", [0, 1, 100])
@pytest.mark.parametrize(
    ("state", "decision"),
    [
        (State.WAITING, Cancel.FLAG),
        (State.PLACED, Cancel.FLAG),
        (State.ENDING, Cancel.FLAG),
        (State.FINISHING, Cancel.LATER),
    ],
)
def test_a_cancel_meets_the_request_it_is_meant_for(state: State, decision: Cancel, asked: float) -> None:
    assert table.cancel(record(state), at(asked)) is decision, "asked in the same second counts as after it"
    again = record(state, cancel_asked=at(asked))
    assert table.cancel(again, at(asked + 5)) is decision, "HASTE's API saves late after a second cancel too"


@pytest.mark.parametrize("state", State)
def test_a_cancel_of_an_older_request_or_the_same_one_again_changes_nothing(state: State) -> None:
    assert table.cancel(record(state), at(-1)) is Cancel.ACKNOWLEDGE
    assert table.cancel(record(state, cancel_asked=at(3)), at(3)) is Cancel.ACKNOWLEDGE


# --- waiting ----------------------------------------------------------------------------------------------------

WAITING = record(State.WAITING)


@pytest.mark.parametrize(
    ("live", "done", "do", "result"),
    [
        (WAITING, [], Do.PLACE, None),
        (WAITING, [ended("m0", -5), cancelled("c", -1)], Do.PLACE, None),
        (WAITING, [ended("m2", 5)], Do.FINISH, Result.SUPERSEDED),
        (WAITING, [ended("m2", 5, Result.SUPERSEDED)], Do.FINISH, Result.SUPERSEDED),
        (WAITING, [ended("m2", 0)], Do.FINISH, Result.SUPERSEDED),
        (WAITING, [cancelled("c", 5)], Do.FINISH, Result.CANCELLED),
        (WAITING, [cancelled("c", 0)], Do.FINISH, Result.CANCELLED),
        (WAITING, [cancelled("m1", 0)], Do.FINISH, Result.CANCELLED),
        (WAITING, [cancelled("c", 5), ended("m2", 9)], Do.FINISH, Result.SUPERSEDED),
        (replace(WAITING, cancel_asked=at(5)), [], Do.FINISH, Result.CANCELLED),
        (replace(WAITING, next=LATER), [], Do.FINISH, Result.SUPERSEDED),
        (replace(WAITING, next=LATER, cancel_asked=at(5)), [], Do.FINISH, Result.CANCELLED),
        (record(State.WAITING, attempt=2), [cancelled("c", 5)], Do.FINISH, Result.CANCELLED),
    ],
)
def test_leaving_waiting(live: Record, done: list[Done], do: Do, result: Result | None) -> None:
    step = table.leave_waiting(live, done)
    assert (step.do, step.result) == (do, result)


@pytest.mark.parametrize("result", Result)
@pytest.mark.parametrize("others", [[], [ended("m2", 5)], [cancelled("c", 5)]])
def test_a_request_that_has_ended_keeps_its_end_whatever_else_is_there(result: Result, others: list[Done]) -> None:
    own = ended("m1", 0, result)
    live = replace(WAITING, next=LATER, cancel_asked=at(5))
    step = table.leave_waiting(live, [*others, own])
    assert (step.do, step.outcome) == (Do.FINISH, own.outcome)


ADOPTED = replace(WAITING, request=request("trn-x", 0, adopted_job_id="haste-pool"))


@pytest.mark.parametrize("done", [[], [cancelled("c", 5)], [ended("m2", 5)]])
def test_a_task_taken_over_is_placed_before_it_is_ended(done: list[Done]) -> None:
    step = table.leave_waiting(replace(ADOPTED, next=LATER, cancel_asked=at(5)), done)
    assert step.do is Do.PLACE, "the task may run: only a placed attempt can be ended"


def test_the_attempt_after_a_taken_over_task_is_like_any_other() -> None:
    assert (
        table.leave_waiting(record(State.WAITING, request=ADOPTED.request, attempt=2), [cancelled("c", 5)]).result
        is Result.CANCELLED
    )
    assert table.leave_waiting(ADOPTED, [ended("trn-x", 0)]).do is Do.FINISH


# --- placed -----------------------------------------------------------------------------------------------------

#: (cancel asked, another request waits) -> why the attempt is not wanted
UNWANTED = {
    (False, False): None,
    (True, False): EndReason.CANCEL,
    (False, True): EndReason.NEXT,
    (True, True): EndReason.CANCEL,
}


def _placed(seen: Seen, verdict: Verdict, unwanted: EndReason | None) -> tuple[Do, EndReason | None]:
    """The row `placed` of the table."""
    if seen in (Seen.READ_FAILED, Seen.NOT_JUDGED_YET):
        return Do.STAY, None
    if seen in (Seen.ENDED_BY_ITSELF, Seen.ENDED_WITH_SUCCESS):
        return Do.FINISH_REAL, None
    if seen is Seen.ENDED_OTHERWISE:
        return Do.END, EndReason.MOVE
    if unwanted:
        return Do.END, unwanted
    if seen is Seen.JOB_OVER:
        return Do.END, EndReason.MOVE
    if seen is Seen.ABSENT:
        return Do.CREATE_TASK, None
    return (Do.END, verdict.end_reason) if verdict.end_reason else (Do.SHOW_PROGRESS, None)


@pytest.mark.parametrize(("seen", "flags", "verdict"), list(product(Seen, UNWANTED, [Verdict(), MOVE])))
def test_leaving_placed(seen: Seen, flags: tuple[bool, bool], verdict: Verdict) -> None:
    live = record(State.PLACED, cancel_asked=at(5) if flags[0] else None, next=LATER if flags[1] else ())
    step = table.leave_placed(live, seen, verdict)
    assert (step.do, step.end_reason) == _placed(seen, verdict, UNWANTED[flags])
    assert step.why
    assert step.result is None


# --- ending -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "do"),
    [
        (Seen.READ_FAILED, Do.STAY),
        (Seen.NOT_JUDGED_YET, Do.STAY),
        (Seen.LIVE, Do.TERMINATE),
        (Seen.ABSENT, Do.SPEND_ID),
        (Seen.ENDED_WITH_SUCCESS, Do.FINISH_REAL),
    ],
)
@pytest.mark.parametrize(("reason", "flags", "budget"), list(product(EndReason, UNWANTED, [True, False])))
def test_ending_is_left_only_with_the_id_spent(
    seen: Seen, do: Do, reason: EndReason, flags: tuple[bool, bool], budget: bool
) -> None:
    live = record(
        State.ENDING, end_reason=reason, cancel_asked=at(5) if flags[0] else None, next=LATER if flags[1] else ()
    )
    assert table.leave_ending(live, seen, budget).do is do


@pytest.mark.parametrize("seen", [Seen.ENDED_OTHERWISE, Seen.ENDED_BY_ITSELF, Seen.JOB_OVER])
@pytest.mark.parametrize(("reason", "flags", "budget"), list(product(EndReason, UNWANTED, [True, False])))
def test_leaving_ending(seen: Seen, reason: EndReason, flags: tuple[bool, bool], budget: bool) -> None:
    live = record(
        State.ENDING,
        end_reason=reason,
        cancel_asked=at(5) if flags[0] else None,
        next=LATER if flags[1] else (),
        reason="told so",
    )
    step = table.leave_ending(live, seen, budget)
    match UNWANTED[flags]:
        case EndReason.CANCEL:
            assert (step.do, step.result) == (Do.FINISH, Result.CANCELLED)
        case EndReason.NEXT:
            assert (step.do, step.result) == (Do.FINISH, Result.SUPERSEDED)
        case _ if reason is EndReason.MOVE and budget:
            assert (step.do, step.result) == (Do.NEXT_ATTEMPT, None)
        case _:
            assert (step.do, step.result, step.why) == (Do.FINISH, Result.FAILED, "told so")


# --- steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("do", Do)
def test_a_step_says_how_it_ends_if_it_ends_and_only_then(do: Do) -> None:
    outcome = ended("m1", 0).outcome
    for result, found, reason in product([None, Result.FAILED], [None, outcome], [None, EndReason.MOVE]):
        ends = [one for one in (result, found) if one is not None]
        is_whole = len(ends) == (do is Do.FINISH) and (reason is not None) == (do is Do.END)
        if is_whole:
            Step(do, "why", result, found, reason)
        else:
            with pytest.raises(ValueError, match="no step"):
                Step(do, "why", result, found, reason)
