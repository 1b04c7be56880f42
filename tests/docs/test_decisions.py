"""Decision records are numbered without a gap, have the same three parts, and are all in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT

FOLDER = PROJECT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))


def test_the_numbers_have_no_gap() -> None:
    assert [record.name[:5] for record in RECORDS] == [f"{number:04}-" for number in range(1, len(RECORDS) + 1)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_its_three_parts_and_is_in_the_index(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert re.match(rf"# {int(record.name[:4])}\. \S", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert f"({record.name})" in (FOLDER / "README.md").read_text(encoding="utf-8")
