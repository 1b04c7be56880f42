"""One tenant: a worker in this process on a ledger in Azurite, and an operator's commands as processes beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from azure.storage.blob import BlobServiceClient

from local.batch import ACCOUNT_KEY, ManualClock
from local.stack.azurite import StorageAccount
from local.stack.environment import child_environment
from shared.ledger.blob_ledger import BlobLedger
from shared.ledger.notes import BlobNotes
from shared.settings.load import setting_names
from shared.storage.blob_container import BlobContainer
from tests.support.story import TWO_POOLS, Story

PROJECT_FOLDER = Path(__file__).resolve().parents[2]


@dataclass
class Deployment:
    """`story` is the worker with its Batch account; `run` is the operator."""

    account: StorageAccount
    folder: Path
    settings: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        service = BlobServiceClient.from_connection_string(self.account.connection_string)
        for name in ("data", "haste-worker"):
            service.create_container(name)
        self.blobs = BlobContainer(service.get_container_client("haste-worker"))
        ports = {"ledger": BlobLedger(self.blobs), "notes": BlobNotes(self.blobs)}
        self.story = Story(
            clock=ManualClock(datetime.now(UTC)),
            stepped=lambda name, port: ports.get(name, port),
            storage=self.account.name,
            **TWO_POOLS,
        )
        self.story.world.ledger = ports["ledger"]  # type: ignore[assignment]  # where the story looks
        self.settings = {
            "BLOB_CONNECTION_STRING": self.account.connection_string,
            "AzureWebJobsStorage": self.account.connection_string,
            "METADATA_STORAGE_TYPE": "blob",
            "ARTIFACT_STORAGE_TYPE": "blob",
            "TITILER_ENDPOINT": "https://localhost/api/titiler/",
            "AZURE_BATCH_ACCOUNT_NAME": "localbatch",
            "AZURE_BATCH_ACCOUNT_KEY": ACCOUNT_KEY,
            "AZURE_BATCH_OUTPUT_CONTAINER_URL": f"{self.account.blob_endpoint}/data",
            "AZURE_BATCH_DOCKER_IMAGE": "registry/training:1",
            "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": "registry/imageryprep:1",
            "AZURE_BATCH_USE_SAS": "true",
            "AZURE_BATCH_MANAGE_POOLS": "false",
            "WORKER_TENANT": "tenant",
        }

    def run(self, *arguments: str, expect: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
        """`python -m operate ...` with these settings in its environment."""
        bare = {name: value for name, value in child_environment().items() if name not in setting_names()}
        done = subprocess.run(
            [sys.executable, "-m", "operate", *arguments],
            cwd=self.folder,
            env={**bare, **self.settings, **settings, "PYTHONPATH": str(PROJECT_FOLDER)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    def json(self, *arguments: str, expect: int = 0) -> dict[str, Any]:
        """The answer for programs."""
        answer: dict[str, Any] = json.loads(self.run(*arguments, "--json", expect=expect).stdout)
        return answer
