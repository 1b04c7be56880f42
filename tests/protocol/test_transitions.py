"""Every next record is a legal one, and the states lead to each other as docs/architecture.md draws it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.protocol import transitions
from shared.protocol.outcome import Outcome, Result, Run
from shared.protocol.record import Done, EndReason, NodeRun, Placement, Record, State, task_id
from tests.support.values import ENTITY, at, placement, record, request

_PAGE = Path(__file__).resolve().parents[2] / "docs/architecture.md"
_END = "[*]"

Transition = Callable[[Record, datetime], Record]


def _place(live: Record, now: datetime) -> Record:
    name = task_id(ENTITY.kind, live.request.request_id, live.attempt)
    return transitions.placed(live, Placement("h100", "job-h100", name, now, "has a free slot"), "trn-shown")


def _add_next(live: Record, now: datetime) -> Record:
    name = f"m{len(live.next) + 2}-{live.request.request_id}"
    return transitions.with_next(live, request(name, now.timestamp() - at(0).timestamp()), now)


def _finish(live: Record, now: datetime) -> Record:
    return transitions.finishing(live, Outcome(Result.FAILED, "a sentence", now), now)


def _lose(live: Record, now: datetime) -> Record:
    return transitions.with_loss_of(live, live.node_run, now)


#: The steps between states, and whose record each of them needs.
BETWEEN: dict[str, Transition] = {
    "placed": _place,
    "ending": lambda live, now: transitions.ending(live, EndReason.MOVE, "moved", now),
    "next attempt": lambda live, now: transitions.next_attempt(live, now),
    "finishing": _finish,
    "next request": lambda live, now: transitions.next_request(live, now),
}
WITHIN: dict[str, Transition] = {
    "waiting on": lambda live, now: transitions.waiting_on(live, "no quota", now),
    "waiting aside": lambda live, now: transitions.waiting_on(live, "no labels", now, stands_aside=True),
    "looked at again": lambda live, now: transitions.looked_at_again(live, now),
    "because": lambda live, _now: transitions.because(live, "for another reason"),
    "with next": _add_next,
    "cancelled": lambda live, now: transitions.cancelled(live, now, now),
    "running": lambda live, now: transitions.running(live, NodeRun("n", now), "runs"),
    "lost": _lose,
    "without HASTE's record": lambda live, _now: transitions.without_haste_record(live),
    "shown": lambda live, now: transitions.shown(live, now),
    "zip asked": lambda live, _now: transitions.zip_asked(live),
    "finishing since": lambda live, now: transitions.finishing_since(live, now),
}
STEPS = BETWEEN | WITHIN


def _drawn() -> set[tuple[str, str]]:
    arrows = re.findall(r"^ {4}(\S+) --> ([^\s:]+): ", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {(source, target) for source, target in arrows if _END not in (source, target)}


def _ready(state: State) -> Record:
    """A record of this state that waits for nothing more, so that a step is refused for its state alone."""
    return record(state, next=(request("m2", 10),))


def test_the_states_lead_to_each_other_as_they_are_drawn() -> None:
    found = set()
    for state in State:
        for step in BETWEEN.values():
            try:
                found.add((state.value, step(_ready(state), at(100)).state.value))
            except ValueError:
                continue
    assert found == _drawn()


@pytest.mark.parametrize("step", BETWEEN)
def test_a_step_is_refused_in_every_state_that_it_does_not_leave(step: str) -> None:
    left = {
        "placed": {State.WAITING},
        "ending": {State.PLACED},
        "next attempt": {State.ENDING},
        "finishing": {State.WAITING, State.PLACED, State.ENDING},
        "next request": {State.FINISHING},
    }
    for state in set(State) - left[step]:
        with pytest.raises(ValueError, match=f"is {state}"):
            BETWEEN[step](_ready(state), at(100))


@given(st.lists(st.integers(0, 10**6), max_size=60))
def test_no_sequence_of_steps_makes_an_illegal_record(choices: list[int]) -> None:
    live = transitions.accepted(ENTITY, request(), at(60))
    drawn = _drawn()
    for number, choice in enumerate(choices, 100):
        names = [name for name in STEPS if _may(name, live)]
        name, before = names[choice % len(names)], live
        live = STEPS[name](before, at(number))
        if name in WITHIN:
            assert live.state is before.state, name
        else:
            assert (before.state.value, live.state.value) in drawn
        _is_legal(live)


def _may(name: str, live: Record) -> bool:
    try:
        STEPS[name](live, at(0))
    except ValueError as error:
        if not re.search(r" is \w+, not |^no request waits", str(error)):
            raise  # the step is taken, and what it makes is illegal
        return False
    return True


def _is_legal(live: Record) -> None:
    assert (live.placement is None) <= (live.state in (State.WAITING, State.FINISHING))
    assert live.state is not State.WAITING or (live.placement, live.node_run) == (None, None)
    assert (live.outcome is not None) is (live.state is State.FINISHING)
    assert (live.end_reason is not None) is (live.state is State.ENDING)
    assert live.finishing_since is None or live.state is State.FINISHING
    assert live.attempt == len(live.earlier) + 1
    assert [one.task_id for one in live.earlier] == list(live.task_ids()[:-1])


ILLEGAL: dict[str, tuple[State, dict[str, Any]]] = {
    "placed without a placement": (State.PLACED, {"placement": None}),
    "ending without a placement": (State.ENDING, {"placement": None}),
    "waiting with a placement": (State.WAITING, {"placement": placement()}),
    "waiting with a run": (State.WAITING, {"node_run": NodeRun("n", at(1))}),
    "finishing without an outcome": (State.FINISHING, {"outcome": None}),
    "placed with an outcome": (State.PLACED, {"outcome": Outcome(Result.FAILED, "x", at(1))}),
    "ending without a reason": (State.ENDING, {"end_reason": None}),
    "finishing with a reason to end": (State.FINISHING, {"end_reason": EndReason.CANCEL}),
    "ending and finishing since then": (State.ENDING, {"finishing_since": at(1)}),
    "attempt 0": (State.WAITING, {"attempt": 0}),
    "attempt 2 without the first": (State.WAITING, {"attempt": 2, "earlier": ()}),
    "attempt 1 after another": (State.WAITING, {"earlier": (placement(),)}),
    "less than no waits": (State.WAITING, {"waits": -1}),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_no_illegal_record_can_be_made(name: str) -> None:
    state, fields = ILLEGAL[name]
    with pytest.raises(ValueError, match=r"^it (is|has) "):
        record(state, **fields)


def test_what_a_record_does_not_have_is_not_taken_from_it() -> None:
    with pytest.raises(ValueError, match="is waiting and has no placement"):
        _ = record(State.WAITING).placed
    with pytest.raises(ValueError, match="is placed and has no outcome"):
        _ = record(State.PLACED).end


@pytest.mark.parametrize("attempt", [0, 10_001, 2_000_000_000])
def test_an_end_of_an_attempt_that_cannot_be_is_refused(attempt: int) -> None:
    """Every task id of the run is made when the end is compared with HASTE's record."""
    end = Outcome(Result.FAILED, "it failed", at(0))
    with pytest.raises(ValueError, match=f"attempt {attempt}"):
        Done("m1", at(0), end, Run(ENTITY, "m1", attempt))
    assert Done("m1", at(0), end, Run(ENTITY, "m1", 10_000)).shows
