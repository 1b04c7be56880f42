"""The states drawn in docs/architecture.md are the states of the code."""

from __future__ import annotations

import re

from shared.protocol.outcome import Result
from shared.protocol.record import EndReason, State
from tests.docs.pages import PROJECT

PAGE = (PROJECT / "docs/architecture.md").read_text(encoding="utf-8")
END = "[*]"


def test_the_drawing_has_every_state_with_a_way_in_and_a_way_out() -> None:
    arrows = re.findall(r"^ {4}(\S+) --> ([^\s:]+): ", PAGE, re.MULTILINE)
    assert {source for source, _ in arrows} == {*State, END}
    assert {target for _, target in arrows} == {*State, END}


def test_the_table_has_every_state_and_says_why_an_attempt_ends() -> None:
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)
    meanings = {state: rest for state, rest in reversed(rows) if state in set(State)}
    assert set(meanings) == set(State)
    assert all(f"`{reason}`" in meanings[State.ENDING] for reason in EndReason)
    assert all(f"`{result}`" in meanings[State.FINISHING] for result in Result)
