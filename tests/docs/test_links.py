"""Links between pages resolve, headings included, and the files that pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, code, name, pages, prose

_LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_OWN_PATH = re.compile(r"(?:shared|local|tests|docs|infra|operate|bench)/[\w./-]*\w|[\w-]+\.(?:py|md|json|toml|txt)")
#: Named as what a reader makes, or a running program does.
_MADE = {"local.settings.json", "pools.json", "summary.json", "world.json"}


@pytest.mark.parametrize("page", pages(), ids=name)
def test_links_resolve(page: Path) -> None:
    for target in _LINK.findall(prose(page)):
        if target.startswith("https://"):
            continue
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.is_relative_to(PROJECT), target
        assert linked.exists(), f"{name(page)}: {target} does not exist"
        if heading:
            assert heading in _anchors(linked), f"{name(page)}: {target} has no such heading"


@pytest.mark.parametrize("page", pages(), ids=name)
def test_files_that_are_named_exist(page: Path) -> None:
    for piece in code(page):
        if not _OWN_PATH.fullmatch(piece.removesuffix("/")) or piece in _MADE:
            continue
        assert (PROJECT / piece).exists(), f"{name(page)}: {piece} does not exist"


def _anchors(page: Path) -> set[str]:
    """Headings as link targets: lower case, punctuation gone, hyphens for spaces."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(prose(page))}
