"""The project as a Functions app, and a stack to run it on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.certificates import Certificates
from local.stack import BlockingStack, StackOptions, running_stack
from shared.settings.load import setting_names

APP_FOLDER = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def app_folder() -> Path:
    """The folder of function_app.py and host.json."""
    return APP_FOLDER


@pytest.fixture(scope="session")
def bare_environment() -> dict[str, str]:
    """What a program needs to run at all, and none of the app's settings."""
    settings = {name.lower() for name in setting_names()}
    return {name: value for name, value in os.environ.items() if name.lower() not in settings}


@pytest.fixture(scope="module")
def running(
    app_folder: Path, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BlockingStack]:
    """One tenant with one host, one tick a second."""
    settings = {"WATCH_SCHEDULE": "*/1 * * * * *"}
    run_folder = tmp_path_factory.mktemp("run")
    with running_stack(StackOptions(run_folder, app_folder, settings=settings, certificates=certificates)) as started:
        yield started
