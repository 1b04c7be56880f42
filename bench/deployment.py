"""The app as it is deployed for one tenant in shared mode, put together by `shared.app.build`, on services that count.

Time is manual: a run of the timer every 30 s of service time, as by default.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from azure.core.credentials import AccessToken
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from bench.storage_service import StorageService
from local.batch import ACCOUNT_KEY, InProcessTransport, ManualClock, ScriptedRunner, World
from local.producer import names
from local.producer.api import HasteApi
from local.producer.records import new_image_layer, new_label, new_model, new_project
from shared import app as wiring
from shared.app import App
from shared.batch.client import connect
from shared.kinds import Entity, Kind
from shared.settings.load import load_settings
from shared.storage import accounts
from shared.telemetry import logs
from shared.triggers import messages
from shared.triggers.messages import QueueMessage

TICK_SECONDS = 30
_KEY = "YmVuY2gtYWNjb3VudC1rZXk="
_CONNECTION = f"DefaultEndpointsProtocol=https;AccountName=bench;AccountKey={_KEY};EndpointSuffix=core.windows.net"
_LABELS = "6b0f2d4e-1c3a-4e5f-8a7b-9c0d1e2f3a4b"
_SQUARE = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0)]


class _Token:
    def __init__(self, _client_id: str | None) -> None:
        pass

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken("token", 4_000_000_000)


@dataclass
class Deployment:
    """`pools` as in a world file; training and inference may use all of them, in this order."""

    pools: list[dict[str, Any]]
    settings: dict[str, str] = field(default_factory=dict)
    host_ahead: timedelta = timedelta()
    """how far the clock of the processes' machines is ahead of that of the services"""

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.runner = ScriptedRunner()
        self.world = World.from_json({"pools": self.pools}, clock=self.clock, runner=self.runner)
        self.world.advance(10)
        self.transport = InProcessTransport(self.world)
        self.storage = StorageService(self.clock.now)
        self._messages = itertools.count(1)
        self._batch_from = 0
        self._others: Counter[str] = Counter()
        self.api = HasteApi(
            BlobServiceClient.from_connection_string(_CONNECTION, transport=self.storage),
            QueueServiceClient.from_connection_string(_CONNECTION, transport=self.storage),
        )
        self.app = self.new_process()
        self.project_id, self.layer_id = self._make_layer()

    def new_process(self) -> App:
        """The app as a process of this deployment puts it together."""
        pool_ids = ",".join(pool["id"] for pool in self.pools)
        with ExitStack() as patches:
            patches.enter_context(mock.patch.dict(accounts._PATIENCE, {"transport": self.storage}))
            patches.enter_context(mock.patch.object(wiring, "AppIdentity", _Token))
            patches.enter_context(mock.patch.object(wiring, "connect", self._connect))
            patches.enter_context(mock.patch.object(logs, "configure", lambda: None))
            return wiring.build(load_settings(_settings(pool_ids) | self.settings), self._host_now)

    def _host_now(self) -> datetime:
        return self.clock.now() + self.host_ahead

    def _connect(self, endpoint: str, credential: Any, **options: Any) -> Any:
        return connect(endpoint, credential, transport=self.transport, **options)

    # --- HASTE's side, not counted

    def _make_layer(self) -> tuple[str, str]:
        """A project with a prepared and labelled image layer."""
        project_id = self.api.create_project(new_project(name="Bench", user_id="u"))["projectId"]
        folder = names.partition(project_id)
        urls = {
            "postEventMosaicCogImageryUrl": self.api.storage.signed_url(f"{folder}/img-1/mosaic.tif"),
            "postEventProcessedImageryUrl": self.api.storage.signed_url(f"{folder}/img-1/processed.tif"),
        }
        layer = new_image_layer(project_id, name="Layer", user_id="u", post_event_urls=[]) | urls
        layer |= {"status": "Processed", "normalizationMeans": [0.1] * 3, "normalizationStds": [0.2] * 3}
        layer_id = layer["imageLayerId"]
        self.api.storage.save(names.layer_blob(project_id, layer_id), layer)
        labels = {
            "labelprojectId": _LABELS,
            "projectId": project_id,
            "imageLayerId": layer_id,
            "name": "Labels",
            "labels": [new_label(number, "Building", _SQUARE) for number in range(50)],
        }
        self.api.storage.save(names.label_project_blob(project_id, _LABELS), labels)
        return project_id, layer_id

    def train(self, max_epochs: int = 50) -> Entity:
        """HASTE's API asks for the training of a new model, and the trigger delivers its message."""
        number = next(self._messages)
        model = new_model(
            self.project_id,
            self.layer_id,
            name="Model",
            user_id="u",
            labelproject_id=_LABELS,
            max_epochs=max_epochs,
            auto_run_inference=False,
            model_id=str(100_000 + number),
        )
        with self.uncounted():
            self.api.put_run_model(model, delay_seconds=0)
            (text,) = self.storage.take("train-queue")
        message = QueueMessage("train-queue", f"message-{number}", self.clock.now(), text.encode())
        messages.haste_message(self.app.worker, self.app.rejected, Kind.TRAINING, message)
        return Entity(Kind.TRAINING, self.project_id, model["modelId"])

    # --- time

    def deliver_own(self) -> None:
        """The trigger of the worker's own queue delivers what is visible."""
        for text in self.storage.take("haste-worker-jobs"):
            message = QueueMessage("own", f"own-{next(self._messages)}", self.clock.now(), text.encode())
            messages.own_message(self.app.worker, self.app.rejected, message)

    def tick(self, after_seconds: float = TICK_SECONDS) -> None:
        """Time passes, the timer runs, and what it has put into the worker's own queue is delivered."""
        self.world.advance(after_seconds)
        self.app.tick()
        self.deliver_own()

    # --- counting

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """What is asked inside is not the worker's."""
        before = self.calls()
        yield
        self._others += self.calls() - before

    def count_anew(self) -> None:
        """Forget what has been counted."""
        self.storage.calls.clear()
        self._others.clear()
        self._batch_from = len(self.world.events.select("request"))

    def calls(self) -> Counter[str]:
        """Azure calls since `count_anew`, by what they are."""
        requests = self.world.events.select("request")[self._batch_from :]
        batch = Counter(f"Batch {event['operation']}" for event in requests)
        storage = Counter({f"Storage {what}": count for what, count in self.storage.calls.items()})
        return batch + storage - self._others


