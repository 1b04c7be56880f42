"""Every command that the documentation names exists, with the options it is shown with."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PROJECT_FOLDER = Path(__file__).resolve().parents[2]
#: Programs of others that the documents name.
FOREIGN = {"pip", "pytest", "venv"}
_MODULE = re.compile(r"python3?(?:\.11)? -m (?P<module>[\w.]+)(?P<rest>(?:(?!python3? -m)[^`|\n])*)")
_TARGET = re.compile(r"(?:^|`)(?:\$ )?make (?P<target>[a-z]+)", re.MULTILINE)


def documents() -> dict[str, str]:
    paths = [*PROJECT_FOLDER.glob("*.md"), *PROJECT_FOLDER.glob("docs/**/*.md")]
    return {path.relative_to(PROJECT_FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def commands(text: str) -> list[tuple[str, str, frozenset[str]]]:
    """Module, subcommand ("" if none) and options of each `python -m`."""
    found = []
    for match in _MODULE.finditer(text):
        words = match["rest"].partition(" -- ")[0].partition(" #")[0].split()
        is_subcommand = bool(words) and re.fullmatch(r"[a-z]+", words[0]) is not None
        options = frozenset(re.findall(r"--[a-z][a-z-]*", " ".join(words)))
        found.append((match["module"].rstrip("."), words[0] if is_subcommand else "", options))
    return found


DOCUMENTED = sorted({command for text in documents().values() for command in commands(text)}, key=str)
TARGETS = sorted({match["target"] for text in documents().values() for match in _TARGET.finditer(text)})


@cache
def help_of(module: str, subcommand: str) -> str:
    asked = subprocess.run(
        [sys.executable, "-m", module, *([subcommand] if subcommand else []), "--help"],
        cwd=PROJECT_FOLDER,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


@pytest.mark.parametrize("command", DOCUMENTED, ids=lambda command: " ".join((*command[:2], *sorted(command[2]))))
def test_a_documented_program_exists(command: tuple[str, str, frozenset[str]]) -> None:
    module, subcommand, options = command
    if module in FOREIGN:
        return
    assert importlib.util.find_spec(module) is not None
    if module.startswith("bench."):  # no options, and it would run
        return
    told = help_of(module, subcommand)
    assert [option for option in options if option not in told] == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_documented_target_exists(target: str) -> None:
    makefile = (PROJECT_FOLDER / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)


def test_the_documents_name_commands_at_all() -> None:
    assert {"demo", "up", "down", "test", "lint"} <= set(TARGETS)
    assert {"local.demo", "local.stack", "local.producer"} <= {module for module, _, _ in DOCUMENTED}


def test_commands_are_read_with_their_options() -> None:
    text = "```\npython -m local.stack run --tenant a -- python -m local.producer layer --name x\n``` `python -m local.batch --port 0`"
    assert commands(text) == [
        ("local.stack", "run", frozenset({"--tenant"})),
        ("local.producer", "layer", frozenset({"--name"})),
        ("local.batch", "", frozenset({"--port"})),
    ]
