"""Mistakes in the templates do not pass: each is made in a copy, and must be found by the compiler or by the tests."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from infra import check
from infra.compiler import Compiler, find_compiler
from tests.infra import expectations
from tests.infra.snapshots import PROJECT, Json, load, pools, text

POOL, SHARED, APP = "modules/batchPool.bicep", "shared-pools.bicep", "main.bicep"
KEY_OUTPUT = "output key string = batchAccount.listKeys().primary\n"


def _scales(snapshot: Json) -> None:
    for pool in pools(snapshot).values():
        formula = pool["properties"]["scaleSettings"]["autoScale"]["formula"]
        expectations.formula_scales(formula, "TargetLowPriorityNodes", slots=4, minimum=1, maximum=3, minutes=10)


def _submits(snapshot: Json) -> None:
    expectations.roles_of_an_app(snapshot, shares_pools=True, batch_role=expectations.BATCH_JOB_SUBMITTER)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(PROJECT / "infra", tmp_path / "infra", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copy(PROJECT / "bicepconfig.json", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def compiler() -> Compiler | None:
    return find_compiler(os.environ)


def _mutate(project: Path, file: str, before: str, after: str) -> None:
    path = project / "infra" / file
    source = path.read_text("utf-8")
    assert before in source, "the mutation has lost its place"
    path.write_text(source.replace(before, after), "utf-8")


@pytest.mark.parametrize(
    ("file", "before", "after", "diagnostic"),
    [
        pytest.param(POOL, "taskSlotsPerNode: task", "taskSlotsPerNodes: task", "BCP089", id="misspelt-property"),
        pytest.param(POOL, "subnetId: subnetId", "subnetId: subnet", "BCP057", id="undefined-variable"),
        pytest.param(POOL, "vmSize: vmSize", "vmSize: 16", "BCP036", id="wrong-type"),
        pytest.param(SHARED, "    acrName: acrName\n", "", "BCP035", id="missing-parameter"),
        pytest.param(POOL, "pools@2025-06-01", "pools@2099-01-01", "BCP081", id="unknown-api-version"),
        pytest.param(POOL, "pools@2025-06-01", "pools@2020-09-01", "use-recent-api-versions", id="old-api-version"),
        pytest.param(
            POOL, "@description('Id of the pool, for", f"{KEY_OUTPUT}@description('Id of the pool, for",
            "outputs-should-not-contain-secrets", id="secret-in-an-output",
        ),
    ],
)  # fmt: skip
def test_the_compiler_finds_it(
    project: Path, compiler: Compiler | None, file: str, before: str, after: str, diagnostic: str
) -> None:
    """Without one, it is seen at least that the committed results are not of this source."""
    _mutate(project, file, before, after)
    assert any(fault.startswith(f"infra/{file}: changed") for fault in check.committed_faults(project))
    if compiler:
        assert diagnostic in compiler.lint(project, f"infra/{file}").complaints


@pytest.mark.parametrize(
    ("file", "before", "after", "case", "in_snapshot", "expectation"),
    [
        pytest.param(
            SHARED, ":2404:latest'", ":2204:latest'", "pools-autoscale-spot",
            ('"sku": "2404"', '"sku": "2204"'), expectations.nothing_retired, id="image-without-its-agent",
        ),
        pytest.param(
            SHARED, "ubuntu 24.04'", "ubuntu 22.04'", "pools-autoscale-spot",
            ("ubuntu 24.04", "ubuntu 22.04"), expectations.nothing_retired, id="retired-image",
        ),
        pytest.param(
            APP, expectations.BATCH_JOB_SUBMITTER, expectations.BATCH_DATA_CONTRIBUTOR, "main-shared",
            (expectations.BATCH_JOB_SUBMITTER, expectations.BATCH_DATA_CONTRIBUTOR), _submits, id="wrong-role",
        ),
        pytest.param(
            POOL, "$PendingTasks", "$ActiveTasks", "pool-four-slots",
            ("$PendingTasks", "$ActiveTasks"), _scales, id="formula-counts-active",
        ),
        pytest.param(
            POOL, "busy + lost", "busy", "pool-four-slots",
            ("busy + lost", "busy"), _scales, id="formula-replaces-none",
        ),
        pytest.param(
            POOL, "slots - 0.01", "slots", "pool-four-slots",
            ("slots - 0.01", "slots"), _scales, id="formula-rounding",
        ),
        pytest.param(
            APP, "  WATCH_SCHEDULE: ''\n", "", "main-shared",
            ('"WATCH_SCHEDULE": "",', ""), expectations.every_setting, id="missing-setting",
        ),
    ],
)  # fmt: skip
def test_what_would_be_deployed_is_compared_and_tested(
    project: Path,
    compiler: Compiler | None,
    file: str,
    before: str,
    after: str,
    case: str,
    in_snapshot: tuple[str, str],
    expectation: Callable[[Json], None],
) -> None:
    """The compiler accepts it, but the snapshot differs; and with the snapshot written anew, the tests object."""
    expectation(load(case))
    changed = text(case).replace(*in_snapshot)
    assert changed != text(case)
    with pytest.raises(AssertionError):
        expectation(json.loads(changed))

    _mutate(project, file, before, after)
    assert any(fault.startswith(f"infra/{file}: changed") for fault in check.committed_faults(project))
    if compiler:
        parameters = project / f"infra/snapshots/{case}.bicepparam"
        assert compiler.validate_snapshot(parameters).complaints
        assert compiler.write_snapshot(parameters).complaints == ""
        with pytest.raises(AssertionError):
            expectation(json.loads(check.snapshot_of(parameters).read_text("utf-8")))
