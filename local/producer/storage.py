"""HASTE's storage: one blob container for records and imagery, and queues of raw JSON text in the same account."""

import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import (
    AccessPolicy,
    BlobServiceClient,
    ContainerSasPermissions,
    generate_container_sas,
)
from azure.storage.queue import QueueMessage, QueueServiceClient

from local.producer.records import Record

READ_POLICY = "image-layer-r-policy"
_POLICY_DAYS = 90


class HasteStorage:
    """Records, uploads and messages of one deployment of HASTE."""

    def __init__(
        self, blobs: BlobServiceClient, queues: QueueServiceClient, container: str, read_policy: str = READ_POLICY
    ) -> None:
        self._container = blobs.get_container_client(container)
        self._queues = queues
        self._read_policy = read_policy
        self._account_key: str = blobs.credential.account_key
        self._create_container()

    def _create_container(self) -> None:
        """Make the container and set its read policy anew, as HASTE does at every start: other policies are lost."""
        with contextlib.suppress(ResourceExistsError):
            self._container.create_container()
        policy = AccessPolicy(
            permission=ContainerSasPermissions(read=True),
            start=datetime.now(UTC) - timedelta(minutes=5),
            expiry=datetime.now(UTC) + timedelta(days=_POLICY_DAYS),
        )
        self._container.set_container_access_policy({self._read_policy: policy})

    def signed_url(self, blob_name: str) -> str:
        """The blob's URL with a read SAS of the container that takes its permissions and end from the stored policy."""
        token = generate_container_sas(
            str(self._container.account_name),
            self._container.container_name,
            account_key=self._account_key,
            policy_id=self._read_policy,
        )
        return f"{self._container.get_blob_client(blob_name).url}?{token}"

    def upload(self, blob_name: str, data: bytes) -> str:
        """Store a user's file; returns its signed URL."""
        self._container.upload_blob(blob_name, data, overwrite=True)
        return self.signed_url(blob_name)

    def read(self, blob_name: str) -> Record | None:
        """The stored record, or None if there is none."""
        try:
            record: Any = json.loads(self._container.download_blob(blob_name).readall())
        except ResourceNotFoundError:
            return None
        return dict(record)

    def save(self, blob_name: str, record: Record) -> Record:
        """Save as HASTE does: top-level fields of ``record`` win over the stored ones, no condition, no lease."""
        merged = (self.read(blob_name) or {}) | record
        self._container.upload_blob(blob_name, json.dumps(merged), overwrite=True)
        return merged

    def delete(self, blob_name: str) -> bool:
        """Delete a blob; False if there is none."""
        with contextlib.suppress(ResourceNotFoundError):
            self._container.delete_blob(blob_name)
            return True
        return False

    def blob_names(self, prefix: str) -> list[str]:
        """Names that start with ``prefix``, in order."""
        return list(self._container.list_blob_names(name_starts_with=prefix))

    def put_message(self, queue_name: str, record: Record, *, delay_seconds: int) -> QueueMessage:
        """Send the record as JSON text, visible after ``delay_seconds``; makes the queue if it is missing.

        Returns the message as storage has taken it, with its id and time.
        """
        queue = self._queues.get_queue_client(queue_name)
        with contextlib.suppress(ResourceExistsError):
            queue.create_queue()
        return queue.send_message(json.dumps(record), visibility_timeout=delay_seconds)
