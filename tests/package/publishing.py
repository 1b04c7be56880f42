"""Which files a publish uploads, by the two ways in which tools read `.funcignore`, and the zip made of them."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

#: Azure Functions Core Tools leave these out whatever `.funcignore` says, wherever they are.
_NEVER_FOLDERS = frozenset({".git", ".vscode"})
_NEVER_FILES = frozenset({".funcignore", ".gitignore", "local.settings.json", "project.lock.json"})


def by_core_tools(folder: Path) -> list[str]:
    """What `func azure functionapp publish` uploads.

    Core Tools do not read the lines as Git does: each must match at the start of the path and end at the end of a word
    there, `*` and `**` stand for at least one character, and a line with `!` wins over all others.
    """
    lines = _lines(folder)
    denied = _any_of([line for line in lines if not line.startswith("!")])
    allowed = _any_of([line[1:] for line in lines if line.startswith("!")])
    paths = [path for path in _files(folder) if not _never(path)]
    return [path for path in paths if allowed.match(path) or not denied.match(path)]


def by_gitignore(folder: Path) -> list[str]:
    """What tools upload that read the lines as Git reads a `.gitignore`, such as editors and deployment actions."""
    spec = GitIgnoreSpec.from_lines(_lines(folder))
    return [path for path in _files(folder) if not spec.match_file(path)]


def make_zip(folder: Path, target: Path) -> Path:
    """The zip that `func azure functionapp publish` uploads for a remote build."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as package:
        for path in by_core_tools(folder):
            package.write(folder / path, path)
    return target


def _lines(folder: Path) -> list[str]:
    lines = (line.strip() for line in (folder / ".funcignore").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    if not patterns:
        return re.compile(r"(?!)")
    return re.compile(f"(?:{'|'.join(map(_expression, patterns))})\\b", re.ASCII)


def _expression(pattern: str) -> str:
    stars = {"**": ".+", "*": "[^/]+"}
    parts = re.split(r"(\*\*|\*)", pattern.removeprefix("/"))
    return "".join(stars.get(part) or re.escape(part) for part in parts)


def _never(path: str) -> bool:
    *folders, name = path.lower().split("/")
    return name in _NEVER_FILES or not _NEVER_FOLDERS.isdisjoint(folders)


def _files(folder: Path) -> Iterator[str]:
    """All files below, as paths with slashes."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            yield (Path(place) / name).relative_to(folder).as_posix()
