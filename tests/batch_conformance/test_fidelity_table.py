"""docs/batch-emulator.md says what the emulator does: its tables, its examples, and the tests that it names."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.batch import World, WorldConfig
from local.batch.config import Assumptions
from local.batch.faults import Faults
from local.batch.routes import ROUTES
from tests.batch_conformance.wire import POOL, Wire
from tests.support.serving import serving

_PROJECT = Path(__file__).resolve().parents[2]
_PAGE = (_PROJECT / "docs/batch-emulator.md").read_text(encoding="utf-8")
_OPERATIONS = ("operation", "request", "", "what differs", "proven by")
_RULES = ("rule", "", "what differs", "proven by")
_REFUSED = ("property", "request")
_DEFAULTS = ("question", "default", "switch", "proven by")
_FIDELITIES = {"supported", "differs", "absent"}

Row = dict[str, str]


def _table(header: tuple[str, ...]) -> list[Row]:
    """The rows of the table with this header; code marks are taken off cells that are code as a whole."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in _PAGE.splitlines() if line[:1] == "|"]
    start = rows.index(list(header)) + 2
    table = []
    for row in rows[start:]:
        if len(row) != len(header) or _is_header(rows, row):
            break
        table.append(dict(zip(header, (re.sub(r"^`([^`]*)`$", r"\1", cell) for cell in row), strict=True)))
    return table


def _is_header(rows: list[list[str]], row: list[str]) -> bool:
    after = rows[rows.index(row) + 1 :]
    return bool(after) and set("".join(after[0])) == {"-"}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)


