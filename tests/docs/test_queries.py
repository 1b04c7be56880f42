"""The queries in the pages and templates ask for lines, fields and values that the code has."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from shared.protocol.outcome import Result
from tests.docs.pages import PROJECT, name, pages

_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
_KUSTO = re.compile(r"^```kusto\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BICEP_QUERY = re.compile(r"^\s*query: '(.+)'$", re.MULTILINE)
_PIECE = re.compile(r"\b(?:!?contains|!?has|!?startswith|!?endswith|matches regex) \"([^\"]+)\"")
_COMPARED = r"\s*(?:==|!=|in|!in)\s*(\([^)]*\)|\"[^\"]*\")"
#: A line with all that lines of their own accord have.
_SAY_ALL = """
from shared.telemetry import logs
logs.configure()
with logs.bound(tenant="t", kind="k", job="j", attempt=1, pool="p"):
    try:
        raise ValueError
    except ValueError:
        logs.get_logger("x").exception("y")
"""


def _queries() -> dict[str, str]:
    """Each query about the worker's telemetry, by where it stands."""
    found = {}
    for page in pages():
        for number, text in enumerate(_KUSTO.findall(page.read_text(encoding="utf-8")), 1):
            found[f"{name(page)} {number}"] = text
    for template in sorted((PROJECT / "infra").rglob("*.bicep")):
        for number, text in enumerate(_BICEP_QUERY.findall(template.read_text(encoding="utf-8")), 1):
            found[f"{name(template)} {number}"] = text.replace("\\'", "'")
    return found


QUERIES = _queries()


@cache
def _lines() -> dict[str, set[str]]:
    """What `shared/` logs: event -> its own fields."""
    found: dict[str, set[str]] = {}
    for path in (PROJECT / "shared").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and _is_log_call(call) and isinstance(call.args[0], ast.Constant):
                fields = {keyword.arg for keyword in call.keywords if keyword.arg}
                found.setdefault(str(call.args[0].value), set()).update(fields)
    return found


def _is_log_call(call: ast.Call) -> bool:
    of = call.func
    return (
        isinstance(of, ast.Attribute) and of.attr in _LEVELS and isinstance(of.value, ast.Name) and of.value.id == "log"
    )


@cache
def _texts() -> str:
    """What texts of `shared/` are made of. Batch's own words, which it hands on, are in the page on refusals."""
    nodes = [
        node
        for path in (PROJECT / "shared").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]
    texts = [str(node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join([*texts, (PROJECT / "docs/networking.md").read_text(encoding="utf-8")])


@cache
def _fields_of_every_line() -> frozenset[str]:
    done = subprocess.run(
        [sys.executable, "-c", _SAY_ALL], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True
    )
    return frozenset(json.loads(done.stderr))


def _compared(query: str, what: str) -> set[str]:
    """The texts that something is compared with."""
    return {text for group in re.findall(rf"{what}{_COMPARED}", query) for text in re.findall(r'"([^"]*)"', group)}


def _faults(query: str) -> Iterator[str]:
    events = _compared(query, r"\bevent")
    yield from (f"no line says {event!r}" for event in events - _lines().keys())
    known = _fields_of_every_line().union(*(_lines().get(event, ()) for event in events))
    yield from (f"these lines have no field {field!r}" for field in set(re.findall(r"\bline\.(\w+)", query)) - known)
    yield from (f"no result is {result!r}" for result in _compared(query, r"\bresult\)?") - set(Result))
    pieces = {piece for text in _PIECE.findall(query) for piece in text.split("|")}
    yield from (f"nothing says {piece!r}" for piece in sorted(pieces) if piece not in _texts())
    yield from (f"there is no function {one!r}" for one in _compared(query, r"\b(?:operation_)?[Nn]ame") - _functions())


@cache
def _functions() -> frozenset[str]:
    source = (PROJECT / "function_app.py").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^@app\.function_name\(\"(\w+)\"\)", source, re.MULTILINE))


def _is_of_the_worker(query: str) -> bool:
    return "AzureDiagnostics" not in query


def test_there_are_queries_for_what_operators_watch() -> None:
    asked = set().union(*(_compared(query, r"\bevent") for query in QUERIES.values()))
    wanted = {"finished", "ended", "preempted", "waits", "waits for an operator", "message rejected", "orphan task"}
    wanted |= {"routed", "pool demoted", "was interrupted and runs again"}
    assert wanted <= asked
    assert any("alerts.bicep" in where for where in QUERIES)


@pytest.mark.parametrize("where", [where for where, query in QUERIES.items() if _is_of_the_worker(query)])
def test_a_query_asks_for_what_the_code_logs(where: str) -> None:
    assert list(_faults(QUERIES[where])) == []


def _alert(name: str) -> str:
    template = (PROJECT / "infra/modules/alerts.bicep").read_text(encoding="utf-8")
    found = _BICEP_QUERY.search(template.partition(f"name: '{name}'")[2])
    assert found
    return found[1].replace("\\'", "'")


def test_what_should_never_be_there_is_the_same_in_page_and_alert() -> None:
    page = (PROJECT / "docs/deployment.md").read_text(encoding="utf-8")
    query = _KUSTO.findall(page.partition("### What should never be there")[2])[0]
    told = _compared(_alert("worker-fault"), r"\bevent")
    assert "part of the run failed" in told
    assert _compared(query, r"\bevent") == told


def test_whatever_stops_a_pool_from_being_of_use_is_told() -> None:
    told = _compared(_alert("sick-pool"), r"\bevent")
    assert {"pool demoted", "autoscale enabled again"} <= told
    assert _errors_of("pools/care.py") - {"node not disabled"} <= told


def _errors_of(module: str) -> set[str]:
    source = (PROJECT / "shared" / module).read_text(encoding="utf-8")
    return set(re.findall(r'log\.error\(\s*"([^"]+)"', source))


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ('traces | where event == "finnished"', "no line says 'finnished'"),
        ('traces | where event in ("waits", "weights")', "no line says 'weights'"),
        ('traces | where event == "waits" | project line.reason', "these lines have no field 'reason'"),
        ('traces | where event == "finished" and line.result == "Failed"', "no result is 'Failed'"),
        ('requests | where name == "timer"', "there is no function 'timer'"),
        ('traces | where event == "waits" and line.why contains "no kapacity"', "nothing says 'no kapacity'"),
        ('traces | where event == "waits" and line.why matches regex "quota|qota"', "nothing says 'qota'"),
    ],
)
def test_a_query_that_does_not_fit_is_noticed(query: str, fault: str) -> None:
    assert list(_faults(query)) == [fault]
    assert list(_faults('traces | where event == "waits" | project line.why, line.tenant, line.level')) == []
