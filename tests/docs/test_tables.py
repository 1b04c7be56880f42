"""Tables of rules and promises: rows are short and numbered, and each has its tests in the list below the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, name
from tests.docs.tables import TESTS, Table, tables
from tests.docs.test_named_tests import TEST

MOST_CHARACTERS = 200
#: How many rows each page has at least.
ROWS = {"docs/routing.md": 26, "docs/recovery.md": 26, "docs/isolation.md": 26, "docs/test-plan.md": 31}
PAGES = [PROJECT / page for page in ROWS]
#: What nothing here can test: what Azure does, and why a default is what it is.
WITHOUT_TESTS = {("guarantee", "by"), ("setting", "default", "why")}
#: Names its tests beside the rows, and says which rows have none.
GAPS = ("a task can", "test")
_FOLDER = re.compile(r"`tests/\w+")


def _rules(page: Path) -> list[Table]:
    return [table for table in tables(page) if table.head not in WITHOUT_TESTS]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_rows_are_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.lstrip().startswith("|") and len(line) > MOST_CHARACTERS] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_row_has_a_test(page: Path) -> None:
    """A stand-in may have a folder of them."""
    for table in _rules(page):
        wanted = _FOLDER if "stand-in" in table.head else TEST
        texts = [row[-1] for row in table.rows] if table.head == GAPS else [text for _, text in table.tests]
        without = [text for text in texts if not wanted.search(text)]
        assert set(without) <= ({"not tested"} if table.head == GAPS else set()), table.head


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_rows_and_lists_have_the_same_numbers(page: Path) -> None:
    for table in _rules(page):
        if table.head != GAPS:
            numbers = list(range(1, len(table.rows) + 1))
            assert table.head[0] == "row", f"{table.head}: rows have no numbers"
            assert [row[0] for row in table.rows] == [str(number) for number in numbers], table.head
            assert [number for number, _ in table.tests] == numbers, f"{table.head}: the list has other numbers"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_all_tables_and_lists_are_seen(page: Path) -> None:
    rules = _rules(page)
    assert sum(len(table.rows) for table in rules) >= ROWS[name(page)]
    assert {len(row) == len(table.head) for table in rules for row in table.rows} == {True}
    assert page.read_text(encoding="utf-8").count(TESTS) == sum(bool(table.tests) for table in rules)
