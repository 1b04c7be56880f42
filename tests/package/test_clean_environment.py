"""The uploaded package works where only `requirements.txt` is installed: it is found, it answers, it does a job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.certificates import Certificates
from local.stack import BlockingStack, Stack, StackOptions, running_stack
from tests.package.clean_environment import CleanEnvironment
from tests.package.conftest import PROJECT
from tests.support.outside import ENDED, Haste, wait_for
from tests.support.stacks import QUICK

PROGRAM = str(Path(__file__).with_name("in_package.py"))
TRIGGERS = {
    "imageryprep": "queueTrigger",
    "training": "queueTrigger",
    "inference": "queueTrigger",
    "jobs": "queueTrigger",
    "watch": "timerTrigger",
    "health": "httpTrigger",
}
#: The Functions worker has these on the same import path, in versions of its own.
OF_THE_WORKER = {"protobuf", "grpcio", "azure-functions-runtime"}
NOT_THERE = {"pip", "setuptools", "pytest", "aiohttp", "tensorboard", "pyyaml", *OF_THE_WORKER}


@pytest.fixture(scope="module")
def found(clean: CleanEnvironment, unpacked: Path) -> dict[str, Any]:
    """What the app is, without a single setting."""
    report: dict[str, Any] = json.loads(clean.run(PROGRAM, "index", folder=unpacked))
    return report


@pytest.fixture(scope="module")
def services(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingStack]:
    """Everything but a functions host."""
    options = StackOptions(tmp_path_factory.mktemp("run"), settings=QUICK, certificates=certificates)
    with running_stack(options) as started:
        yield started


@pytest.fixture
def stack(services: BlockingStack) -> Stack:
    return services.stack


def test_every_function_is_found(found: dict[str, Any]) -> None:
    assert {name: trigger["type"] for name, trigger in found["triggers"].items()} == TRIGGERS


def test_nothing_is_imported_from_elsewhere(found: dict[str, Any], clean: CleanEnvironment, unpacked: Path) -> None:
    allowed = (str(unpacked), str(clean.python.parents[1]), sys.base_prefix, str(Path(PROGRAM).parent))
    assert [path for path in found["files"] if not path.startswith(allowed)] == []
    assert str(unpacked / "shared" / "app.py") in found["files"]
    assert str(PROJECT) not in found["paths"]


def test_only_what_is_asked_for_is_installed(found: dict[str, Any], clean: CleanEnvironment) -> None:
    lines = (PROJECT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line.partition("==") for line in lines if line and not line.startswith("#")]
    assert all(exactly == "==" and version for _name, exactly, version in pinned)
    installed = set(found["installed"])
    assert {name for name, _exactly, _version in pinned} <= installed
    assert installed & NOT_THERE == set()
    size, seconds = f"{clean.size_bytes / 1024**2:.0f} MB", f"{clean.install_seconds:g} s"
    print(f"{size} in {len(installed)} packages, installed in {seconds}")  # noqa: T201  (reported, not asserted)


def test_health_answers(clean: CleanEnvironment, unpacked: Path, stack: Stack) -> None:
    answer = json.loads(clean.run(PROGRAM, "health", folder=unpacked, environment=stack.environment("tenanta")))
    assert answer["body"]["ok"] is True, answer
    assert answer["status"] == 200


def test_a_request_is_processed(clean: CleanEnvironment, unpacked: Path, stack: Stack, tmp_path: Path) -> None:
    """HASTE's message for a layer goes through queue, Batch and timer, to a record that says Processed."""
    layer = Haste(stack, "tenanta").new_layer()
    log = tmp_path / "log"
    with log.open("w") as lines:
        serving = subprocess.Popen(
            [clean.python, "-I", PROGRAM, "serve"],
            cwd=unpacked,
            env=stack.environment("tenanta"),
            stdin=subprocess.PIPE,
            stdout=lines,
            stderr=lines,
        )
    try:
        wait_for(lambda: layer.status in ENDED or serving.poll() is not None, 120.0)
        assert serving.poll() is None, log.read_text()
        assert layer.status == "Processed", log.read_text()
    finally:
        serving.communicate(timeout=60)
    assert serving.returncode == 0, log.read_text()
