"""Lines as a host or a terminal gets them."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from shared.telemetry import logs
from tests.logs.test_redaction import nested, secrets_in_form, texts

ROOT = Path(__file__).resolve().parents[2]
SAS = "https://account.blob.core.windows.net/data/x?sv=1&sig=c2VjcmV0"


class Host(logging.Handler):
    """A handler as a host has one: it formats records in its own way, and prints what was attached to them."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
        self.lines.append(str({name: value for name, value in vars(record).items() if name != "msg"}))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@pytest.fixture
def host() -> Iterator[Host]:
    handler, root = Host(), logging.getLogger()
    root.addHandler(handler)
    logs.configure()
    yield handler
    root.removeHandler(handler)


def last(host: Host) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(host.lines[-2])
    return loaded


def test_a_line_is_json_and_says_which_job_it_is_about(host: Host) -> None:
    log = logs.get_logger("shared.test")
    with logs.bound(tenant="contoso", kind="training", job="training/ab"), logs.bound(attempt=2, pool="h100"):
        log.info("placed on %s", "h100", tried=["t4"], why=None)
    line = last(host)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "placed on h100",
        "level": "info",
        "logger": "shared.test",
        "tenant": "contoso",
        "kind": "training",
        "job": "training/ab",
        "attempt": 2,
        "pool": "h100",
        "tried": ["t4"],
        "why": None,
    }
    log.info("after")
    assert set(last(host)) == {"event", "level", "logger", "timestamp"}


def test_a_traceback_is_in_the_line_without_its_credentials(host: Host) -> None:
    try:
        raise ValueError(f"could not get {SAS}")
    except ValueError:
        logs.get_logger("shared.test").exception("failed")
    line = last(host)
    assert "ValueError: could not get https://account.blob.core.windows.net/data/x?[redacted]" in line["exception"]
    assert "c2VjcmV0" not in host.text


def test_lines_of_libraries_are_redacted_however_they_are_printed(host: Host) -> None:
    library = logging.getLogger("some.library")
    library.warning(
        "GET %s as %s", SAS, {"Authorization": "Bearer abcdefghijkl"}, extra={"headers": {"sig": "c2VjcmV0"}}
    )
    assert "GET https://account.blob.core.windows.net/data/x?[redacted] as" in host.text
    try:
        raise ValueError(SAS)
    except ValueError:
        library.exception("failed", stack_info=True)
    assert "ValueError: https://account" in host.text
    assert "c2VjcmV0" not in host.text
    assert "abcdefghijkl" not in host.text


def test_a_library_that_formats_wrongly_breaks_nothing(host: Host) -> None:
    logging.getLogger("some.library").warning("%d of %d sig=c2VjcmV0", "one")
    assert "do not fit: TypeError" in host.text
    assert "c2VjcmV0" not in host.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(held=nested(), form=secrets_in_form, before=texts, after=texts)
def test_a_credential_anywhere_in_a_call_is_in_no_line(
    host: Host, held: tuple[str, object], form: tuple[str, str], before: str, after: str
) -> None:
    host.lines.clear()
    secret, text = form[0], before + form[1] + after
    log, library = logs.get_logger("shared.test"), logging.getLogger("some.library")
    log.info(text, value=held[1])
    log.info("%s and %s", text, held[1])
    library.info("%s and %s", text, held[1], extra={"value": held[1], "text": text})
    try:
        raise RuntimeError(text) from ValueError(held[1])
    except RuntimeError:
        log.exception(text)
        library.exception("%s", text)
    assert len(host.lines) == 10
    assert secret not in host.text
    assert held[0] not in host.text


def test_configure_may_be_called_again_and_leaves_the_hosts_handlers(host: Host) -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    for _ in range(3):
        logs.configure()
    assert root.handlers == before
    assert len(host.filters) == 1
    logs.get_logger("shared.test").info("once")
    assert len(host.lines) == 2


def test_the_sdks_are_quiet(host: Host) -> None:
    for name in ("azure.core.pipeline.policies.http_logging_policy", "azure.identity", "urllib3.connectionpool"):
        logging.getLogger(name).info("request")
        assert host.lines == []
        logging.getLogger(name).warning("outage")
        assert "outage" in host.text
        host.lines.clear()


def test_debug_lines_are_not_made_unless_asked_for(host: Host) -> None:
    logs.get_logger("shared.test").debug("detail")
    assert host.lines == []


def test_without_a_host_every_line_on_stderr_is_json() -> None:
    program = (
        "import logging; from shared.telemetry import logs; log = logs.get_logger('early');"
        "logs.configure(); logs.configure();"
        f"log.info('own', url='{SAS}'); logging.getLogger('library').warning('theirs %s', '{SAS}')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    own, theirs = [json.loads(line) for line in io.StringIO(done.stderr)]
    assert (own["event"], own["logger"], own["level"]) == ("own", "early", "info")
    assert (theirs["logger"], theirs["level"]) == ("library", "warning")
    assert theirs["event"] == "theirs https://account.blob.core.windows.net/data/x?[redacted]"
    assert done.stdout == ""
    assert "c2VjcmV0" not in done.stderr
