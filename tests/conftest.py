"""What every area shares: the marks, the network guard, and storage with identity as in Azure.

Servers are started once per test session (once per worker with pytest-xdist), on free ports, and only if a test asks.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Iterator

import pytest

from local.certificates import Certificates, create_certificates
from local.stack.azurite import StorageAccount, start_azurite
from local.stack.environment import child_environment, no_proxy
from local.stack.services import start_identity
from local.stack.settings import Identity
from local.stack.supervisor import Supervisor
from tests.network_guard import network_guard as network_guard

pytest_plugins = ["tests.marks"]

_ACCOUNTS = 400


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certificates]:
    """A throw-away authority, trusted by this process and its children for the rest of the session.

    aiohttp makes its default context when it is imported, which may be before this: give its clients
    `ssl.create_default_context(cafile=certificates.authority)`. The Azure SDKs' synchronous clients look each time.
    """
    made = create_certificates(tmp_path_factory.mktemp("certificates"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (made.environment() | no_proxy(os.environ)).items():
            patch.setenv(name, value)
        yield made


@pytest.fixture(scope="session")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """Owns the session's servers; nothing of it survives the session."""
    owner = Supervisor(tmp_path_factory.mktemp("logs"))
    try:
        yield owner
    finally:
        asyncio.run(owner.stop())


@pytest.fixture(scope="session")
def identity_endpoint(supervisor: Supervisor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Identity]:
    """The local managed identity, set in this process's environment: `DefaultAzureCredential()` uses it."""
    secret = secrets.token_hex(16)
    service = start_identity(supervisor, tmp_path_factory.mktemp("identity"), child_environment(), secret)
    identity = Identity(asyncio.run(service.ready()), secret)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in identity.environment().items():
            patch.setenv(name, value)
        yield identity


@pytest.fixture(scope="session")
def azurite(
    supervisor: Supervisor, certificates: Certificates, identity_endpoint: Identity
) -> Iterator[Iterator[StorageAccount]]:
    """Azurite over https with OAuth: an endless supply of empty accounts, see `storage_account`."""
    if shutil.which("node") is None and "CI" not in os.environ:
        pytest.skip("Node.js is not installed, so Azurite cannot run")
    names = [f"test{number:03}" for number in range(_ACCOUNTS)]
    yield iter(asyncio.run(start_azurite(supervisor, names, certificates, child_environment())))


@pytest.fixture
def storage_account(azurite: Iterator[StorageAccount]) -> StorageAccount:
    """A storage account that no other test has used; `azurite` gives further ones with `next`."""
    return next(azurite)
