"""docs/configuration.md says what `shared/settings/table.py` says."""

from __future__ import annotations

import re

from shared.settings.load import setting_names
from tests.docs.pages import PROJECT
from tests.docs.settings_table import HEADER, settings_table

PAGE = (PROJECT / "docs/configuration.md").read_text(encoding="utf-8")


def test_the_table_is_the_settings_table() -> None:
    start = PAGE.index(HEADER)
    shown = PAGE[start : PAGE.index("\n\n", start)]
    expected = settings_table()
    assert shown == expected, f"put this table into docs/configuration.md:\n\n{expected}\n"


def test_every_setting_in_the_pages_exists() -> None:
    """A name that looks like a setting of ours is one."""
    known = {*setting_names(), "HASTE_LOCAL_FAIL"}
    for name in set(re.findall(r"`((?:AZURE_BATCH|WORKER|WATCH|BLOB|TITILER)_[A-Z_]+[A-Z])`", PAGE)):
        assert name in known, name
