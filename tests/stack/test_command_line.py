"""`python -m local.stack`: a stack that is left running, found again, and taken down."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import DEADLINE_SECONDS, processes_naming, until

PROJECT_FOLDER = Path(__file__).resolve().parents[2]


class CommandLine:
    """`python -m local.stack` with a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def words(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "local.stack", "--folder", str(self.folder), *arguments]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*arguments),
            cwd=PROJECT_FOLDER,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )


@pytest.fixture
def stack_command(tmp_path: Path) -> Iterator[CommandLine]:
    command = CommandLine(tmp_path / "up")
    yield command
    command("down")
    assert until(lambda: processes_naming(command.folder) == [])  # its own process takes a moment longer


def test_up_status_run_down(stack_command: CommandLine) -> None:
    nothing = stack_command("status")
    assert (nothing.returncode, nothing.stdout) == (1, "No local stack is up.\n")

    started = stack_command("up", "--detach", "--no-host", "--tenants", "tenanta,tenantb")
    assert started.returncode == 0, started.stderr
    state = json.loads(stack_command("status", "--json").stdout)
    for tenant in ("tenanta", "tenantb"):
        assert state["settings"][tenant]["BLOB_CONNECTION_STRING"] in started.stdout
    assert state["batch_url"] in started.stdout
    assert "python -m local.producer layer" in started.stdout

    again = stack_command("up", "--detach", "--no-host")
    assert again.returncode == 1
    assert "up already" in again.stderr

    program = "import os, sys; print(os.environ['WORKER_TENANT'], os.environ['SSL_CERT_FILE'], sys.prefix)"
    ran = stack_command("run", "--tenant", "tenantb", "--", "python", "-c", program)
    assert ran.stdout.split() == ["tenantb", state["trust"]["SSL_CERT_FILE"], sys.prefix]

    assert stack_command("down").stdout == "The local stack is down.\n"
    assert until(lambda: processes_naming(stack_command.folder) == [])  # its own process takes a moment longer
    assert stack_command("down").stdout == "No local stack was up.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["during the start", "when it is up"])
def test_a_signal_ends_all(stack_command: CommandLine, number: signal.Signals, moment: str) -> None:
    with subprocess.Popen(
        stack_command.words("up", "--no-host"), cwd=PROJECT_FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as up:
        awaited = stack_command.folder / ("run/logs/azurite.log" if moment == "during the start" else "state.json")
        assert until(awaited.exists)
        up.send_signal(number)
        up.wait(DEADLINE_SECONDS)
    assert until(lambda: processes_naming(stack_command.folder) == [])
    assert stack_command("status").returncode == 1


def test_a_setting_that_cannot_work_is_said_at_once(stack_command: CommandLine, tmp_path: Path) -> None:
    failed = stack_command("up", "--detach", "--app", str(tmp_path / "nowhere"))
    assert failed.returncode == 1
    assert "nowhere" in failed.stderr
    assert until(lambda: processes_naming(stack_command.folder) == [])  # its own process takes a moment longer
