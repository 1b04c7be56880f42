"""The package as it would be uploaded, unpacked, and the environment that Azure would build for it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from tests.package.clean_environment import CleanEnvironment, NotInstalledError, made
from tests.package.publishing import make_zip

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip that a publish of this project uploads."""
    return make_zip(PROJECT, tmp_path_factory.mktemp("package") / "package.zip")


@pytest.fixture(scope="session")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that Azure unpacks it into."""
    folder = tmp_path_factory.mktemp("wwwroot")
    with zipfile.ZipFile(package) as files:
        files.extractall(folder)
    return folder


@pytest.fixture(scope="session")
def clean() -> CleanEnvironment:
    """A Python with only `requirements.txt` installed."""
    try:
        return made()
    except NotInstalledError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(f"requirements.txt could not be installed: {error}")
