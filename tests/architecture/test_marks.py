"""Every test has exactly one mark, and the tables that give it name what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.marks import FIRST, MARKS, PLACES, mark_of

TESTS = Path(__file__).resolve().parents[1]


def test_every_test_has_exactly_one_mark(request: pytest.FixtureRequest) -> None:
    """Of those that were collected: of all, in a run of all."""
    marks = {
        item.nodeid: [mark.name for mark in item.iter_markers() if mark.name in MARKS] for item in _collected(request)
    }
    assert [test for test, found in marks.items() if len(found) != 1] == []


def test_every_mark_has_its_meaning(pytestconfig: pytest.Config) -> None:
    registered = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert set(MARKS) <= registered


@pytest.mark.parametrize("place", [*PLACES, *FIRST])
def test_a_place_is_there(place: str) -> None:
    path, _, test = place.partition("::")
    files = [file for file in TESTS.rglob("test_*.py") if file.relative_to(TESTS).as_posix().startswith(path)]
    assert any(f"def {test}" in file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize(
    ("test", "fixtures", "mark"),
    [
        ("placement/test_routing.py::test_a", (), "unit"),
        ("ledger/test_new.py::test_a", ("tmp_path", "storage_account"), "contract"),
        ("scenarios/test_new.py::test_a", ("storage_account",), "scenario"),
        ("stack/test_new.py::test_a", (), "scenario"),
        ("stack/test_settings.py::test_a", (), "unit"),
        ("faults/test_random.py::test_a[seeds-1]", (), "chaos"),
        ("faults/test_matrix.py::test_a", (), "unit"),
    ],
)
def test_the_longest_place_counts_and_then_the_fixtures(test: str, fixtures: tuple[str, ...], mark: str) -> None:
    assert mark_of(test, fixtures) == mark


def _collected(request: pytest.FixtureRequest) -> list[pytest.Item]:
    assert request.session.items
    return request.session.items
