"""What Microsoft's runtime package finds in the app, in a process of its own as in Azure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shared.kinds import Kind
from shared.settings.table import Settings

INDEX = """
import asyncio, json, sys
from pathlib import Path
from local.functions_host.runtime_adapter import load_app

found = asyncio.run(load_app(Path(sys.argv[1])))
print(json.dumps({function.name: list(function.bindings) for function in found}))
"""
IMPORT_WITHOUT_NETWORK = """
import os, socket

def refused(*_arguments, **_named):
    raise SystemExit("importing the app reaches for the network")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused
import function_app
print(sorted(function.get_function_name() for function in function_app.app.get_functions()))
"""
FUNCTIONS = {"imageryprep", "training", "inference", "jobs", "watch", "health"}
QUEUE_SETTINGS = {
    "imageryprep": "IMAGE_QUEUE_NAME",
    "training": "TRAIN_QUEUE_NAME",
    "inference": "INFERENCE_QUEUE_NAME",
    "jobs": "WORKER_QUEUE_NAME",
}
DEFAULT_QUEUES = {
    "imageryprep": "image-layers-queue",
    "training": "train-queue",
    "inference": "inference-queue",
    "jobs": "haste-worker-jobs",
}


def program(text: str, environment: Mapping[str, str], app_folder: Path) -> str:
    """What a program prints; it must end well."""
    done = subprocess.run(
        [sys.executable, "-c", text, str(app_folder)],
        env=dict(environment),
        cwd=app_folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def index(app_folder: Path, environment: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The app's functions by name, each with its bindings."""
    found: dict[str, list[dict[str, Any]]] = json.loads(program(INDEX, environment, app_folder))
    return found


def trigger(bindings: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [one for one in bindings if one["type"].lower().endswith("trigger")]
    return found


@pytest.fixture(scope="module")
def bare(app_folder: Path, bare_environment: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The app as it is found when not one setting is there."""
    return index(app_folder, bare_environment)


def test_exactly_these_functions(bare: dict[str, list[dict[str, Any]]]) -> None:
    assert bare.keys() == FUNCTIONS


def test_without_settings_the_triggers_take_the_defaults(bare: dict[str, list[dict[str, Any]]]) -> None:
    for function, queue in DEFAULT_QUEUES.items():
        found = trigger(bare[function])
        assert (found["type"], found["queueName"]) == ("queueTrigger", queue)
        assert found["connection"] == "AzureWebJobsStorage"
    watch = trigger(bare["watch"])
    assert (watch["type"], watch["schedule"]) == ("timerTrigger", "*/30 * * * * *")
    assert watch["runOnStartup"] is False


def test_each_kind_has_a_function_on_its_queue(bare: dict[str, list[dict[str, Any]]]) -> None:
    settings = Settings.model_validate({})
    bound = {name: trigger(bindings).get("queueName") for name, bindings in bare.items()}
    assert {kind: bound.get(kind.value) for kind in Kind} == {kind: settings.of(kind).queue_name for kind in Kind}


def test_health_asks_for_the_functions_key(bare: dict[str, list[dict[str, Any]]]) -> None:
    found = trigger(bare["health"])
    assert (found["type"], found["route"]) == ("httpTrigger", "health")
    assert found["authLevel"].lower() == "function"
    assert [str(method).lower() for method in found["methods"]] == ["get"]


def test_settings_that_are_there_are_bound_to(app_folder: Path, bare_environment: dict[str, str]) -> None:
    settings = {name: f"queue-{number}" for number, name in enumerate(QUEUE_SETTINGS.values())}
    found = index(app_folder, {**bare_environment, **settings, "WATCH_SCHEDULE": "0 * * * * *"})
    for function, setting in QUEUE_SETTINGS.items():
        assert trigger(found[function])["queueName"] == f"%{setting}%"
    assert trigger(found["watch"])["schedule"] == "%WATCH_SCHEDULE%"


def test_an_empty_setting_is_none(app_folder: Path, bare_environment: dict[str, str]) -> None:
    found = index(app_folder, {**bare_environment, "TRAIN_QUEUE_NAME": "", "WATCH_SCHEDULE": " "})
    assert trigger(found["training"])["queueName"] == DEFAULT_QUEUES["training"]
    assert trigger(found["watch"])["schedule"] == "*/30 * * * * *"


def test_importing_needs_no_setting_and_no_network(app_folder: Path) -> None:
    assert program(IMPORT_WITHOUT_NETWORK, {}, app_folder) == str(sorted(FUNCTIONS))
