"""Starts the functions host as its users do, and looks at it from outside."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SAMPLE_APP = Path(__file__).parent / "sample_app"
_CHECKOUT = Path(__file__).parents[2]
_DEADLINE_SECONDS = 60.0


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll a condition until it holds; fails after a minute."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


class HostProcess:
    """One running host; its log lies in the folder given."""

    def __init__(self, app: Path, environment: Mapping[str, str], folder: Path, arguments: tuple[str, ...]) -> None:
        folder.mkdir()
        self._log = folder / "log.jsonl"
        self._ready_file = folder / "ready.json"
        command = [sys.executable, "-m", "local.functions_host", "--app", str(app), *arguments]
        command += ["--ready-file", str(self._ready_file)]
        with self._log.open("wb") as log, (folder / "output.txt").open("wb") as output:
            self.process = subprocess.Popen(command, cwd=_CHECKOUT, env=dict(environment), stdout=output, stderr=log)

    def ready(self) -> dict[str, Any]:
        """Wait for and return what the host says when ready."""
        wait_until(lambda: self._ready_file.exists() or self.process.poll() is not None, "a ready host")
        assert self._ready_file.exists(), self._log.read_text(encoding="utf-8")
        ready: dict[str, Any] = json.loads(self._ready_file.read_text(encoding="utf-8"))
        return ready

    def events(self, name: str, **fields: object) -> list[dict[str, Any]]:
        """Logged events of that name whose fields have these values."""
        lines = self.log_text().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if {"event": name, **fields}.items() <= event.items()]

    def log_text(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def wait_for(self, name: str, **fields: object) -> None:
        """Wait until the host has logged such an event."""
        wait_until(lambda: self.events(name, **fields), f"{name} {fields} in the log")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the end of the host."""
        return self.process.wait(_DEADLINE_SECONDS)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.exit_code()


class HostStarter:
    """Starts hosts in one environment; leaving the context kills those that still run."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._hosts: list[HostProcess] = []

    def start(
        self,
        *arguments: str,
        app: Path = SAMPLE_APP,
        settings: Mapping[str, str] | None = None,
        without: tuple[str, ...] = (),
    ) -> HostProcess:
        """Start a host with these settings on top of the environment, or without some of it."""
        environment = {**self._environment, **(settings or {})}
        for name in without:
            del environment[name]
        host = HostProcess(app, environment, self._folder / f"host{len(self._hosts)}", arguments)
        self._hosts.append(host)
        return host

    @contextmanager
    def running(self) -> Iterator["HostStarter"]:
        try:
            yield self
        finally:
            for host in self._hosts:
                host.process.kill()
                host.process.wait()
