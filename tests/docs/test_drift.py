"""The settings are the same in the code, in docs/configuration.md, in the local sample and in the template's app."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from infra.check import committed_faults
from shared.settings.load import setting_names
from tests.docs.pages import PROJECT

PAGE = (PROJECT / "docs/configuration.md").read_text(encoding="utf-8")
SNAPSHOTS = sorted((PROJECT / "infra/snapshots").glob("main-*.snapshot.json"))
#: The template takes the identity forms of the first instead, and Flex Consumption refuses the second.
NOT_IN_AZURE = {"AzureWebJobsStorage", "FUNCTIONS_WORKER_RUNTIME"}


def _first_column(heading: str) -> set[str]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def _of_the_host(name: str) -> bool:
    """Listed as read by the host, as it is or with a function's name in it."""
    listed = _first_column("Settings of the host")
    return (
        name in listed or re.sub(r"^AzureWebJobs\.\w+\.Disabled$", "AzureWebJobs.<function>.Disabled", name) in listed
    )


def _settings(snapshot: Path) -> set[str]:
    """Names of the app settings that a deployment makes."""
    resources = json.loads(snapshot.read_text(encoding="utf-8"))["predictedResources"]
    (app_settings,) = [one for one in resources if one["id"].endswith("/config/appsettings")]
    return set(app_settings["properties"])


def test_the_page_has_the_settings_of_the_code() -> None:
    assert _first_column("Settings") == set(setting_names())


def test_the_sample_has_the_settings_of_the_code() -> None:
    values = set(json.loads((PROJECT / "local.settings.sample.json").read_text(encoding="utf-8"))["Values"])
    assert {name for name in values if not _of_the_host(name)} == set(setting_names())


@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=lambda path: path.name.partition(".")[0])
def test_the_app_in_azure_has_the_settings_of_the_code(snapshot: Path) -> None:
    names = _settings(snapshot)
    assert {name for name in names if not _of_the_host(name)} == set(setting_names()) - NOT_IN_AZURE
    assert names & NOT_IN_AZURE == set()


def test_the_apps_to_compare_with_are_of_the_templates_as_they_are() -> None:
    assert committed_faults(PROJECT) == []


def test_there_are_apps_to_compare_with() -> None:
    assert len(SNAPSHOTS) > 1
