"""The project keeps its rules, and each rule notices who breaks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.rules import Sources

Rule = Callable[[Sources], list[str]]

RULES: dict[Rule, list[dict[str, str]]] = {
    rules.batch_sdk_in_one_module: [
        {"shared/requests/driver.py": "from azure.batch import BatchClient"},
        {
            "shared/batch/client.py": "import azure.batch",
            "shared/batch/read.py": "from azure.batch.models import BatchTask",
        },
    ],
    rules.retries_in_one_module: [{"shared/requests/driver.py": "import tenacity"}],
    rules.settings_are_read_in_one_place: [
        {"shared/requests/driver.py": "import os\nX = os.environ['X']"},
        {"shared/requests/driver.py": "from os import getenv\ngetenv('X')"},
        {"function_app.py": "import os\nos.getenv('X')"},
    ],
    rules.what_ships_imports_only_what_ships: [
        {"shared/a.py": "import local.batch"},
        {"shared/a.py": "def f():\n    from tests import network_guard"},
        {"function_app.py": "from bench.calls import measure"},
        {"operate/replay.py": "from local.stack import Stack"},
    ],
    rules.triggers_only_bind: [
        {"function_app.py": "def f(msg):\n    if msg:\n        act()"},
        {"function_app.py": "def f(msg):\n    try:\n        act()\n    finally:\n        end()"},
        {"function_app.py": "def f(msg):\n    a()\n    b()\n    c()\n    d()\n    e()\n    f()"},
        {"function_app.py": "class Handler:\n    pass"},
    ],
    rules.modules_have_a_name_and_a_size: [
        {"shared/utils.py": ""},
        {"shared/common/ids.py": ""},
        {"local/batch/helpers.py": ""},
        {"shared/requests/driver.py": "x = 1\n" * 301},
    ],
    rules.haste_shapes_stay_in_one_package: [
        {"shared/requests/haste_records.py": "def f(record):\n    return record['statusMessage']"},
        {"function_app.py": "FIELD = 'inferenceJobs'"},
        {"shared/requests/adopt.py": "def f(shown):\n    return shown.status == 'InProgress'"},
    ],
    rules.records_are_made_in_one_place: [
        {"shared/requests/driver.py": "record = replace(record, state=State.FINISHING)"},
        {"shared/requests/attempt.py": "import dataclasses\nrecord = dataclasses.replace(version.record, reason='x')"},
        {"shared/requests/finish.py": "record = replace(version.record, outcome=None, zip_asked=True)"},
        {"shared/requests/accept.py": "record = Record(entity, request, State.WAITING, now)"},
    ],
    rules.rooms_import_downwards_only: [
        {"shared/protocol/table.py": "from shared.haste import records"},
        {"shared/batch/client.py": "def f():\n    from shared.worker import Worker"},
        {"shared/errors.py": "from shared import kinds"},
        {"shared/new_room/thing.py": ""},
        {"shared/pools/routing.py": "import shared.requests.driver"},
    ],
    rules.nothing_foreign_is_named: [
        {"Makefile": "pip install --index-url https://pypi" + ".org/simple x"},
        {"package-lock.json": "https://registry.npm" + "js.org/azurite"},
        {"README.md": "see /work" + "/main/README.md"},
        {"docs/a.md": "cd /ro" + "ot/x"},
        {"docs/a.md": "in ../shar" + "ed/design.md"},
        {".ci/run": "cat /tm" + "p/log"},
    ],
}
PURE = dict.fromkeys(rules.DECISIONS, "from dataclasses import dataclass")
IMPURE = [
    ({}, "import requests"),
    ({}, "from datetime import datetime\nAT = datetime.now()"),
    ({}, "import os\nX = os.environ['X']"),
    ({"shared/batch/types.py": "from azure.core import exceptions"}, "from shared.batch.types import TaskView"),
    ({"shared/a.py": "from shared import b", "shared/b.py": "import time"}, "from shared.a import x"),
]


@pytest.fixture(scope="session")
def project() -> dict[str, str]:
    found = rules.project_sources(Path(__file__).resolve().parents[2])
    assert {"function_app.py", "shared/requests/driver.py", "README.md", *rules.DECISIONS} <= found.keys()
    return found


@pytest.mark.parametrize("rule", [*RULES, rules.decisions_are_pure], ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(project: dict[str, str], rule: Rule) -> None:
    assert rule(project) == []


@pytest.mark.parametrize(
    ("rule", "sources"),
    [(rule, sources) for rule, broken in RULES.items() for sources in broken],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_rule_is_noticed(rule: Rule, sources: dict[str, str]) -> None:
    assert len(rule(sources)) >= 1


@pytest.mark.parametrize("decision", rules.DECISIONS)
@pytest.mark.parametrize(("others", "text"), IMPURE)
def test_a_decision_that_is_not_pure_is_noticed(decision: str, others: dict[str, str], text: str) -> None:
    assert rules.decisions_are_pure(PURE) == []
    assert rules.decisions_are_pure(PURE | others | {decision: text}) != []


def test_a_clock_that_is_handed_over_is_fine() -> None:
    text = "def judge(now):\n    return now"
    assert rules.decisions_are_pure(PURE | {rules.DECISIONS[0]: text}) == []
