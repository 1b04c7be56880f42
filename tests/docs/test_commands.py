"""Every `make` target and `python -m` command in the documentation exists, with the options that are shown."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from functools import cache

import pytest

from tests.docs.pages import PROJECT, code, name, pages

_MAKE = re.compile(r"\bmake ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)")
_PYTHON = re.compile(r"\bpython -m ([a-z_]+(?:\.[a-z_]+)*)([^|;&#\n]*)")
_TARGETS = re.compile(r"^([a-z][a-z-]*(?: [a-z][a-z-]*)*)\s*:(?!=)", re.MULTILINE)


def _make_targets() -> list[str]:
    found = {target for page in pages() for piece in code(page) for line in _MAKE.findall(piece) for target in line.split()}
    return sorted(found)


def _python_commands() -> list[str]:
    found = set()
    for page in pages():
        for piece in code(page):
            for module, rest in _PYTHON.findall(piece):
                words = shlex.split(rest.partition(" -- ")[0].replace("|", " "))
                shown = [word for word in words if word.startswith("--")]
                command = [module] + [word for word in words[:1] if not word.startswith("-")] + shown
                found.add(" ".join(command))
    return sorted(found)


def test_the_documentation_names_the_commands_of_the_project() -> None:
    assert {"demo", "test", "lint", "up", "down"} <= set(_make_targets())
    assert any(command.startswith("local.stack up") for command in _python_commands())


@pytest.mark.parametrize("target", _make_targets())
def test_a_make_target_exists(target: str) -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = {word for line in _TARGETS.findall(makefile) for word in line.split()}
    assert target in targets, f"the documentation says `make {target}`; the Makefile has {sorted(targets)}"


@pytest.mark.parametrize("command", _python_commands())
def test_a_python_command_exists(command: str) -> None:
    module, *rest = command.split()
    assert importlib.util.find_spec(module) is not None, f"there is no module {module}"
    if not module.startswith("local."):
        return
    subcommand = tuple(word for word in rest if not word.startswith("-"))
    help_text = _help(module, subcommand)
    for option in rest[len(subcommand) :]:
        assert re.search(rf"{re.escape(option)}\b", help_text), f"{command}: there is no {option}\n{help_text}"


@cache
def _help(module: str, subcommand: tuple[str, ...]) -> str:
    """The help of a command. argparse ends with code 2 for a subcommand that it does not know."""
    done = subprocess.run(
        [sys.executable, "-m", module, *subcommand, "--help"],
        cwd=PROJECT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"python -m {module} {' '.join(subcommand)} --help: {done.stderr}"
    return done.stdout


def test_the_pages_are_found() -> None:
    assert {"README.md", "docs/architecture.md", "docs/local-stack.md"} <= {name(page) for page in pages()}
