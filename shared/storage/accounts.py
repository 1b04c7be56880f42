"""Clients of HASTE's storage account, made of the settings.

Records, results and queues are reached with the account key in HASTE's connection string, as HASTE does it. Only what
tasks get is signed with the app's identity, by a delegation key: it can be bounded to one blob or one container, and it
ends by itself.
"""

from __future__ import annotations

from typing import Any

from azure.core.credentials import TokenCredential
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueServiceClient

from shared.settings.table import Settings

CONNECT_TIMEOUT_SECONDS = 5
READ_TIMEOUT_SECONDS = 10
RETRIES = 2

# Three tries of at most 5 + 10 s and the pauses between them stay well below a minute: what takes longer goes back to
# waiting, which costs nothing.
_PATIENCE: dict[str, Any] = {
    "connection_timeout": CONNECT_TIMEOUT_SECONDS,
    "read_timeout": READ_TIMEOUT_SECONDS,
    "retry_total": RETRIES,
    "initial_backoff": 1,
    "increment_base": 2,
    "random_jitter_range": 1,
}


def haste_container(settings: Settings) -> ContainerClient:
    """HASTE's container: records, configs and results."""
    return _blobs(settings).get_container_client(settings.blob_container)


def worker_container(settings: Settings, **options: Any) -> ContainerClient:
    """The worker's own container, in the same account. `options` are azure-core's own."""
    return _blobs(settings, **options).get_container_client(settings.worker_container)


def queues(settings: Settings) -> QueueServiceClient:
    """HASTE's queues and the worker's own, in the same account."""
    return QueueServiceClient.from_connection_string(_connection_string(settings), **_PATIENCE)


def delegating_service(settings: Settings, identity: TokenCredential) -> BlobServiceClient:
    """The account with the app's identity, to ask for delegation keys with."""
    blob_url = settings.storage_account.blob_url
    return BlobServiceClient(blob_url, identity, **_PATIENCE)


def _blobs(settings: Settings, **options: Any) -> BlobServiceClient:
    return BlobServiceClient.from_connection_string(_connection_string(settings), **_PATIENCE, **options)


def _connection_string(settings: Settings) -> str:
    return settings.blob_connection_string.get_secret_value()
