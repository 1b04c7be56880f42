"""The worker's container on a storage account of its own."""

from __future__ import annotations

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient


@pytest.fixture
def container(storage_account: object) -> ContainerClient:
    service = BlobServiceClient.from_connection_string(storage_account.connection_string)  # type: ignore[attr-defined]
    made = service.get_container_client("haste-worker")
    made.create_container()
    return made
