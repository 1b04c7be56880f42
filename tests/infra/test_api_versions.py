"""The linter refuses old API versions by today's date: no day until the end of 2028 makes it refuse those in use."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import date
from pathlib import Path

import pytest

from infra import check
from infra.compiler import find_compiler
from tests.infra.snapshots import PROJECT

LAST_DAY = date(2028, 12, 31)
#: No stable one was newer when it was chosen; the linter takes the newest at any age.
NEWEST = {
    "Microsoft.Authorization/roleAssignments@2022-04-01",
    "Microsoft.Insights/components@2020-02-02",
    "Microsoft.Insights/diagnosticSettings@2021-05-01-preview",
    "Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30",
}
_USED = re.compile(r"'(Microsoft\.[\w./]+@(\d{4}-\d\d-\d\d)[\w-]*)'")
_RULE = "use-recent-api-versions"


def _most_days(config: str) -> int:
    return int(json.loads(config)["analyzers"]["core"]["rules"][_RULE]["maxAgeInDays"])


def test_no_version_in_use_becomes_too_old() -> None:
    used = {found for path in check.templates(PROJECT) for found in _USED.findall(path.read_text("utf-8"))}
    most = _most_days((PROJECT / "bicepconfig.json").read_text("utf-8"))
    too_old = {name for name, day in used if (LAST_DAY - date.fromisoformat(day)).days > most}
    assert len(used) > 10, "of all templates"
    assert too_old == NEWEST


def test_the_linter_has_nothing_to_say_on_the_last_day(tmp_path: Path) -> None:
    """A bound that is smaller by the days that are left says today what the committed one says then."""
    compiler = find_compiler(os.environ)
    if compiler is None:
        pytest.skip("no Bicep CLI")
    shutil.copytree(PROJECT / "infra", tmp_path / "infra", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    config = (PROJECT / "bicepconfig.json").read_text("utf-8")
    then = max(0, _most_days(config) - (LAST_DAY - date.today()).days)
    smaller = re.sub(r'("maxAgeInDays": )\d+', rf"\g<1>{then}", config)
    assert _most_days(smaller) == then
    (tmp_path / "bicepconfig.json").write_text(smaller, "utf-8")
    assert compiler.lint(tmp_path, "infra/**/*.bicep").complaints == ""
