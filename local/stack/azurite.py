"""The storage emulator: its accounts, its command line, its addresses."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.certificates import Certificates
from local.stack.supervisor import Child, StackError, Supervisor

SERVICES = ("Blob", "Queue", "Table")
ANY_PORTS = (0, 0, 0)
USUAL_PORTS = (10000, 10001, 10002)

_PROGRAM = Path(__file__).resolve().parents[1] / "azurite/node_modules/azurite/dist/src/azurite.js"
_LISTENS = re.compile(r"Azurite (\w+) service is successfully listening at (\S+)")


@dataclass(frozen=True)
class StorageAccount:
    """One account of a running Azurite. `key` is a well-known local value, derived from the name."""

    name: str
    key: str
    blob_endpoint: str
    queue_endpoint: str
    table_endpoint: str

    @property
    def connection_string(self) -> str:
        """All three endpoints are in it: a client takes Azure's own address for one that is missing."""
        return ";".join(
            (
                "DefaultEndpointsProtocol=https",
                f"AccountName={self.name}",
                f"AccountKey={self.key}",
                f"BlobEndpoint={self.blob_endpoint}",
                f"QueueEndpoint={self.queue_endpoint}",
                f"TableEndpoint={self.table_endpoint}",
            )
        )


def account_key(name: str) -> str:
    """The key of the local account `name`: base64 of 64 bytes, the same on every machine."""
    return base64.b64encode(hashlib.sha512(f"haste-worker local account {name}".encode()).digest()).decode()


async def start_azurite(
    supervisor: Supervisor,
    account_names: Sequence[str],
    certificates: Certificates,
    environment: Mapping[str, str],
    data_folder: Path | None = None,
    ports: tuple[int, int, int] = ANY_PORTS,
) -> list[StorageAccount]:
    """Start one Azurite with the named accounts and return them, in the same order.

    `data_folder` None keeps everything in memory. Of `ports` (blob, queue, table) each that is taken, or 0, is replaced
    by a free one; Azurite says which it got.
    """
    if not _PROGRAM.exists():
        raise StackError("Azurite is not installed; run: npm ci --prefix local/azurite")
    accounts = ";".join(f"{name}:{account_key(name)}" for name in account_names)
    blob, queue, table = (port if _is_free(port) else 0 for port in ports)
    for attempt in ((blob, queue, table), ANY_PORTS):
        command = azurite_command(certificates, data_folder, attempt)
        child = supervisor.spawn("azurite", command, {**environment, "AZURITE_ACCOUNTS": accounts})
        try:
            addresses = await supervisor.until_ready(child, _addresses)
        except StackError:
            # Someone took a port between the look and the start. Port 0 cannot clash.
            if attempt == ANY_PORTS or "EADDRINUSE" not in child.output():
                raise
            await supervisor.kill_child(child)
        else:
            return [_account(name, addresses) for name in account_names]
    raise AssertionError("the second attempt returns or raises")


def azurite_command(certificates: Certificates, data_folder: Path | None, ports: tuple[int, int, int]) -> list[str]:
    """Azurite's command line: https, OAuth, today's API versions, no telemetry, no access log (it would show SAS)."""
    node = shutil.which("node")
    if node is None:
        raise StackError("Node.js is not installed; Azurite needs it (version 20 or later)")
    where = ["--location", str(data_folder)] if data_folder else ["--inMemoryPersistence"]
    tls = ["--cert", str(certificates.certificate), "--key", str(certificates.key), "--oauth", "basic"]
    listen = [f"--{service.lower()}Port={port}" for service, port in zip(SERVICES, ports, strict=True)]
    return [node, str(_PROGRAM), "--silent", "--disableTelemetry", "--skipApiVersionCheck", *where, *tls, *listen]


def _addresses(child: Child) -> dict[str, str] | None:
    found = dict(_LISTENS.findall(child.output()))
    return found if found.keys() >= set(SERVICES) else None


def _account(name: str, addresses: Mapping[str, str]) -> StorageAccount:
    blob, queue, table = (f"{addresses[service]}/{name}" for service in SERVICES)
    return StorageAccount(name, account_key(name), blob, queue, table)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Node does; without it a port is "taken" for a minute after the last stack.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
