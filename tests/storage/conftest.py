"""A tenant's storage account on the local Azurite, reached as the worker reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from local.stack.azurite import StorageAccount
from shared.identity import AppIdentity
from shared.settings.load import load_settings
from shared.settings.table import Settings
from shared.settings.values import parse_connection_string
from shared.storage.accounts import delegating_service, haste_container
from shared.storage.addresses import ContainerAddress
from shared.storage.blob_container import BlobContainer
from shared.storage.delegation import Delegation


class Clock:
    """A clock that a test moves. It starts now, as Azurite has a clock of its own."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, by: timedelta) -> None:
        self.now += by


def settings_for(account: StorageAccount) -> Settings:
    """The settings of a worker in shared mode whose HASTE is in `account`."""
    return load_settings(
        {
            "AzureWebJobsStorage": account.connection_string,
            "BLOB_CONNECTION_STRING": account.connection_string,
            "METADATA_STORAGE_TYPE": "blob",
            "ARTIFACT_STORAGE_TYPE": "blob",
            "TITILER_ENDPOINT": "https://localhost/api/titiler/",
            "AZURE_BATCH_ACCOUNT_NAME": "batch",
            "AZURE_BATCH_URL": "https://localhost/batch",
            "AZURE_BATCH_OUTPUT_CONTAINER_URL": f"{account.blob_endpoint}/data",
            "AZURE_BATCH_DOCKER_IMAGE": "registry/training:1",
            "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": "registry/imageryprep:1",
            "AZURE_BATCH_USE_SAS": "true",
        }
    )


@dataclass
class CountingService:
    """The real service client; remembers for which times a key was asked."""

    service: BlobServiceClient
    asked: list[tuple[datetime, datetime]] = field(default_factory=list)

    def get_user_delegation_key(self, start: datetime, expiry: datetime) -> Any:
        self.asked.append((start, expiry))
        return self.service.get_user_delegation_key(start, expiry)


@dataclass
class Tenant:
    """One tenant: its account, its HASTE container, and its worker's way to sign."""

    account: StorageAccount
    settings: Settings
    container: ContainerClient
    blobs: BlobContainer
    address: ContainerAddress
    service: CountingService
    clock: Clock
    delegation: Delegation


def tenant_of(account: StorageAccount) -> Tenant:
    settings = settings_for(account)
    container = haste_container(settings)
    blobs = BlobContainer(container)
    blobs.ensure()
    address = ContainerAddress(f"{settings.storage_account.blob_url}/{settings.blob_container}")
    service, clock = CountingService(delegating_service(settings, AppIdentity(None))), Clock()
    delegation = Delegation(service, account.name, address, clock)  # type: ignore[arg-type]
    return Tenant(account, settings, container, blobs, address, service, clock, delegation)


@pytest.fixture
def tenant(storage_account: StorageAccount) -> Tenant:
    """A tenant with an empty container."""
    assert parse_connection_string(storage_account.connection_string).name == storage_account.name
    return tenant_of(storage_account)


@pytest.fixture
def other_tenant(azurite: Iterator[StorageAccount]) -> Tenant:
    """A second tenant, with an account of its own."""
    return tenant_of(next(azurite))
