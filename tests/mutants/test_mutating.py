"""What a mutant is: one change of one place, in a module that can still be read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.mutating import mutants

SHARED = sorted((Path(__file__).parents[2] / "shared").rglob("*.py"))


def changed(source: str) -> list[str]:
    return [one.applied(source) for one in mutants("shared/x.py", source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("PAUSE = timedelta(minutes=5)", [f"PAUSE = timedelta(minutes={n})" for n in (10, 15, 4, 6)]),
        ("x = 1", ["x = 0", "x = 2", "x = 3"]),
        ("a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("a not in b", ["a in b"]),
        ("a is not b", ["a is b"]),
        ("a == b", ["a != b"]),
        ("é('é') and b or c", ["é('é') or b or c", "é('é') and b and c"]),
        ("x = not (a)", ["x = (a)"]),
        ("x = True", ["x = False"]),
        ("queue.send(x)", ["pass"]),
        ("log.info('sent', times=2)", []),
        ("x = f'{a} of {2}'", []),
        ("'''says 2 < 3'''", []),
    ],
)
def test_numbers_boundaries_logic_and_calls_are_changed(source: str, expected: list[str]) -> None:
    assert changed(source) == expected


def test_a_mutant_tells_its_place_and_its_change() -> None:
    source = "def far(a, b):\n    # near is one\n    return a - b > 1\n"
    first = mutants("shared/x.py", source)[0]
    assert (first.path, first.line) == ("shared/x.py", 3)
    assert first.diff(source).splitlines() == [
        "shared/x.py:3",
        "     # near is one",
        "-    return a - b > 1",
        "+    return a - b >= 1",
    ]


@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.relative_to(SHARED[0].parents[0]).as_posix())
def test_every_mutant_of_the_application_is_python(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    for one in mutants(path.name, source):
        mutated = one.applied(source)
        assert mutated != source
        ast.parse(mutated)
