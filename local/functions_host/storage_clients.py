"""The SDK clients of a host process: one per connection and service, closed together."""

import os
from contextlib import AsyncExitStack
from typing import Any

from azure.identity.aio import DefaultAzureCredential, ManagedIdentityCredential
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from local.functions_host.connections import StorageConnection


class StorageClients:
    """Makes clients on first use; `close` closes them and their credentials."""

    def __init__(self) -> None:
        self._queues: dict[StorageConnection, QueueServiceClient] = {}
        self._blobs: dict[StorageConnection, BlobServiceClient] = {}
        self._credentials: dict[StorageConnection, DefaultAzureCredential | ManagedIdentityCredential] = {}
        self._opened = AsyncExitStack()

    def queue_service(self, connection: StorageConnection) -> QueueServiceClient:
        if connection not in self._queues:
            if connection.connection_string:
                client = QueueServiceClient.from_connection_string(connection.connection_string, **_options())
            else:
                credential = self._credential(connection)
                client = QueueServiceClient(connection.queue_uri, credential=credential, **_options())
            self._opened.push_async_callback(client.close)
            self._queues[connection] = client
        return self._queues[connection]

    def blob_service(self, connection: StorageConnection) -> BlobServiceClient:
        if connection not in self._blobs:
            if connection.connection_string:
                client = BlobServiceClient.from_connection_string(connection.connection_string, **_options())
            else:
                credential = self._credential(connection)
                client = BlobServiceClient(connection.blob_uri, credential=credential, **_options())
            self._opened.push_async_callback(client.close)
            self._blobs[connection] = client
        return self._blobs[connection]

    async def close(self) -> None:
        await self._opened.aclose()

    def _credential(self, connection: StorageConnection) -> DefaultAzureCredential | ManagedIdentityCredential:
        if connection not in self._credentials:
            credential: DefaultAzureCredential | ManagedIdentityCredential
            if connection.managed_identity:
                credential = ManagedIdentityCredential(client_id=connection.client_id or None)
            elif connection.client_id:
                credential = DefaultAzureCredential(managed_identity_client_id=connection.client_id)
            else:
                credential = DefaultAzureCredential()
            self._opened.push_async_callback(credential.close)
            self._credentials[connection] = credential
        return self._credentials[connection]


def _options() -> dict[str, Any]:
    # The SDK's default first retry waits 15 s; the host polls anyway.
    options: dict[str, Any] = {"initial_backoff": 1, "increment_base": 2, "retry_total": 3}
    # The async transport reads SSL_CERT_FILE by itself, but not the variable the sync transport honours. It is named
    # only where needed, since the transport then makes a TLS context, and so a connection, for every request.
    bundle = os.environ.get("REQUESTS_CA_BUNDLE")
    if bundle and bundle != os.environ.get("SSL_CERT_FILE"):
        options["connection_verify"] = bundle
    return options
