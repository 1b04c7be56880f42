"""Every test that a page names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, name, pages

TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
NAMING = [page for page in pages() if TEST.search(page.read_text(encoding="utf-8"))]


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
    for file, test in TEST.findall(page.read_text(encoding="utf-8")):
        assert (PROJECT / file).exists(), f"{name(page)}: {file} does not exist"
        assert test in _tests(PROJECT / file), f"{name(page)}: {file} has no {test}"
