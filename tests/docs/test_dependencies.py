"""docs/dependencies.md has the packages of the requirement files, and what ships is imported by the app."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import PROJECT
from tests.docs.tables import tables

SHIPPED, OTHERS = tables(PROJECT / "docs/dependencies.md")
#: Comes with npm.
NOT_PYTHON = {"Azurite"}


def _named(rows: tuple[tuple[str, ...], ...]) -> set[str]:
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row[0]) or [row[0].partition(" ")[0]]}


def _required(file: str) -> set[str]:
    return set(re.findall(r"^([\w-]+)==", (PROJECT / file).read_text(encoding="utf-8"), re.MULTILINE))


@cache
def _imported() -> frozenset[str]:
    """What `shared/` and `function_app.py` import, with each package that a module is in."""
    found: set[str] = set()
    for file in [PROJECT / "function_app.py", *(PROJECT / "shared").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module} | {f"{node.module}.{one.name}" for one in node.names}
    return frozenset(".".join(name.split(".")[:n]) for name in found for n in range(1, name.count(".") + 2))


def test_what_ships_is_what_a_deployment_installs() -> None:
    assert _named(SHIPPED.rows) == _required("requirements.txt")


def test_the_rest_is_for_the_local_stack_and_the_tests() -> None:
    of_a_second_client = _required("tests/batch_contract/requirements-14.txt") & {"azure-batch"}
    required = _required("requirements-dev.txt") | _required("requirements-host.txt") | of_a_second_client
    assert _named(OTHERS.rows) == required | NOT_PYTHON


@pytest.mark.parametrize("package", sorted(_required("requirements.txt")))
def test_what_ships_is_imported(package: str) -> None:
    assert package.replace("-", ".") in _imported()
