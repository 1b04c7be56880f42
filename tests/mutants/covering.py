"""Which tests run a line: recorded once with all unit tests, and kept until a source or a test changes."""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from coverage import CoverageData

PROJECT = Path(__file__).resolve().parents[2]
KEPT = PROJECT / ".local" / "mutants"
_NOT_COPIED = (".git", ".venv", ".local", "node_modules", "__pycache__", ".*_cache", ".hypothesis")


def copied(folder: Path) -> Path:
    """The project, in a folder where it may be changed."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    return folder


def environment(**more: str) -> dict[str, str]:
    """For a child in a copy. No bytecode is kept: a change may be of the same size and in the same second."""
    return {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(KEPT / "hypothesis"),
        **more,
    }


def record(workers: int, tests: Sequence[str]) -> Path:
    """The folder with what the unit tests run, recorded anew if a source or a test is another one now."""
    folder = KEPT / f"lines-{_fingerprint(tests)}"
    if (folder / "whole").exists():
        return folder
    for old in KEPT.glob("lines-*"):
        shutil.rmtree(old)
    folder.mkdir(parents=True)
    print("recording which lines each unit test runs", flush=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "unit",
        "-p",
        "tests.mutants.recording",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder", "--timeout", "900", *tests]
    with (folder / "output").open("wb") as output:
        subprocess.run(
            command,
            cwd=copied(KEPT / "recorded"),
            env=environment(MUTANTS_RECORD=str(folder)),
            stdout=output,
            check=False,
        )
    if not (folder / "seconds.json").exists():
        raise SystemExit(f"the unit tests did not run: see {folder / 'output'}")
    (folder / "whole").touch()
    return folder


def _fingerprint(tests: Sequence[str]) -> str:
    digest = hashlib.sha256(" ".join(tests).encode())
    for path in sorted(
        itertools.chain(*(PROJECT.glob(f"{top}/**/*.py") for top in ("shared", "local", "tests", "bench")))
    ):
        if path.parent != Path(__file__).parent:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Coverage:
    """Tests by line. Lines that run when a module is imported belong to the tests of whoever uses what they name."""

    def __init__(self, folder: Path, sources: Mapping[str, str]) -> None:
        self.seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
        self._sources = sources
        self._data = [CoverageData(str(path)) for path in sorted(folder.glob("lines-gw*"))]
        for data in self._data:
            data.read()
        self._lines: dict[str, dict[int, set[str]]] = {}

    def tests(self, path: str, line: int) -> set[str]:
        """Of the tests that pass, those that run this line."""
        direct = self._by_line(path).get(line, set())
        if direct:
            return direct
        scope = _scope(ast.parse(self._sources[path]), line)
        if isinstance(scope, (ast.Assign, ast.AnnAssign)):
            names = {
                node.id for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            users = [self._by_line(user).get(at, set()) for name in names for user, at in self._uses.get(name, ())]
            if any(users):
                return set().union(*users)
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not _is_run_at_import(scope, line):
                return set()  # nobody runs it
            body = range(scope.lineno, (scope.end_lineno or scope.lineno) + 1)
        else:
            body = range(1, self._sources[path].count("\n") + 1)
        return set().union(*(self._by_line(path).get(at, set()) for at in body))

    def _by_line(self, path: str) -> dict[int, set[str]]:
        if path not in self._lines:
            found: defaultdict[int, set[str]] = defaultdict(set)
            for data in self._data:
                for file in data.measured_files():
                    if file.endswith("/recorded/" + path):
                        for line, tests in data.contexts_by_lineno(file).items():
                            found[line].update(test for test in tests if test in self.seconds)
            self._lines[path] = dict(found)
        return self._lines[path]

    @cached_property
    def _uses(self) -> dict[str, list[tuple[str, int]]]:
        uses: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for path, source in self._sources.items():
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    uses[node.id].append((path, node.lineno))
                elif isinstance(node, ast.Attribute):
                    uses[node.attr].append((path, node.lineno))
        return uses


def _scope(tree: ast.Module, line: int) -> ast.stmt | None:
    """The innermost function with the line, or the statement of a module or class."""
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign))
            and _first(node) <= line <= (node.end_lineno or node.lineno)
            and not isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef))
        ):
            found = node
    return found


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _is_run_at_import(function: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    return line < function.body[0].lineno


def chosen(tests: Iterable[str], seconds: Mapping[str, float], most_seconds: float) -> list[str]:
    """As many as fit, the quick ones first and of each file in turn, so that different tests come early."""
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda one: (seconds[one], one)):
        by_file[test.partition("::")[0]].append(test)
    taken: list[str] = []
    left = most_seconds
    for turn in itertools.zip_longest(*by_file.values()):
        for test in turn:
            if test is not None and (seconds[test] <= left or not taken):
                taken.append(test)
                left -= seconds[test]
    return taken
