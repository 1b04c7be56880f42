"""The project's documentation as the tests read it."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^ *```.*?^ *```[ ]*$", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")


def pages() -> list[Path]:
    """README and the other texts at the top, that of infra/, and all of docs/."""
    return sorted([*PROJECT.glob("*.md"), PROJECT / "infra/README.md", *(PROJECT / "docs").rglob("*.md")])


def name(page: Path) -> str:
    """The page's path in the project, for test ids and messages."""
    return page.relative_to(PROJECT).as_posix()


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def code(page: Path) -> list[str]:
    """Each line of a fenced block, and each piece of inline code."""
    text = page.read_text(encoding="utf-8")
    blocks = [line.strip() for block in _FENCE.findall(text) for line in block.splitlines()[1:-1]]
    return blocks + _CODE_SPAN.findall(_FENCE.sub("", text))
