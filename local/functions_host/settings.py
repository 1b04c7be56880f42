"""App settings: the environment, filled up from local.settings.json, and the names the host looks up in them."""

import json
from collections.abc import Mapping
from pathlib import Path

from local.functions_host.faults import HostFaults


class SettingError(ValueError):
    """A `%NAME%` that cannot be resolved; the message names the setting."""


class Settings:
    """Looks settings up as .NET configuration does: without regard to case, `:` and `__` being the same."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {_key(name): value for name, value in values.items()}

    def get(self, name: str) -> str:
        """The setting's value, or an empty string."""
        return self._values.get(_key(name), "")

    def below(self, prefix: str) -> dict[str, str]:
        """Settings named `<prefix>__<rest>`, by rest in lower case."""
        start = _key(prefix) + "__"
        return {name.removeprefix(start): value for name, value in self._values.items() if name.startswith(start)}

    def resolve(self, text: str) -> str:
        """Replace every `%NAME%` in a queue name or schedule. Raises SettingError."""
        parts = text.split("%")
        if len(parts) % 2 == 0:
            raise SettingError(f"{text!r} has a '%' without a closing '%'")
        for position in range(1, len(parts), 2):
            value = self.get(parts[position])
            if not value:
                raise SettingError(f"'%{parts[position]}%' does not resolve to a value: set {parts[position]}")
            parts[position] = value
        return "".join(parts)

    def is_disabled(self, function: str) -> bool:
        """Whether `AzureWebJobs.<function>.Disabled` (or with underscores) turns the function off."""
        names = (f"AzureWebJobs.{function}.Disabled", f"AzureWebJobs_{function}_Disabled")
        return any(self.get(name).strip().lower() in ("true", "1") for name in names)


def read_local_settings(path: Path) -> dict[str, str]:
    """The `Values` of local.settings.json; nothing when there is no such file. Raises HostFaults when unreadable.

    The real tools ignore a whole file that holds an object or array as a value, or that counts as encrypted because
    `IsEncrypted` is missing; here that is an error, since the app would start without its settings.
    """
    if not path.exists():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise HostFaults([f"{path.name} is no valid JSON: {error}"]) from error
    if not isinstance(document, dict):
        raise HostFaults([f"{path.name} must hold a JSON object"])
    faults = []
    if document.get("IsEncrypted", True) is not False:
        faults.append(f'{path.name} needs "IsEncrypted": false')
    values: dict[str, str] = {}
    for section in ("Values", "Host"):
        entries = document.get(section) or {}
        if not isinstance(entries, dict):
            faults.append(f"{path.name}: {section} must be an object of strings")
            continue
        for name, value in entries.items():
            if isinstance(value, dict | list):
                faults.append(f"{path.name}: {section}.{name} is an object or array, which makes the file unreadable")
            elif section == "Values" and value is not None:
                values[name] = value if isinstance(value, str) else json.dumps(value)
    if faults:
        raise HostFaults(faults)
    return values


def _key(name: str) -> str:
    return name.replace(":", "__").casefold()
