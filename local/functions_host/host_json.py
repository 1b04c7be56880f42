"""host.json: what the host takes from it, with the settings that override it."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from local.functions_host.faults import HostFaults
from local.functions_host.settings import Settings
from local.functions_host.timespan import parse_timespan

_Value = TypeVar("_Value")

MIN_POLLING_SECONDS = 0.1
_MAX_POLLING_SECONDS = 60.0
_MAX_POLLING_SECONDS_IN_DEVELOPMENT = 2.0
_FUNCTION_TIMEOUT_SECONDS = 30 * 60.0


@dataclass(frozen=True)
class QueueOptions:
    """The `extensions.queues` section, defaults filled in."""

    batch_size: int
    new_batch_threshold: int
    max_dequeue_count: int
    visibility_timeout_seconds: int
    max_polling_seconds: float
    base64: bool


@dataclass(frozen=True)
class HostOptions:
    """What the host uses of host.json; `function_timeout_seconds` None means no limit."""

    queues: QueueOptions
    function_timeout_seconds: float | None
    route_prefix: str
    has_extensions: bool


def read_host_json(path: Path, settings: Settings, *, processors: int, development: bool = True) -> HostOptions:
    """Read and check host.json. Raises HostFaults with every value the real host would refuse."""
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise HostFaults([f"host.json cannot be read: {error.strerror}"]) from error
    except ValueError as error:
        raise HostFaults([f"host.json is no valid JSON: {error}"]) from error
    return parse_host_json(document, settings, processors=processors, development=development)


def parse_host_json(document: object, settings: Settings, *, processors: int, development: bool) -> HostOptions:
    """Check a host.json document; `AzureFunctionsJobHost__<path>` settings win over its values."""
    if not isinstance(document, dict):
        raise HostFaults(["host.json must hold a JSON object"])
    reader = _Reader(document, settings.below("AzureFunctionsJobHost"))
    if reader.value("version") != "2.0":
        reader.faults.append('host.json: "version" must be "2.0"')
    batch_size = reader.integer("extensions.queues.batchSize", 16, 1, 32)
    options = HostOptions(
        queues=QueueOptions(
            batch_size=batch_size,
            new_batch_threshold=reader.integer("extensions.queues.newBatchThreshold", batch_size // 2 * processors, 0),
            max_dequeue_count=reader.integer("extensions.queues.maxDequeueCount", 5, 1),
            visibility_timeout_seconds=int(reader.seconds("extensions.queues.visibilityTimeout", 0.0)),
            max_polling_seconds=reader.seconds(
                "extensions.queues.maxPollingInterval",
                _MAX_POLLING_SECONDS_IN_DEVELOPMENT if development else _MAX_POLLING_SECONDS,
                MIN_POLLING_SECONDS,
            ),
            base64=reader.choice("extensions.queues.messageEncoding", "base64", ("base64", "none")) == "base64",
        ),
        function_timeout_seconds=reader.function_timeout(),
        route_prefix=str(reader.value("extensions.http.routePrefix", "api")).strip("/"),
        has_extensions=reader.value("extensionBundle.id") is not None,
    )
    if reader.faults:
        raise HostFaults(reader.faults)
    return options


class _Reader:
    """Reads dotted paths without regard to case and collects what is wrong."""

    def __init__(self, document: dict[str, Any], overrides: dict[str, str]) -> None:
        self._document = document
        self._overrides = overrides
        self.faults: list[str] = []

    def value(self, path: str, default: object = None) -> object:
        override = self._overrides.get(path.replace(".", "__").casefold())
        if override is not None:
            return override
        node: object = self._document
        for part in path.split("."):
            if not isinstance(node, dict):
                return default
            node = next((value for name, value in node.items() if name.casefold() == part.casefold()), None)
        return default if node is None else node

    def integer(self, path: str, default: int, low: int, high: int | None = None) -> int:
        value = self.value(path, default)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return self._refuse(path, value, "must be a whole number", default)
        try:
            number = int(value)
        except ValueError:
            return self._refuse(path, value, "must be a whole number", default)
        if number < low or (high is not None and number > high):
            wanted = f"must not be less than {low}" if high is None else f"must be from {low} to {high}"
            return self._refuse(path, value, wanted, default)
        return number

    def seconds(self, path: str, default: float, low: float | None = None) -> float:
        value = self.value(path)
        if value is None:
            return default
        try:
            span: timedelta = parse_timespan(str(value))
        except ValueError:
            return self._refuse(path, value, "must be a duration ([d.]hh:mm:ss)", default)
        if low is not None and span.total_seconds() < low:
            return self._refuse(path, value, f"must not be less than {low} seconds", default)
        return span.total_seconds()

    def choice(self, path: str, default: str, allowed: tuple[str, ...]) -> str:
        value = str(self.value(path, default)).lower()
        return value if value in allowed else self._refuse(path, value, f"must be one of {', '.join(allowed)}", default)

    def function_timeout(self) -> float | None:
        if str(self.value("functionTimeout", "")) == "-1":
            return None
        return self.seconds("functionTimeout", _FUNCTION_TIMEOUT_SECONDS, 1.0)

    def _refuse(self, path: str, value: object, wanted: str, default: _Value) -> _Value:
        self.faults.append(f"host.json: {path} {wanted}, not {value!r}")
        return default
