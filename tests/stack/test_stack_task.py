"""A task of the stack's Batch account gets its input and leaves its output in the tenant's storage, by SAS alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.batch import BatchClient
from azure.batch.models import (
    BatchJobCreateOptions,
    BatchPoolInfo,
    BatchTaskConstraints,
    BatchTaskContainerSettings,
    BatchTaskCreateOptions,
    OutputFile,
    OutputFileBlobContainerDestination,
    OutputFileDestination,
    OutputFileUploadCondition,
    OutputFileUploadConfiguration,
    ResourceFile,
)
from azure.identity import DefaultAzureCredential
from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)

from local.certificates import Certificates
from local.stack import Stack, StackOptions, running_stack
from local.stack.settings import IMAGERYPREP_IMAGE, TRAINING_IMAGE
from local.stack.world import default_world
from tests.support.waiting import until

NOW = datetime.now(UTC)
# What the stand-in images rely on: their interpreter, its packages, and trust in the stack's storage.
PROGRAM = """
import os, sys, urllib.request
import numpy, rasterio
print("imported")
url = open("input.txt").read()
text = urllib.request.urlopen(url, timeout=10).read().decode()
open("out.txt", "w").write(f"{text} {os.environ['HASTE_LOCAL_SECONDS']}")
"""


@pytest.fixture
def stack(certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack without a host; this process plays the worker, with the stack's identity."""
    options = StackOptions(tmp_path, tenants=("tenanta",), world=default_world(0), certificates=certificates)
    with running_stack(options) as running:
        for name, value in running.stack.identity.environment().items():
            monkeypatch.setenv(name, value)
        yield running.stack


@pytest.mark.parametrize("image", [IMAGERYPREP_IMAGE, TRAINING_IMAGE])
def test_a_task_reads_and_writes_through_sas(stack: Stack, image: str) -> None:
    account = stack.accounts["tenanta"]
    container = ContainerClient.from_connection_string(account.connection_string, "data")
    with (
        DefaultAzureCredential() as credential,
        BlobServiceClient(account.blob_endpoint, credential) as service,
        BatchClient(stack.batch.url, credential) as batch,
    ):
        signed: dict[str, Any] = {
            "user_delegation_key": service.get_user_delegation_key(
                NOW - timedelta(minutes=5), NOW + timedelta(hours=1)
            ),
            "expiry": NOW + timedelta(minutes=30),
            "protocol": "https",
        }
        secret_url = readable(container, "imagery", "seen by the task", signed)
        input_url = readable(container, "input", secret_url, signed)
        program_url = readable(container, "program", PROGRAM, signed)
        output = generate_container_sas(
            account.name, "data", permission=ContainerSasPermissions(create=True, write=True), **signed
        )
        batch.create_job(job=BatchJobCreateOptions(id="job", pool_info=BatchPoolInfo(pool_id="t4-pool")))
        batch.create_task(job_id="job", task=task(image, program_url, input_url, f"{container.url}?{output}"))
        assert until(lambda: batch.get_task("job", "task").state == "completed")
        ended = batch.get_task("job", "task")
    assert ended.execution_info is not None
    assert ended.execution_info.exit_code == 0, ended.execution_info.as_dict()
    assert container.download_blob("made/out.txt").readall() == b"seen by the task 0"


def readable(container: ContainerClient, name: str, text: str, signed: dict[str, Any]) -> str:
    """The URL of a new blob with a SAS that reads this blob and no other."""
    blob = container.upload_blob(name, text.encode())
    token = generate_blob_sas(
        str(container.account_name), "data", name, permission=BlobSasPermissions(read=True), **signed
    )
    return f"{blob.url}?{token}"


def task(image: str, program_url: str, input_url: str, output_url: str) -> BatchTaskCreateOptions:
    uploads = [
        OutputFile(
            file_pattern=pattern,
            destination=OutputFileDestination(
                container=OutputFileBlobContainerDestination(container_url=output_url, path="made")
            ),
            upload_options=OutputFileUploadConfiguration(upload_condition=OutputFileUploadCondition.TASK_COMPLETION),
        )
        for pattern in ("out*.txt", "../*.txt")
    ]
    return BatchTaskCreateOptions(
        id="task",
        command_line='"cd $AZ_BATCH_TASK_WORKING_DIR && python program.py"',
        container_settings=BatchTaskContainerSettings(image_name=image, container_run_options="--rm"),
        resource_files=[
            ResourceFile(http_url=program_url, file_path="program.py"),
            ResourceFile(http_url=input_url, file_path="input.txt"),
        ],
        output_files=uploads,
        constraints=BatchTaskConstraints(max_wall_clock_time=timedelta(minutes=5)),
    )
