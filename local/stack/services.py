"""The stack's own programs: how each is started, and where it says its address once it answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.certificates import Certificates
from local.stack.supervisor import Child, Supervisor

FUNCTION_KEY = "local-function-key"


class Service:
    """A program that was started and writes its address to a file as soon as it answers."""

    def __init__(self, supervisor: Supervisor, child: Child, ready_file: Path) -> None:
        self.child = child
        self._supervisor = supervisor
        self._ready_file = ready_file

    async def ready(self) -> str:
        """Its URL; raises StackError when the program ends or takes too long."""
        content = await self._supervisor.until_ready(self.child, self._content)
        return str(json.loads(content)["url"]) if content.startswith("{") else content

    def _content(self, _child: Child) -> str | None:
        return self._ready_file.read_text(encoding="utf-8").strip() or None if self._ready_file.exists() else None


def start_identity(supervisor: Supervisor, run_folder: Path, environment: Mapping[str, str], secret: str) -> Service:
    """The managed identity endpoint; `secret` is what its callers have to present."""
    ready_file = _ready_file(run_folder, "identity")
    command = [sys.executable, "-m", "local.identity", "--port", "0", "--ready-file", str(ready_file)]
    child = supervisor.spawn("identity", command, {**environment, "IDENTITY_HEADER": secret})
    return Service(supervisor, child, ready_file)


def start_batch(
    supervisor: Supervisor,
    run_folder: Path,
    world: Mapping[str, Any],
    certificates: Certificates,
    environment: Mapping[str, str],
) -> Service:
    """The Batch emulator, over https."""
    ready_file = _ready_file(run_folder, "batch")
    world_file = run_folder / "batch-world.json"
    world_file.write_text(json.dumps(world, indent=2), encoding="utf-8")
    tls = ["--cert", str(certificates.certificate), "--key", str(certificates.key)]
    where = ["--world", str(world_file), "--port", "0", "--endpoint-file", str(ready_file)]
    of_world = {name: value for name, value in environment.items() if name != "BATCH_EMULATOR_KEY"}  # its key is used
    child = supervisor.spawn("batch", [sys.executable, "-m", "local.batch", *where, *tls], of_world)
    return Service(supervisor, child, ready_file)


def start_host(
    supervisor: Supervisor,
    run_folder: Path,
    name: str,
    app_folder: Path,
    lease_seconds: int,
    environment: Mapping[str, str],
) -> Service:
    """A functions host for the app; `environment` holds the app's settings."""
    ready_file = _ready_file(run_folder, name)
    where = ["--app", str(app_folder), "--port", "0", "--ready-file", str(ready_file)]
    command = [sys.executable, "-m", "local.functions_host", *where, "--lease-seconds", str(lease_seconds)]
    child = supervisor.spawn(name, command, {**environment, "FUNCTIONS_HOST_KEY": FUNCTION_KEY})
    return Service(supervisor, child, ready_file)


def _ready_file(run_folder: Path, name: str) -> Path:
    """Its path, with nothing there: what an earlier start wrote must not be taken for this one's."""
    folder = run_folder / "ready"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.unlink(missing_ok=True)
    return path
