"""The settings table: every app setting the worker reads, with its default and its meaning, in one place.

Names and defaults of HASTE's settings are HASTE's own; WATCH_SCHEDULE and the WORKER_ ones are the worker's.
A setting that is empty counts as not set.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from pydantic import BaseModel, ConfigDict, SecretStr

from shared.kinds import Kind
from shared.settings.rows import KindSettings, output_account, setting, single, with_sas
from shared.settings.values import (
    AccountKey,
    BatchId,
    BatchIds,
    ConnectionString,
    ContainerName,
    ContainerUrl,
    CountFromOne,
    CountFromZero,
    Duration,
    FolderUrl,
    HttpsUrl,
    QueueName,
    ResourceId,
    Schedule,
    StorageAccount,
    Switch,
    Tenant,
    TriggerConnection,
    account_name,
    connection_account,
    parse_connection_string,
)

_SHARED_RETENTION = timedelta(hours=1)


class Settings(BaseModel):
    """The app settings; an attribute is named like its setting, in lower case. Made by `load.load_settings`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    azurewebjobsstorage: TriggerConnection | None = setting(
        "AzureWebJobsStorage", None, "Connection string of the account the triggers listen on: HASTE's."
    )
    azurewebjobsstorage__accountname: str | None = setting(
        "AzureWebJobsStorage__accountName", None, "The same by identity: the account's name."
    )
    azurewebjobsstorage__blobserviceuri: HttpsUrl | None = setting(
        "AzureWebJobsStorage__blobServiceUri", None, "The same by identity: the account's blob URL."
    )
    azurewebjobsstorage__queueserviceuri: HttpsUrl | None = setting(
        "AzureWebJobsStorage__queueServiceUri", None, "The same by identity: the account's queue URL."
    )
    blob_connection_string: ConnectionString = setting(
        "BLOB_CONNECTION_STRING", SecretStr(""), "HASTE's storage account, blobs and queues; must contain AccountKey."
    )
    blob_container: ContainerName = setting(
        "BLOB_CONTAINER", "data", "HASTE's container: records, configs and results."
    )
    blob_container_read_policy: str = setting(
        "BLOB_CONTAINER_READ_POLICY", "image-layer-r-policy", "Stored access policy behind the URLs in HASTE's records."
    )
    metadata_storage_type: str = setting("METADATA_STORAGE_TYPE", "local", "Where records are; must be blob.")
    artifact_storage_type: str = setting("ARTIFACT_STORAGE_TYPE", "local", "Where results are; must be blob.")
    image_queue_name: QueueName = setting("IMAGE_QUEUE_NAME", "image-layers-queue", "Imagery preparation requests.")
    train_queue_name: QueueName = setting("TRAIN_QUEUE_NAME", "train-queue", "Training requests and cancels.")
    inference_queue_name: QueueName = setting("INFERENCE_QUEUE_NAME", "inference-queue", "Inference requests.")
    zip_queue_name: QueueName = setting(
        "ZIP_QUEUE_NAME", "zip-queue", "Where HASTE's queue app takes requests for zips of results from."
    )
    titiler_endpoint: FolderUrl = setting("TITILER_ENDPOINT", "", "Address of the tile server.")
    titiler_public_endpoint: FolderUrl = setting(
        "TITILER_PUBLIC_ENDPOINT",
        lambda known: known["titiler_endpoint"],
        "Address of the tile server in label projects; without it TITILER_ENDPOINT.",
    )
    titiler_tilesize: CountFromOne = setting("TITILER_TILESIZE", 256, "Tile size in label projects, in pixels.")
    gdal_translate_params: str = setting(
        "GDAL_TRANSLATE_PARAMS",
        "BIGTIFF=YES NUM_THREADS=ALL_CPUS COMPRESS=DEFLATE PREDICTOR=2",
        "How inference writes its rasters; given to its tasks.",
    )
    runner_type: str = setting("RUNNER_TYPE", "azure_batch", "Where tasks run; must be azure_batch.")
    azure_batch_account_name: str = setting("AZURE_BATCH_ACCOUNT_NAME", "", "Name of the Batch account.")
    azure_batch_account_key: AccountKey | None = setting(
        "AZURE_BATCH_ACCOUNT_KEY", None, "Key of the Batch account; without it the app's identity is used."
    )
    azure_batch_url: HttpsUrl = setting(
        "AZURE_BATCH_URL", "", "Batch endpoint, https://<account>.<region>.batch.azure.com."
    )
    azure_batch_output_container_url: ContainerUrl = setting(
        "AZURE_BATCH_OUTPUT_CONTAINER_URL", "", "HASTE's container as the tasks reach it; they put their results there."
    )
    azure_batch_training_pool_id: BatchId = setting(
        "AZURE_BATCH_TRAINING_POOL_ID", "training-pool", "Pool of training and inference if no list is set."
    )
    azure_batch_imageryprep_pool_id: BatchId = setting(
        "AZURE_BATCH_IMAGERYPREP_POOL_ID", "imageryprep-pool", "Pool of imagery preparation if no list is set."
    )
    azure_batch_training_pool_ids: BatchIds = setting(
        "AZURE_BATCH_TRAINING_POOL_IDS",
        single("azure_batch_training_pool_id"),
        "Pools for training, best first, separated by commas; without it the single pool.",
    )
    azure_batch_inference_pool_ids: BatchIds = setting(
        "AZURE_BATCH_INFERENCE_POOL_IDS",
        single("azure_batch_training_pool_id"),
        "Pools for inference, best first, separated by commas; without it the single training pool.",
    )
    azure_batch_imageryprep_pool_ids: BatchIds = setting(
        "AZURE_BATCH_IMAGERYPREP_POOL_IDS",
        single("azure_batch_imageryprep_pool_id"),
        "Pools for imagery preparation, best first, separated by commas; without it the single pool.",
    )
    training_batch_job_id: BatchId | None = setting(
        "TRAINING_BATCH_JOB_ID", None, "Base of Batch job ids of training; without it the training pool's id."
    )
    inference_batch_job_id: BatchId | None = setting(
        "INFERENCE_BATCH_JOB_ID", None, "Base of Batch job ids of inference; without it the training pool's id."
    )
    imageryprep_batch_job_id: BatchId | None = setting(
        "IMAGERYPREP_BATCH_JOB_ID", None, "Base of Batch job ids of imagery preparation; without it its pool's id."
    )
    azure_batch_use_sas: Switch = setting(
        "AZURE_BATCH_USE_SAS", False, "true: shared pools, each task gets SAS of its own; false: the pool's identity."
    )
    azure_batch_manage_pools: Switch = setting(
        "AZURE_BATCH_MANAGE_POOLS", True, "true: the worker may resize and repair pools; false: it only reads them."
    )
    azure_batch_registry_identity_resource_id: ResourceId | None = setting(
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID", None, "Identity of the pool's nodes; needed without SAS."
    )
    azure_batch_target_dedicated_nodes: CountFromZero = setting(
        "AZURE_BATCH_TARGET_DEDICATED_NODES", 1, "Nodes an empty fixed pool is woken to."
    )
    azure_batch_target_low_priority_nodes: CountFromZero = setting(
        "AZURE_BATCH_TARGET_LOW_PRIORITY_NODES", 0, "Spot nodes an empty fixed pool is woken to."
    )
    azure_batch_docker_image: str = setting(
        "AZURE_BATCH_DOCKER_IMAGE", "", "Container image of training and inference."
    )
    azure_batch_imageryprep_docker_image: str = setting(
        "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE", "", "Container image of imagery preparation."
    )
    azure_batch_task_retention_time: Duration = setting(
        "AZURE_BATCH_TASK_RETENTION_TIME",
        timedelta(days=2),
        "How long a node keeps a task's files, ISO 8601; one hour at most with AZURE_BATCH_USE_SAS=true.",
    )
    worker_tenant: Tenant = setting(
        "WORKER_TENANT",
        output_account,
        "Tenant in Batch job ids and logs; without it the account in AZURE_BATCH_OUTPUT_CONTAINER_URL.",
    )
    worker_container: ContainerName = setting("WORKER_CONTAINER", "haste-worker", "The worker's own container.")
    worker_queue_name: QueueName = setting("WORKER_QUEUE_NAME", "haste-worker-jobs", "The worker's own queue.")
    watch_schedule: Schedule = setting("WATCH_SCHEDULE", "*/30 * * * * *", "When the timer looks, NCRONTAB.")
    worker_max_run_imageryprep: Duration | None = setting(
        "WORKER_MAX_RUN_IMAGERYPREP",
        with_sas(timedelta(hours=6)),
        "Longest run of imagery preparation, ISO 8601; without it PT6H with AZURE_BATCH_USE_SAS=true, else no limit.",
    )
    worker_max_run_training: Duration | None = setting(
        "WORKER_MAX_RUN_TRAINING",
        with_sas(timedelta(hours=48)),
        "Longest run of training, ISO 8601; without it PT48H with AZURE_BATCH_USE_SAS=true, else no limit.",
    )
    worker_max_run_inference: Duration | None = setting(
        "WORKER_MAX_RUN_INFERENCE",
        with_sas(timedelta(hours=12)),
        "Longest run of inference, ISO 8601; without it PT12H with AZURE_BATCH_USE_SAS=true, else no limit.",
    )
    worker_late_save: Duration = setting(
        "WORKER_LATE_SAVE", timedelta(seconds=60), "How long after its message HASTE's API may save the record."
    )
    worker_max_wait: Duration = setting(
        "WORKER_MAX_WAIT", timedelta(hours=24), "How long a task may be queued; part of the life of its SAS."
    )
    worker_preemption_grace: Duration = setting(
        "WORKER_PREEMPTION_GRACE", timedelta(minutes=5), "Wait for Batch's own re-run when no other pool is free."
    )
    worker_max_preemptions: CountFromOne = setting(
        "WORKER_MAX_PREEMPTIONS", 3, "Losses per pool and request after which the pool is not taken again."
    )
    worker_pool_cool_down: Duration = setting(
        "WORKER_POOL_COOL_DOWN",
        timedelta(minutes=30),
        "How long a pool comes last after it has lost a job.",
    )
    worker_queued_too_long: Duration = setting(
        "WORKER_QUEUED_TOO_LONG", timedelta(minutes=15), "After this time in the queue another free pool is used."
    )
    worker_progress_every: Duration = setting(
        "WORKER_PROGRESS_EVERY", timedelta(seconds=60), "How often a running task's progress is read from its node."
    )
    worker_tenant_max_live_tasks: CountFromZero = setting(
        "WORKER_TENANT_MAX_LIVE_TASKS", 0, "Most tasks of this tenant in Batch at once; 0 = no limit."
    )

    @property
    def shared_mode(self) -> bool:
        """Pools shared with other tenants and SAS for the tasks; otherwise the legacy mode."""
        return self.azure_batch_use_sas

    @property
    def storage_account(self) -> StorageAccount:
        """HASTE's storage account."""
        return parse_connection_string(self.blob_connection_string.get_secret_value())

    @property
    def trigger_account(self) -> str | None:
        """Name of the account the triggers listen on; None if the settings do not tell."""
        if self.azurewebjobsstorage:
            return connection_account(self.azurewebjobsstorage.get_secret_value())
        return self.azurewebjobsstorage__accountname or account_name(self.azurewebjobsstorage__queueserviceuri or "")

    @property
    def task_retention(self) -> timedelta:
        """How long a node keeps a task's files: on shared pools an hour at most."""
        retention = self.azure_batch_task_retention_time
        return min(retention, _SHARED_RETENTION) if self.shared_mode else retention

    def of(self, kind: Kind) -> KindSettings:
        """The settings of one kind of work."""
        match kind:
            case Kind.IMAGERYPREP:
                return KindSettings(
                    queue_name=self.image_queue_name,
                    pool_ids=self.azure_batch_imageryprep_pool_ids,
                    base_job_id=self.imageryprep_batch_job_id or self.azure_batch_imageryprep_pool_id,
                    image=self.azure_batch_imageryprep_docker_image,
                    max_run=self.worker_max_run_imageryprep,
                )
            case Kind.TRAINING:
                return KindSettings(
                    queue_name=self.train_queue_name,
                    pool_ids=self.azure_batch_training_pool_ids,
                    base_job_id=self.training_batch_job_id or self.azure_batch_training_pool_id,
                    image=self.azure_batch_docker_image,
                    max_run=self.worker_max_run_training,
                )
            case Kind.INFERENCE:
                return KindSettings(
                    queue_name=self.inference_queue_name,
                    pool_ids=self.azure_batch_inference_pool_ids,
                    base_job_id=self.inference_batch_job_id or self.azure_batch_training_pool_id,
                    image=self.azure_batch_docker_image,
                    max_run=self.worker_max_run_inference,
                )
            case _:
                assert_never(kind)
