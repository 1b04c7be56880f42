"""`python -m local.stack.prepare`: make a tenant's storage ready and check that it serves delegated SAS.

A program of its own, started with a tenant's app settings as environment: it sees exactly what the worker will see, the
unmodified `DefaultAzureCredential` and the trusted authority included.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import FrameType

from azure.core.exceptions import AzureError, ResourceExistsError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import (
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    generate_blob_sas,
)
from azure.storage.queue import QueueServiceClient

from local.stack.settings import QUEUES

CHECK_SECONDS = 4
HINT = (
    "The storage emulator is not ready, or serves no user delegation SAS, which the worker needs for its tasks. "
    "Start Azurite with `--oauth basic --cert ... --key ... --skipApiVersionCheck`, version 3.37.0 as in "
    "local/azurite/package-lock.json, and the identity endpoint beside it (IDENTITY_ENDPOINT, IDENTITY_HEADER)."
)


def main() -> int:
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(CHECK_SECONDS)
    try:
        create_storage(os.environ)
        check_delegated_sas(os.environ)
    except (AzureError, ValueError) as error:  # ValueError: the SDK sends no token over plain http
        print(f"{HINT}\nCause: {_reason(error)}", flush=True)
        return 1
    print("storage is ready; a user delegation SAS reads its blob", flush=True)
    return 0


def create_storage(settings: Mapping[str, str]) -> None:
    """Create the containers and queues that a deployment has; those that exist are left alone."""
    connection_string = settings["BLOB_CONNECTION_STRING"]
    with BlobServiceClient.from_connection_string(connection_string, retry_total=0) as blobs:
        for container in (settings["BLOB_CONTAINER"], settings["WORKER_CONTAINER"]):
            with contextlib.suppress(ResourceExistsError):
                blobs.create_container(container)
    with QueueServiceClient.from_connection_string(connection_string, retry_total=0) as queues:
        for queue in (*(settings[name] for name in QUEUES), settings["WORKER_QUEUE_NAME"]):
            with contextlib.suppress(ResourceExistsError):
                queues.create_queue(queue)


def check_delegated_sas(settings: Mapping[str, str]) -> None:
    """Mint a user delegation key with `DefaultAzureCredential` and read a blob with a SAS made from it.

    Raises the SDK's error when a step of it fails, ValueError when the content differs.
    """
    with BlobServiceClient.from_connection_string(settings["BLOB_CONNECTION_STRING"], retry_total=0) as owner:
        container = owner.get_container_client(settings["BLOB_CONTAINER"])
        blob = container.upload_blob(f"self-check/{uuid.uuid4().hex}", b"delegated")
        try:
            content = _read_with_delegated_sas(container, blob)
        finally:
            blob.delete_blob()
    if content != b"delegated":
        raise ValueError("the blob read with the SAS differs from the one written")


def _read_with_delegated_sas(container: ContainerClient, blob: BlobClient) -> bytes:
    now = datetime.now(UTC)
    account_url = blob.url.removesuffix(f"/{container.container_name}/{blob.blob_name}")
    with DefaultAzureCredential() as credential, BlobServiceClient(account_url, credential, retry_total=0) as service:
        key = service.get_user_delegation_key(now - timedelta(minutes=5), now + timedelta(minutes=10))
    token = generate_blob_sas(
        str(container.account_name),
        container.container_name,
        blob.blob_name,
        user_delegation_key=key,
        permission=BlobSasPermissions(read=True),
        expiry=now + timedelta(minutes=5),
        protocol="https",
    )
    with BlobClient.from_blob_url(blob.url, credential=token, retry_total=0) as reader:
        return bytes(reader.download_blob().readall())


def _reason(error: Exception) -> str:
    """The kind and the service's own code, or the first line up to a query, which may be a SAS."""
    code = getattr(error, "error_code", None) or getattr(error, "status_code", None)
    code = getattr(code, "value", code)
    text = str(error).partition("\n")[0].partition("?")[0]
    return f"{type(error).__name__} {code}" if code else f"{type(error).__name__}: {text}"


def _too_late(_number: int, _frame: FrameType | None) -> None:
    # No exception: raised in the middle of a request, the SDK would take it for an outage and try again.
    print(f"{HINT}\nCause: no answer within {CHECK_SECONDS} s", flush=True)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
