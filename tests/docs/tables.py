"""Tables of a page, and the list of tests that stands below one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import prose

#: Stands between a table and its list.
TESTS = "Tests, by row:"
_NUMBER = re.compile(r"^(\d+)\. ", re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """Cells of the head and of each row. `tests`: number and text of each piece of the list below, if there is one."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tests: tuple[tuple[int, str], ...]


def tables(page: Path) -> list[Table]:
    """The page's tables, in their order."""
    blocks = [block.strip("\n") for block in re.split(r"\n{2,}", prose(page))]
    following = [*blocks[1:], "", ""]
    return [_table(block, following[n : n + 2]) for n, block in enumerate(blocks) if block.startswith("|")]


def _table(block: str, following: list[str]) -> Table:
    head, _, *rows = [_cells(line) for line in block.splitlines()]
    title, listed = following
    pieces = _NUMBER.split(listed) if title == TESTS else [""]
    assert pieces[0] == "", f"no list of tests: {listed}"
    return Table(head, tuple(rows), tuple(zip(map(int, pieces[1::2]), pieces[2::2], strict=True)))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1])
