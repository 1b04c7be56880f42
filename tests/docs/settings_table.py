"""The settings table as docs/configuration.md shows it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shared.batch.read import iso8601
from shared.errors import ConfigurationError
from shared.settings.load import load_settings
from shared.settings.table import Settings

HEADER = "| setting | default | meaning |\n|---|---|---|"


def settings_table() -> str:
    """One row per setting, in the order of `shared/settings/table.py`."""
    required = _required()
    rows = [
        f"| `{field.alias}` | {_default(field, field.alias in required)} | {_cell(str(field.description))} |"
        for field in Settings.model_fields.values()
    ]
    return "\n".join([HEADER, *rows])


def _required() -> set[str]:
    """The settings that an empty environment is told to set."""
    names = sorted((str(field.alias) for field in Settings.model_fields.values()), key=len, reverse=True)
    try:
        load_settings({})
    except ConfigurationError as error:
        return {next(name for name in names if fault.startswith(name)) for fault in error.faults}
    return set()


def _default(field: Any, is_required: bool) -> str:
    if is_required:
        return "**must be set**"
    if field.default_factory is not None or field.default in (None, ""):
        return "–"
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    value = iso8601(field.default) if isinstance(field.default, timedelta) else field.default
    return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
