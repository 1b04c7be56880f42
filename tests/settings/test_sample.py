"""`local.settings.sample.json` is the settings table, with an example for what has no default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.settings.load import load_settings, setting_names
from shared.settings.table import Settings

SAMPLE = Path(__file__).resolve().parents[2] / "local.settings.sample.json"
HOST_ONLY = {"FUNCTIONS_WORKER_RUNTIME": "python"}
EXAMPLES = {
    "AzureWebJobsStorage",
    "BLOB_CONNECTION_STRING",
    "METADATA_STORAGE_TYPE",
    "ARTIFACT_STORAGE_TYPE",
    "TITILER_ENDPOINT",
    "AZURE_BATCH_ACCOUNT_NAME",
    "AZURE_BATCH_URL",
    "AZURE_BATCH_OUTPUT_CONTAINER_URL",
    "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
    "AZURE_BATCH_DOCKER_IMAGE",
    "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE",
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SAMPLE.read_text())
    return loaded


def test_it_is_a_file_the_functions_host_reads(document: dict[str, Any]) -> None:
    assert set(document) == {"IsEncrypted", "Values"}
    assert document["IsEncrypted"] is False
    assert all(isinstance(value, str) for value in document["Values"].values())


def test_it_has_every_setting_in_the_tables_order_and_no_other(document: dict[str, Any]) -> None:
    assert list(document["Values"]) == [*HOST_ONLY, *setting_names()]
    assert document["Values"] | HOST_ONLY == document["Values"]


def test_it_loads_and_shows_the_defaults(document: dict[str, Any]) -> None:
    settings = load_settings(document["Values"])
    for attribute, field in Settings.model_fields.items():
        if field.alias in EXAMPLES:
            continue
        if field.default_factory is not None or field.default is None:
            assert document["Values"][field.alias] == "", field.alias
        else:
            assert document["Values"][field.alias] != "", field.alias
            assert getattr(settings, attribute) == field.default, field.alias
