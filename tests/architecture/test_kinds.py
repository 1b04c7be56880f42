"""A kind of work that is added and not finished is a type error, in every place that has to know it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.rules import project_sources

PROJECT = Path(__file__).resolve().parents[2]
NEW_MEMBERS = {
    '    INFERENCE = "inference"\n': '    ZIP = "zip"\n',
    '    MODEL = "model"\n': '    PROJECT = "project"\n',
    '    TRAINING = "training"\n\n\nclass Kind': '    NIGHTLY = "nightly"\n',
}
OF_A_KIND = {
    ("shared/kinds.py", "_facts", "Kind.ZIP"),
    ("shared/settings/table.py", "of", "Kind.ZIP"),
    ("shared/haste/by_kind.py", "workload", "Kind.ZIP"),
    ("shared/haste/by_kind.py", "parse_message", "Kind.ZIP"),
}
OF_A_SUBJECT = {("shared/requests/own_message.py", "_about", "Subject.PROJECT")}
OF_A_JOB_CLASS = {("shared/pools/placer.py", "_priority", "JobClass.NIGHTLY")}
#: Where a kind may be named: the files that one who adds a kind writes in.
NAMING = re.compile(r"function_app\.py|shared/(kinds|settings/table|haste/\w+)\.py")
ERROR = re.compile(r'^(\S+\.py):(\d+): error: Argument 1 to "assert_never" has .*"Literal\[([\w.]+)\]"', re.MULTILINE)


def test_what_a_new_kind_lacks_is_a_type_error(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "shared", tmp_path / "shared", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("function_app.py", "pyproject.toml"):
        shutil.copy(PROJECT / name, tmp_path)
    kinds = tmp_path / "shared/kinds.py"
    text = kinds.read_text(encoding="utf-8")
    for last, member in NEW_MEMBERS.items():
        assert text.count(last) == 1, last
        first_line = last.partition("\n")[0] + "\n"
        text = text.replace(last, first_line + member + last.removeprefix(first_line))
    kinds.write_text(text, encoding="utf-8")

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "function_app.py", "shared"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    found = {
        (path, _function(tmp_path / path, int(line)), member) for path, line, member in ERROR.findall(checked.stdout)
    }
    assert found == OF_A_KIND | OF_A_SUBJECT | OF_A_JOB_CLASS, checked.stdout + checked.stderr
    assert f"Found {len(found)} errors" in checked.stdout


def test_a_kind_is_named_where_one_who_adds_a_kind_writes() -> None:
    """Elsewhere in what ships nothing is compared with a kind: that would be one more place to know of."""
    naming = {
        path
        for path, text in project_sources(PROJECT).items()
        if path.endswith(".py") and path.startswith(("function_app", "shared/")) and re.search(r"\bKind\.[A-Z]", text)
    }
    assert {path for path in naming if not NAMING.fullmatch(path)} == set()
    assert "function_app.py" in naming


def _function(path: Path, line: int) -> str:
    """The innermost function around a line."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    around = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.lineno <= line <= _last(node)]
    return max(around, key=lambda node: node.lineno).name


def _last(node: ast.FunctionDef) -> int:
    return node.end_lineno or node.lineno
