"""Storage connections of triggers: which account a connection's settings name."""

from dataclasses import dataclass, field

from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from local.functions_host.settings import Settings

HOST_STORAGE = "AzureWebJobsStorage"
_PREFIX = "AzureWebJobs"


class ConnectionFault(ValueError):
    """A trigger's connection has no usable setting; the message names the settings that would do."""


@dataclass(frozen=True)
class StorageConnection:
    """One storage account, by connection string or by identity; never printed with its secret."""

    setting: str
    connection_string: str = field(default="", repr=False)
    queue_uri: str = ""
    blob_uri: str = ""
    managed_identity: bool = False
    client_id: str = ""

    def check_queue(self) -> None:
        """Raises ConnectionFault unless the settings name a queue service."""
        self._check(QueueServiceClient, self.queue_uri, "queue")

    def check_blob(self) -> None:
        """Raises ConnectionFault unless the settings name a blob service."""
        self._check(BlobServiceClient, self.blob_uri, "blob")

    def _check(self, client: type[QueueServiceClient] | type[BlobServiceClient], uri: str, service: str) -> None:
        if not self.connection_string:
            if not uri:
                raise ConnectionFault(f"set {self.setting}__{service}ServiceUri or {self.setting}__accountName")
            return
        try:
            client.from_connection_string(self.connection_string)
        except ValueError:
            # The SDK's error is left out: it could quote the key.
            raise ConnectionFault(f"the setting {self.setting} is no storage connection string") from None


def find_connection(settings: Settings, name: str) -> StorageConnection:
    """Find a trigger's `connection`: `AzureWebJobs<name>` or `<name>`, empty meaning AzureWebJobsStorage.

    A setting of exactly that name is a connection string and wins over the identity settings `<name>__...`. Raises
    ConnectionFault when neither is there.
    """
    name = name or HOST_STORAGE
    for setting in (_PREFIX + name, name):
        connection_string = settings.get(setting)
        if connection_string:
            return StorageConnection(setting, connection_string)
        parts = settings.below(setting)
        account = parts.get("accountname", "")
        connection = StorageConnection(
            setting,
            queue_uri=parts.get("queueserviceuri") or parts.get("serviceuri") or _endpoint(account, "queue"),
            blob_uri=parts.get("blobserviceuri") or _endpoint(account, "blob"),
            managed_identity=parts.get("credential", "").lower() == "managedidentity",
            client_id=parts.get("clientid", ""),
        )
        if connection.queue_uri or connection.blob_uri:
            return connection
    raise ConnectionFault(
        f"the connection {name} has no setting: set {name} to a connection string, or {name}__accountName or "
        f"{name}__queueServiceUri for identity"
    )


def _endpoint(account: str, service: str) -> str:
    return f"https://{account}.{service}.core.windows.net" if account else ""
