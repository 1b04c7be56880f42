"""Every test that a page names exists, and a promise of the test plan has at least one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, name, pages

_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
PLAN = PROJECT / "docs/test-plan.md"
NAMING = [page for page in pages() if _TEST.search(page.read_text(encoding="utf-8"))]


@cache
def _tests(file: Path) -> frozenset[str]:
    """Functions as `name`, methods as `Class::name`."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(one for one in found if one.rpartition(":")[2].startswith("test_"))


@pytest.mark.parametrize("page", NAMING, ids=name)
def test_named_tests_exist(page: Path) -> None:
    for file, test in _TEST.findall(page.read_text(encoding="utf-8")):
        assert (PROJECT / file).exists(), f"{name(page)}: {file} does not exist"
        assert test in _tests(PROJECT / file), f"{name(page)}: {file} has no {test}"


def test_every_promise_has_a_test() -> None:
    rows = [line for line in PLAN.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not re.match(r"\| (promise|stand-in) \|", row)]
    assert len(promises) > 30
    assert [row for row in promises if "`tests/" not in row] == []


def test_isolation_has_a_test_for_each_guarantee_of_the_app() -> None:
    text = (PROJECT / "docs/isolation.md").read_text(encoding="utf-8")
    section = text.partition("## What the app guarantees")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 8
    assert [row for row in rows if not _TEST.search(row)] == []


@pytest.mark.parametrize("page", ["docs/routing.md", "docs/recovery.md"])
def test_every_rule_has_a_test(page: str) -> None:
    """Each row of a table with a column for them names at least one."""
    tables = (PROJECT / page).read_text(encoding="utf-8").split("\n\n")
    rules = [
        row for table in tables if (lines := table.splitlines()) and lines[0].endswith("| test |") for row in lines[2:]
    ]
    assert len(rules) > 25
    assert [row for row in rules if "`tests/" not in row.rpartition(" | ")[2]] == []
