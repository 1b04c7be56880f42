"""Log output: one JSON line per event on stderr, from the host and from the functions it runs."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Protocol

from azure_functions_runtime import invocation_id_cv

_HOST_LOGGER = "functions_host"
_RUNTIME_DUPLICATE = "Native invocation failed"


class EventLog(Protocol):
    """Takes one event of the host: a dotted name and its fields. Fields never hold message bodies or secrets."""

    def __call__(self, event: str, /, level: int = logging.INFO, **fields: object) -> None: ...


def log_event(event: str, /, level: int = logging.INFO, **fields: object) -> None:
    """Write one event of the host to the host's log."""
    logging.getLogger(_HOST_LOGGER).log(level, event, extra={"host_fields": fields})


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
        }
        if record.name == _HOST_LOGGER:
            line |= {"event": record.getMessage(), **getattr(record, "host_fields", {})}
        else:
            line |= {"event": "log", "logger": record.name, "message": record.getMessage()}
            invocation = invocation_id_cv.get()
            if invocation is not None:
                line["invocation"] = invocation
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure_logging(*, verbose: bool = False) -> None:
    """Send the host's events and everything the functions log to stderr.

    `verbose` adds the listeners' debug events (every poll and wait).
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLine())
    host = logging.getLogger(_HOST_LOGGER)
    host.handlers = [handler]
    host.setLevel(logging.DEBUG if verbose else logging.INFO)
    host.propagate = False  # an app that reconfigures the root logger does not silence the host
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for noisy in ("azure.core", "azure.identity", "azure.functions", "azure.storage", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # The runtime logs a failed invocation itself; the host's own event says the same with the function's name.
    logging.getLogger("azure.functions").addFilter(lambda record: record.msg != _RUNTIME_DUPLICATE)
