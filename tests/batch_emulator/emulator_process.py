"""`python -m local.batch` as a process of its own, over https."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azure.batch import BatchClient
from azure.core.credentials import AzureNamedKeyCredential

from local.batch import ACCOUNT_KEY
from local.certificates import Certificates
from tests.batch_emulator.process_support import until

PROJECT = Path(__file__).resolve().parents[2]
_STOP_SECONDS = 30


class Emulator:
    """A running emulator: the line that it has printed, its endpoint, and the ways to it."""

    def __init__(self, process: subprocess.Popen[str], endpoint_file: Path) -> None:
        self.process = process
        assert process.stdout
        self.line = process.stdout.readline().strip()
        until(endpoint_file.exists)
        self.endpoint = endpoint_file.read_text()

    def client(self, credential: Any = None) -> BatchClient:
        credential = credential or AzureNamedKeyCredential("localbatch", ACCOUNT_KEY)
        return BatchClient(self.endpoint, credential, retry_total=0)

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}/admin{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["result"]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)


@contextmanager
def running(
    folder: Path,
    certificates: Certificates,
    world: Mapping[str, Any],
    *options: str,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Emulator]:
    """An emulator with `world`, and nodes below `folder`; `variables` are added to its environment."""
    world_file, endpoint_file = folder / "world.json", folder / "endpoint"
    world_file.write_text(json.dumps({"root": str(folder / "nodes"), **world}))
    tls = ["--cert", str(certificates.certificate), "--key", str(certificates.key)]
    where = ["--world", str(world_file), "--endpoint-file", str(endpoint_file)]
    command = [sys.executable, "-m", "local.batch", *where, *tls, *options]
    environment = os.environ | (variables or {})
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            emulator = Emulator(process, endpoint_file)
            yield emulator
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
