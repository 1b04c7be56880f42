"""No secret leaves a template, and nothing in one differs from deployment to deployment by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.infra.snapshots import PROJECT, load, names, text

TEMPLATES = sorted((PROJECT / "infra").rglob("*.bicep"))
#: Where a key may be written to.
SECRET_SETTINGS = {"BLOB_CONNECTION_STRING", "AZURE_BATCH_ACCOUNT_KEY"}


@pytest.mark.parametrize("name", names())
def test_outputs_hold_no_secret(name: str) -> None:
    outputs = json.dumps(load(name)["outputs"])
    assert not re.search(r"listKeys|list\w*\(|AccountKey|ConnectionString|sig=", outputs, re.IGNORECASE)


def _places_of_keys(value: Any, name: str = "") -> set[str]:
    if isinstance(value, dict):
        return {place for key, item in value.items() for place in _places_of_keys(item, key)}
    if isinstance(value, list):
        return {place for item in value for place in _places_of_keys(item, name)}
    return {name} if isinstance(value, str) and "listKeys(" in value else set()


@pytest.mark.parametrize("name", names())
def test_keys_go_into_two_settings_only(name: str) -> None:
    assert _places_of_keys(load(name)) <= SECRET_SETTINGS


def test_keys_are_read_by_the_deployment() -> None:
    assert _places_of_keys(load("main-shared")) == {"BLOB_CONNECTION_STRING"}


@pytest.mark.parametrize("name", names())
def test_snapshots_hold_no_key(name: str) -> None:
    assert not re.search(r"[A-Za-z0-9+/]{80,}==", text(name))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_texts_that_are_secrets_are_secure_parameters(template: Path) -> None:
    found = re.findall(r"((?:^@.*\n)*)^param (\w+) string", template.read_text("utf-8"), re.MULTILINE)
    secrets = [(above, name) for above, name in found if re.search(r"(?i)password|secret|connectionString|key$", name)]
    assert [name for above, name in secrets if "@secure()" not in above] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_every_parameter_and_output_is_explained(template: Path) -> None:
    source = template.read_text("utf-8")
    for match in re.finditer(r"((?:^[@ '\])].*\n)*)^(?:param|output) (\w+)", source, re.MULTILINE):
        assert "@description('" in match[1], match[2]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_the_same_deployment_twice_is_the_same(template: Path) -> None:
    assert not re.search(r"\b(utcNow|newGuid)\(", template.read_text("utf-8"))
