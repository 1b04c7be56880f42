"""Reading the app settings from the environment: all faults at once, by setting name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pydantic import ValidationError

from shared.errors import ConfigurationError
from shared.settings.rules import broken_rules
from shared.settings.table import Settings
from shared.telemetry.logs import redact

_PLACEHOLDER = re.compile(r"<[^<>]*>")


def setting_names() -> tuple[str, ...]:
    """The name of every setting, in the table's order."""
    return tuple(str(field.alias) for field in Settings.model_fields.values())


def setting_or_default(name: str) -> str:
    """What a trigger binds to: `%NAME%` if the setting is there, else its default, so that nothing new must be set."""
    default = next(field.default for field in Settings.model_fields.values() if field.alias == name)
    return f"%{name}%" if os.environ.get(name, "").strip() else str(default)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read all settings. Raises ConfigurationError with every fault at once, none showing a secret's value."""
    given = {name: value for name in setting_names() if (value := environ.get(name, "").strip())}
    faults = {name: _placeholder_fault(name, value) for name, value in given.items() if _PLACEHOLDER.search(value)}
    try:
        settings = Settings.model_validate(_without(given, faults))
    except ValidationError as error:
        faults |= {
            str(fault["loc"][0]): f"{_shown(str(fault['loc'][0]), given)}: {fault['ctx']['error']}"
            for fault in error.errors()
            if fault["type"] == "value_error"  # the rest: defaults that could not be made of a faulty setting
        }
        settings = Settings.model_validate(_without(given, faults))
    for broken in broken_rules(settings):
        if not faults.keys() & {broken.setting, *broken.needs}:
            faults[broken.setting] = f"{broken.setting}{broken.sentence}"
    if faults:
        raise ConfigurationError([faults[name] for name in setting_names() if name in faults])
    return settings


def _without(given: Mapping[str, str], faults: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name not in faults}


def _placeholder_fault(name: str, value: str) -> str:
    return f"{_shown(name, {name: value})}: is still a placeholder; set the real value"


def _shown(name: str, given: Mapping[str, str]) -> str:
    secret = any("SecretStr" in str(f.annotation) for f in Settings.model_fields.values() if f.alias == name)
    return f"{name} (its value is secret)" if secret else f"{name}={redact(given[name])!r}"