@cache
def _functions(path: str) -> set[str]:
    tree = ast.parse((_PROJECT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_operation_is_in_the_table_and_no_other() -> None:
    shown = [(row["operation"], row["request"]) for row in _table(_OPERATIONS)]

    assert shown == [(route.operation, f"{route.method} {route.template}") for route in ROUTES]


@pytest.mark.parametrize("header", [_OPERATIONS, _RULES], ids=["operations", "rules"])
def test_what_differs_is_said_where_something_differs(header: tuple[str, ...]) -> None:
    for row in _table(header):
        assert row[""] in _FIDELITIES, row
        assert bool(row["what differs"]) == (row[""] == "differs"), row


@pytest.mark.parametrize("row", _table(_OPERATIONS), ids=lambda row: row["operation"])
def test_what_is_said_to_be_absent_answers_501_and_nothing_else_does(wire: Wire, row: Row) -> None:
    method, template = row["request"].split()

    answer = wire.send(method, re.sub(r"\{\w+\}", "x", template), {})

    assert (answer.status == 501) == (row[""] == "absent")
    if answer.body and row[""] == "absent":
        assert answer.refusal == (501, "NotImplementedByEmulator")


_BODIES: dict[str, dict[str, Any]] = {
    "dependsOn": {"dependsOn": {"taskIds": ["a"]}},
    "multiInstanceSettings": {"multiInstanceSettings": {"coordinationCommandLine": "x"}},
    "autoStorageContainerName": {"resourceFiles": [{"autoStorageContainerName": "x"}]},
    "uploadHeaders": {
        "outputFiles": [
            {
                "filePattern": "*",
                "destination": {"container": {"containerUrl": "https://a/c", "uploadHeaders": []}},
                "uploadOptions": {"uploadCondition": "taskcompletion"},
            }
        ]
    },
    "jobManagerTask": {"jobManagerTask": {"id": "x", "commandLine": "x"}},
    "jobPreparationTask": {"jobPreparationTask": {"commandLine": "x"}},
    "jobReleaseTask": {"jobReleaseTask": {"commandLine": "x"}},
    "autoPoolSpecification": {"poolInfo": {"autoPoolSpecification": {}}},
}


def test_every_property_that_is_refused_is_in_the_table() -> None:
    shapes = (_PROJECT / "local/batch/shapes.py").read_text(encoding="utf-8")

    assert {row["property"] for row in _table(_REFUSED)} == set(re.findall(r"(\w+)\"?[=:] ?not_emulated", shapes))


@pytest.mark.parametrize("row", _table(_REFUSED), ids=lambda row: row["property"])
def test_a_property_that_is_said_to_be_refused_is(wire: Wire, row: Row) -> None:
    wire.job()
    method, path = row["request"].split()
    whole = {"id": "new", "commandLine": "x"} if path.endswith("tasks") else {"id": "new", "poolInfo": {"poolId": POOL}}

    answer = wire.send(method, path.replace("{job}", "job"), whole | _BODIES[row["property"]])

    assert answer.refusal == (501, "NotImplementedByEmulator")
    assert row["property"] in answer.json()["message"]["value"]


def _proofs() -> Iterator[str]:
    for header in (_OPERATIONS, _RULES, _DEFAULTS):
        for row in _table(header):
            yield row["proven by"]


@pytest.mark.parametrize("proof", sorted(set(_proofs())))
def test_a_test_that_is_named_exists(proof: str) -> None:
    path, _, name = proof.partition("::")

    assert name in _functions(path)


def test_files_that_are_named_exist() -> None:
    for path in re.findall(r"`((?:local|tests|docs)/[\w/]+\.\w+)`", _PAGE):
        assert (_PROJECT / path).exists(), path


def test_every_assumption_is_in_the_table_with_its_default() -> None:
    shown = {row["switch"]: row["default"] for row in _table(_DEFAULTS)}

    for name, default in asdict(Assumptions()).items():
        assert shown[name] == json.dumps(default)


def test_every_key_of_the_world_is_named() -> None:
    keys = WorldConfig.__dataclass_fields__.keys()
    table = {
        name for row in _table(("key of the world", "what")) for name in re.findall(r"\w+", row["key of the world"])
    }

    assert keys == table


@pytest.mark.parametrize("block", _blocks("json"))
def test_a_world_in_the_page_is_a_world(block: str) -> None:
    World.from_json(json.loads(block)).advance(2 * 86400)


def test_the_world_in_yaml_is_the_one_in_json(tmp_path: Path) -> None:
    (block,) = _blocks("yaml")
    path = tmp_path / "world.yaml"
    path.write_text(block, encoding="utf-8")

    assert WorldConfig.from_file(path) == WorldConfig.from_json(json.loads(_blocks("json")[0]))


def test_the_faults_in_the_page_are_faults() -> None:
    rules = [json.loads(row["rule"]) for row in _table(("rule", "what it does"))]

    assert len(Faults(rules).rules) == len(rules) > 1


def test_what_curl_sends_is_taken() -> None:
    requests = re.findall(r"^curl -X (\w+) http://127.0.0.1:8099(/\S+)(?: -d '(.*)')?$", _PAGE, re.MULTILINE)
    pool = {"id": "spot", "targetLowPriorityNodes": 3, "start_seconds": 0}
    with serving(World.from_json({"pools": [pool]})) as endpoint:
        wire = Wire(endpoint, None)
        job = {"id": "job", "poolInfo": {"poolId": "spot"}}
        wire.done("POST", "/jobs", job)
        wire.task()
        wire.task("other")

        assert len(requests) > 5
        for method, path, body in requests:
            wire.admin(method, path.removeprefix("/admin"), json.loads(body) if body else None)


@pytest.mark.parametrize("block", _blocks("python"))
def test_the_python_in_the_page_runs(block: str) -> None:
    pool = {"id": "spot", "targetLowPriorityNodes": 1, "start_seconds": 0}
    with serving(World.from_json({"pools": [pool]})) as endpoint:
        program = block.replace("http://127.0.0.1:8099", endpoint)

        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=_PROJECT,
            env=os.environ | {"NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert (done.returncode, done.stderr) == (0, "")
