"""The tree of errors that shared/errors.py draws is the tree of the classes."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import shared
from shared import errors
from shared.errors import WorkerError

# here, because the SDKs try to open a port when they are imported first
for module in pkgutil.walk_packages(shared.__path__, "shared."):
    importlib.import_module(module.name)
_BRANCH = re.compile(r"^((?:[| ]   )*)(?:[|`]-- )(\w+)", re.MULTILINE)


def test_the_tree_that_is_drawn_is_the_tree_of_the_classes() -> None:
    assert sorted(_drawn(str(errors.__doc__))) == sorted(_classes(WorkerError))


def _drawn(text: str) -> Iterator[tuple[str, str]]:
    """Each error with the one above it."""
    above = ["WorkerError"]
    for indent, name in _BRANCH.findall(text):
        depth = len(indent) // 4 + 1
        above[depth:] = [name]
        yield name, above[depth - 1]


def _classes(base: type[WorkerError]) -> Iterator[tuple[str, str]]:
    for one in base.__subclasses__():
        if one.__module__.startswith("shared."):
            yield one.__name__, base.__name__
            yield from _classes(one)