def told(calls: Counter[str], divisor: float = 1) -> str:
    """Calls by type, most frequent first."""
    return ", ".join(f"{count / divisor:.4g} {what}" for what, count in calls.most_common())


def _settings(pool_ids: str) -> dict[str, str]:
    return {
        "AzureWebJobsStorage": _CONNECTION,
        "BLOB_CONNECTION_STRING": _CONNECTION,
        "METADATA_STORAGE_TYPE": "blob",
        "ARTIFACT_STORAGE_TYPE": "blob",
        "TITILER_ENDPOINT": "https://titiler.example/",
        "AZURE_BATCH_ACCOUNT_NAME": "localbatch",
        "AZURE_BATCH_ACCOUNT_KEY": ACCOUNT_KEY,
        "AZURE_BATCH_URL": "https://batch.local",
        "AZURE_BATCH_OUTPUT_CONTAINER_URL": "https://bench.blob.core.windows.net/data",
        "AZURE_BATCH_DOCKER_IMAGE": "example.azurecr.io/training:2.0.0",
        "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": "example.azurecr.io/imageryprep:2.0.0",
        "AZURE_BATCH_TRAINING_POOL_IDS": pool_ids,
        "AZURE_BATCH_INFERENCE_POOL_IDS": pool_ids,
        "AZURE_BATCH_IMAGERYPREP_POOL_IDS": pool_ids,
        "AZURE_BATCH_USE_SAS": "true",
        "AZURE_BATCH_MANAGE_POOLS": "false",
        "WORKER_TENANT": "bench",
    }
