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

from tests.docs.pages import PROJECT, code, pages

_MAKE = re.compile(r"(?:^|\s)make ([a-z][a-z-]*)")
_PYTHON = re.compile(r"python -m ([a-z_]+(?:\.[a-z_]+)*)([^|;&#]*)")


def _pieces() -> list[str]:
    """Pieces of code; `... run -- python -m ...` is two commands."""
    return [part for page in pages() for piece in code(page) for part in piece.split(" -- ")]


def _make_targets(pieces: list[str]) -> list[str]:
    return sorted({target for piece in pieces for target in _MAKE.findall(piece)})


def _python_commands(pieces: list[str]) -> list[str]:
    """Module, subcommand and options of each command, without their values."""
    found = set()
    for piece in pieces:
        for module, rest in _PYTHON.findall(piece):
            words = shlex.split(rest)
            subcommand = [word for word in words[:1] if not word.startswith("-")]
            options = [word for word in words if word.startswith("--")]
            found.add(" ".join([module, *subcommand, *options]))
    return sorted(found)


def test_commands_are_read_with_their_options() -> None:
    pieces = [
        "python -m local.batch --port 0 | cat",
        "make up ARGS=1",
        "make",
        "python -m local.x run --tenant a",
        "make-up",
    ]
    assert _python_commands(pieces) == ["local.batch --port", "local.x run --tenant"]
    assert _make_targets(pieces) == ["up"]


def test_the_documentation_names_the_commands_of_the_project() -> None:
    assert {"demo", "test", "lint", "up", "down"} <= set(_make_targets(_pieces()))
    commands = {tuple(command.split()[:2]) for command in _python_commands(_pieces())}
    assert {("local.stack", "run"), ("local.producer", "train"), ("local.batch", "--world")} <= commands


@pytest.mark.parametrize("target", _make_targets(_pieces()))
def test_a_make_target_exists_and_is_explained(target: str) -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:.* ## \S", makefile, re.MULTILINE), f"the Makefile has no target {target} with a help"


@pytest.mark.parametrize("command", _python_commands(_pieces()))
def test_a_python_command_exists(command: str) -> None:
    module, *rest = command.split()
    assert importlib.util.find_spec(module) is not None, f"there is no module {module}"
    if not module.startswith("local."):
        return  # a tool, or it has no options
    subcommand = tuple(word for word in rest if not word.startswith("-"))
    help_text = _help(module, subcommand)
    for option in rest[len(subcommand) :]:
        assert re.search(rf"{re.escape(option)}\b(?!-)", help_text), f"{command}: there is no {option}\n{help_text}"


@cache
def _help(module: str, subcommand: tuple[str, ...]) -> str:
    """The help of a command. argparse ends with code 2 for a subcommand that it does not know."""
    done = subprocess.run(
        [sys.executable, "-m", module, *subcommand, "--help"],
        cwd=PROJECT,
        env={**os.environ, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"python -m {module} {' '.join(subcommand)} --help: {done.stderr}"
    return done.stdout
