"""Azurite starts on whatever ports there are, and the self-check tells when it cannot do what the worker needs."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from local.certificates import Certificates
from local.stack import azurite as module
from local.stack.azurite import StorageAccount, start_azurite
from local.stack.environment import child_environment
from local.stack.prepare import CHECK_SECONDS
from local.stack.settings import QUEUES, WORKER_QUEUE, BatchAccount, Identity, tenant_settings
from local.stack.supervisor import Child, Supervisor

BATCH = BatchAccount("localbatch", "a2V5", "https://127.0.0.1:1")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path / "logs")
    yield made
    asyncio.run(made.stop())


def prepare(own: Supervisor, account: StorageAccount, certificates: Certificates, identity: Identity) -> Child:
    """Run the self-check as the stack does, and return it when it has ended."""
    settings = tenant_settings("a", account, BATCH, identity)
    environment = child_environment(certificates.environment(), settings)
    child = own.spawn("prepare", [sys.executable, "-m", "local.stack.prepare"], environment)
    assert asyncio.run(child.wait(60)) is not None
    return child


def test_preparing_makes_what_a_deployment_has_and_may_be_repeated(
    own: Supervisor, storage_account: StorageAccount, certificates: Certificates, identity_endpoint: Identity
) -> None:
    for _ in range(2):
        child = prepare(own, storage_account, certificates, identity_endpoint)
        assert child.exit_code == 0, child.output()
    with BlobServiceClient.from_connection_string(storage_account.connection_string) as blobs:
        assert sorted(str(container.name) for container in blobs.list_containers()) == ["data", "haste-worker"]
        assert [*blobs.get_container_client("data").list_blob_names()] == []
    with QueueServiceClient.from_connection_string(storage_account.connection_string) as queues:
        assert {str(queue.name) for queue in queues.list_queues()} == {*QUEUES.values(), WORKER_QUEUE}


@pytest.mark.parametrize("taken", [0, 1, 2], ids=["blob", "queue", "table"])
def test_a_taken_port_is_replaced_and_the_others_are_kept(
    own: Supervisor, certificates: Certificates, taken: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as blocker:
        wanted = [free_port() for _ in range(3)]
        wanted[taken] = blocker.getsockname()[1]
        (account,) = asyncio.run(
            start_azurite(own, ["a"], certificates, child_environment(), ports=(wanted[0], wanted[1], wanted[2]))
        )
    urls = (account.blob_endpoint, account.queue_endpoint, account.table_endpoint)
    got = [urlsplit(url).port for url in urls]
    assert [port == want for port, want in zip(got, wanted, strict=True)] == [index != taken for index in range(3)]


def test_a_port_that_is_taken_between_the_look_and_the_start_is_replaced(
    own: Supervisor, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_is_free", lambda _port: True)
    with socket.create_server(("127.0.0.1", 0)) as blocker:
        port = blocker.getsockname()[1]
        (account,) = asyncio.run(start_azurite(own, ["a"], certificates, child_environment(), ports=(0, port, 0)))
    assert urlsplit(account.queue_endpoint).port not in (0, port)


@pytest.mark.parametrize(
    ("dropped", "cause"),
    [(("--oauth", "basic"), "AuthorizationFailure"), (("--skipApiVersionCheck",), "InvalidHeaderValue")],
    ids=["no OAuth", "version check"],
)
def test_azurite_started_otherwise_gets_a_hint(
    own: Supervisor,
    certificates: Certificates,
    identity_endpoint: Identity,
    monkeypatch: pytest.MonkeyPatch,
    dropped: tuple[str, ...],
    cause: str,
) -> None:
    usual = module.azurite_command
    monkeypatch.setattr(
        module, "azurite_command", lambda *given: [word for word in usual(*given) if word not in dropped]
    )
    (account,) = asyncio.run(start_azurite(own, ["a"], certificates, child_environment()))
    child = prepare(own, account, certificates, identity_endpoint)
    assert child.exit_code == 1
    assert "--oauth basic" in child.output()
    assert cause in child.output()
    assert "sig=" not in child.output() and account.key not in child.output()


def test_an_identity_endpoint_that_never_answers_gets_a_hint_and_no_long_wait(
    own: Supervisor, storage_account: StorageAccount, certificates: Certificates
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nobody = Identity(f"http://127.0.0.1:{silent.getsockname()[1]}/msi/token", "secret")
        child = prepare(own, storage_account, certificates, nobody)
    assert child.exit_code == 1
    assert "IDENTITY_ENDPOINT" in child.output()
    assert f"no answer within {CHECK_SECONDS} s" in child.output()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
