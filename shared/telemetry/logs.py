"""Log lines: one JSON object per line, carrying the job they are about, with credentials taken out.

The worker's own lines are made by structlog and travel through Python's logging, where Azure Functions picks them up.
The lines of libraries travel there as well; they are redacted as they are made, whatever handler prints them.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import structlog

from shared.telemetry.redaction import redact as redact
from shared.telemetry.redaction import redact_value

_QUIET = {
    "azure": logging.WARNING,
    "urllib3": logging.WARNING,
    "msal": logging.WARNING,
    "azure.batch": logging.ERROR,  # it warns with a traceback whenever a file is not on its node yet
}
_PLAIN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class _Line(str):
    """A line of our own, finished and redacted."""

    __slots__ = ()


class _RedactedRecord(logging.LogRecord):
    """A log record that never holds a credential in its message or its traceback."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(self.msg, _Line):
            self.exc_info = None  # it is in the line; `exception` hands it on a second time
            return
        text = _message(self)
        if self.exc_info and self.exc_info[0] is not None:
            text = f"{text}\n{_FORMATTER.formatException(self.exc_info)}"
        # Handlers print what they find: the traceback becomes part of the text, so that none prints the original.
        self.msg, self.args, self.exc_info = redact(text), None, None
        self.stack_info = redact(self.stack_info) if self.stack_info else None


class _RedactExtra(logging.Filter):
    """Redacts what a caller attached to a record with `extra`; it is put there after the record is made."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name in vars(record).keys() - _PLAIN_ATTRIBUTES:
            setattr(record, name, redact_value(getattr(record, name)))
        return True


class _JsonFormatter(logging.Formatter):
    """For programs without a host to print their lines: libraries' lines become JSON as well."""

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, _Line):
            return record.msg
        made_at = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {"event": record.getMessage(), "level": record.levelname.lower(), "logger": record.name}
        return json.dumps({**line, "timestamp": made_at}, ensure_ascii=False)


_FORMATTER = logging.Formatter()
_REDACT_EXTRA = _RedactExtra()


def configure() -> None:
    """Set up logging for this process. May be called often; reads no setting.

    Handlers that Azure Functions or a test has put onto the root logger stay; without any, lines go to stderr.
    """
    structlog.configure(
        processors=_PROCESSORS,
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    logging.setLogRecordFactory(_RedactedRecord)
    root = logging.getLogger()
    if not root.handlers:
        own = logging.StreamHandler(sys.stderr)
        own.setFormatter(_JsonFormatter())
        root.addHandler(own)
    for handler in root.handlers:
        handler.addFilter(_REDACT_EXTRA)  # a filter that is there already is not added again
    if root.level > logging.INFO:
        root.setLevel(logging.INFO)
    for name, level in _QUIET.items():
        logging.getLogger(name).setLevel(level)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module; call it with `__name__`."""
    return cast(structlog.stdlib.BoundLogger, structlog.get_logger(name))


@contextmanager
def bound(
    *,
    tenant: str | None = None,
    kind: str | None = None,
    job: str | None = None,
    attempt: int | None = None,
    pool: str | None = None,
) -> Iterator[None]:
    """Every line inside the block says which job it is about. Blocks nest; None leaves a name as it is."""
    values = {"tenant": tenant, "kind": kind, "job": job, "attempt": attempt, "pool": pool}
    with structlog.contextvars.bound_contextvars(
        **{name: value for name, value in values.items() if value is not None}
    ):
        yield


def _redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    redacted: dict[str, Any] = redact_value(event)
    return redacted


def _finish(
    _logger: Any, _method: str, line: MutableMapping[str, Any] | str | bytes
) -> tuple[tuple[_Line], dict[str, Any]]:
    return (_Line(line),), {}


def _message(record: logging.LogRecord) -> str:
    try:
        return logging.LogRecord.getMessage(record)
    except Exception as error:  # noqa: BLE001 - a library's broken format string must not break the caller
        return f"{record.msg} (log arguments do not fit: {type(error).__name__})"


#: One list for all calls of `configure`: loggers keep the one that they were first used with.
_PROCESSORS: list[Any] = [
    structlog.stdlib.filter_by_level,
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
    _redact_event,
    structlog.processors.JSONRenderer(ensure_ascii=False),
    _finish,
]
