"""The app settings of one tenant's worker, as a deployment would set them, with the local services' addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from local.stack.azurite import StorageAccount
from local.stack.supervisor import StackError

CONTAINER = "data"
WORKER_CONTAINER = "haste-worker"
WORKER_QUEUE = "haste-worker-jobs"

QUEUES = {
    "IMAGE_QUEUE_NAME": "local-image-queue",
    "TRAIN_QUEUE_NAME": "local-train-queue",
    "INFERENCE_QUEUE_NAME": "local-inference-queue",
    "EMBEDDING_QUEUE_NAME": "local-embedding-queue",
    "ZIP_QUEUE_NAME": "local-zip-queue",
    "STATS_QUEUE_NAME": "local-stats-queue",
}

TRAINING_POOLS = "h100-pool,t4-pool"
IMAGERYPREP_POOLS = "t4-pool,h100-pool"
LEGACY_POOL = "haste-demo-pool"

TRAINING_IMAGE = "haste.azurecr.io/training:local"
IMAGERYPREP_IMAGE = "haste.azurecr.io/imageryprep:local"
POOL_IDENTITY = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/local"
    "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/haste-batch"
)

WATCH_SCHEDULE = "*/2 * * * * *"


@dataclass(frozen=True)
class BatchAccount:
    """The Batch account that the emulator serves. `key` is a well-known local value."""

    name: str
    key: str
    url: str


@dataclass(frozen=True)
class Identity:
    """Where a program gets its managed identity's tokens, in App Service's own two variables."""

    endpoint: str
    secret: str

    def environment(self) -> dict[str, str]:
        """Without the third variable a developer's own Azure login could be taken instead."""
        return {
            "IDENTITY_ENDPOINT": self.endpoint,
            "IDENTITY_HEADER": self.secret,
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
        }


def storage_settings(account: StorageAccount) -> dict[str, str]:
    """Where the tenant's queues and blobs are, and what they are called."""
    return {
        "AzureWebJobsStorage": account.connection_string,
        "BLOB_CONNECTION_STRING": account.connection_string,
        "BLOB_CONTAINER": CONTAINER,
        "METADATA_STORAGE_TYPE": "blob",
        "ARTIFACT_STORAGE_TYPE": "blob",
        "WORKER_CONTAINER": WORKER_CONTAINER,
        "WORKER_QUEUE_NAME": WORKER_QUEUE,
        **QUEUES,
    }


def batch_settings(account: StorageAccount, batch: BatchAccount, *, legacy: bool) -> dict[str, str]:
    """How the tenant's work reaches Batch.

    `legacy` False: pools shared by the tenants, a token, SAS for the tasks. True: one pool of the deployment's own, the
    account key, the pool's identity for the tasks, and none of the worker's new settings.
    """
    both = {
        "AZURE_BATCH_ACCOUNT_NAME": batch.name,
        "AZURE_BATCH_URL": batch.url,
        "AZURE_BATCH_OUTPUT_CONTAINER_URL": f"{account.blob_endpoint}/{CONTAINER}",
        "AZURE_BATCH_DOCKER_IMAGE": TRAINING_IMAGE,
        "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": IMAGERYPREP_IMAGE,
        "AZURE_BATCH_REGISTRY_SERVER": "haste.azurecr.io",
        "AZURE_BATCH_REGISTRY_IMAGE": TRAINING_IMAGE,
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": POOL_IDENTITY,
    }
    if legacy:
        return both | {
            "AZURE_BATCH_ACCOUNT_KEY": batch.key,
            "AZURE_BATCH_TRAINING_POOL_ID": LEGACY_POOL,
            "AZURE_BATCH_IMAGERYPREP_POOL_ID": LEGACY_POOL,
        }
    return both | {
        "AZURE_BATCH_ACCOUNT_KEY": "",
        "AZURE_BATCH_USE_SAS": "true",
        "AZURE_BATCH_MANAGE_POOLS": "false",
        **pool_settings(TRAINING_POOLS, IMAGERYPREP_POOLS),
    }


def pool_settings(training: str, imageryprep: str) -> dict[str, str]:
    """Which shared pools take training with inference, and imagery preparation: best first, separated by commas."""
    return {
        "AZURE_BATCH_TRAINING_POOL_ID": training.split(",")[0],
        "AZURE_BATCH_IMAGERYPREP_POOL_ID": imageryprep.split(",")[0],
        "AZURE_BATCH_TRAINING_POOL_IDS": training,
        "AZURE_BATCH_INFERENCE_POOL_IDS": training,
        "AZURE_BATCH_IMAGERYPREP_POOL_IDS": imageryprep,
    }


def tenant_settings(
    tenant: str, account: StorageAccount, batch: BatchAccount, identity: Identity, *, legacy: bool = False
) -> dict[str, str]:
    """All app settings of `tenant`, by name; they are put into the environment, as Azure does it.

    What the variables of `Certificates.environment` say comes on top, for any program on the machine alike.
    """
    return {
        "FUNCTIONS_WORKER_RUNTIME": "python",
        "TITILER_ENDPOINT": "https://localhost/api/titiler/",
        "WATCH_SCHEDULE": WATCH_SCHEDULE,
        "WORKER_TENANT": tenant,
        **storage_settings(account),
        **batch_settings(account, batch, legacy=legacy),
        **identity.environment(),
    }


def refuse_incomplete_connection_strings(settings: Mapping[str, str]) -> None:
    """Raise StackError when a connection string has its blobs on this machine and its queues, silently, in Azure.

    A storage client takes `https://<account>.queue.core.windows.net` for a missing QueueEndpoint. The message names the
    setting and shows nothing of its value.
    """
    for name, value in settings.items():
        parts = dict(part.split("=", 1) for part in value.split(";") if "=" in part)
        keys = {key.lower(): part for key, part in parts.items()}
        if not _is_loopback(keys.get("blobendpoint", "")) or _is_loopback(keys.get("queueendpoint", "")):
            continue
        found = "is not on this machine" if "queueendpoint" in keys else "is missing"
        raise StackError(
            f"{name}: BlobEndpoint is on this machine but QueueEndpoint {found}, so queue messages would go to Azure; "
            "name BlobEndpoint, QueueEndpoint and TableEndpoint"
        )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")
