"""What HASTE's users, HASTE's own app, nodes and other tenants do around a deployment whose life is written down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local.producer import names
from local.producer.records import new_image_layer, new_label, new_model, new_project
from local.stack.settings import QUEUES
from shared.kinds import Entity, Kind
from tests.golden.world import PROJECT, Deployment

_LAYER = "2c8e6d10-7a4b-4e39-9d52-6f1a3b8c4d05"
_LABELS = "b41f7a90-5c2d-4f68-a1e3-8d9c0e7b6a52"
_SQUARE = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0)]
_HASTES_JOB = "haste-demo-pool"
_HASTES_TASK = "trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a71"


class Story:
    """A deployment, and what is asked of it. `scenes`: file name -> (about, entities)."""

    def __init__(self, deployment: Deployment) -> None:
        self.at = deployment
        self.scenes: dict[str, tuple[str, list[Entity]]] = {}
        self._numbers = iter(range(1001, 9999))
        deployment.batch.advance(3 * 86400)  # Sunday
        self._make_layer()

    def _make_layer(self) -> None:
        api = self.at.api
        api.create_project(new_project(name="Golden", user_id="analyst", project_id=PROJECT))
        folder = names.partition(PROJECT)
        layer = new_image_layer(PROJECT, name="Layer", user_id="analyst", post_event_urls=[], image_layer_id=_LAYER)
        layer |= {
            "status": "Processed",
            "normalizationMeans": [1, 2, 3],
            "normalizationStds": [4, 5, 6],
            "postEventMosaicCogImageryUrl": api.storage.signed_url(f"{folder}/img-1/mosaic.tif"),
            "postEventProcessedImageryUrl": api.storage.signed_url(f"{folder}/img-1/processed.tif"),
            "buildingFootprintsUrl": api.storage.signed_url(f"{folder}/img-1/footprints.gpkg"),
        }
        api.storage.save(names.layer_blob(PROJECT, _LAYER), layer)
        labels = [new_label(number, name, _SQUARE) for number, name in enumerate(("Building", "Background"))]
        api.storage.save(
            names.label_project_blob(PROJECT, _LABELS),
            {"labelprojectId": _LABELS, "projectId": PROJECT, "imageLayerId": _LAYER, "name": "L", "labels": labels},
        )

    # --- what is asked

    def scene(self, name: str, about: str, *entities: Entity) -> None:
        self.scenes[name] = (about, list(entities))

    def train(self, model_id: str | None = None, *, infers: bool = False) -> Entity:
        """A new model is trained, or a known one again."""
        if model_id is None:
            model = new_model(
                PROJECT,
                _LAYER,
                name="Model",
                user_id="analyst",
                labelproject_id=_LABELS,
                auto_run_inference=infers,
                model_id=str(next(self._numbers)),
            )
        else:
            model = self.at.api.model(PROJECT, model_id)
        self.at.api.put_run_model(model, delay_seconds=0)
        self.at.deliver(Kind.TRAINING)
        return Entity(Kind.TRAINING, PROJECT, model["modelId"])

    def infer(self, training: Entity) -> Entity:
        """The user asks for an inference with a trained model."""
        self.at.api.put_run_inference(self.at.api.model(PROJECT, training.entity_id), delay_seconds=0)
        self.at.deliver(Kind.INFERENCE)
        return Entity(Kind.INFERENCE, PROJECT, training.entity_id)

    def prepare(self) -> Entity:
        """A new image layer."""
        layer_id = f"2c8e6d10-7a4b-4e39-9d52-00000000{next(self._numbers)}"
        source = self.at.api.upload_imagery(PROJECT, "post", b"imagery")
        layer = new_image_layer(
            PROJECT, name="Layer", user_id="analyst", post_event_urls=[source], image_layer_id=layer_id
        )
        self.at.api.put_layer(layer)
        self.at.deliver(Kind.IMAGERYPREP)
        return Entity(Kind.IMAGERYPREP, PROJECT, layer_id)

    def cancel(self, training: Entity) -> None:
        self.at.api.put_cancel_model(PROJECT, training.entity_id, delay_seconds=0)
        self.at.deliver(Kind.TRAINING)

    def adopted(self, pool: str) -> Entity:
        """HASTE's own app has started a training, and its poll message is found."""
        folder = f"{names.partition(PROJECT)}/{_HASTES_TASK}"
        upload = {"uploadOptions": {"uploadCondition": "taskCompletion"}, "filePattern": "checkpoint/*"}
        output = f"{self.at.account.blob_endpoint}/data"
        upload |= {"destination": {"container": {"containerUrl": output, "path": f"{folder}/checkpoint"}}}
        if _HASTES_JOB not in self.at.batch.jobs:
            self._by_hand("/jobs", {"id": _HASTES_JOB, "poolInfo": {"poolId": pool}})
        body = {"id": _HASTES_TASK, "commandLine": "training", "outputFiles": [upload]}
        self._by_hand(f"/jobs/{_HASTES_JOB}/tasks", body)
        model = new_model(PROJECT, _LAYER, name="Model", user_id="analyst", labelproject_id=_LABELS, model_id="4821")
        job = {"jobId": _HASTES_JOB, "taskId": _HASTES_TASK, "status": "InProgress"}
        model |= {"status": "InProgress", "totalSteps": 4, "trainingJob": job, "autoRunInference": False}
        self.at.api.storage.save(names.model_blob(PROJECT, "4821"), model)
        self.at.api.storage.put_message(QUEUES["TRAIN_QUEUE_NAME"], model, delay_seconds=0)
        self.at.deliver(Kind.TRAINING)
        return Entity(Kind.TRAINING, PROJECT, "4821")

    # --- what happens

    def _by_hand(self, path: str, body: dict[str, Any]) -> None:
        self.at.happen("call", method="POST", path=path, body=body)

    def place(self, entity: Entity) -> tuple[str, str]:
        """(Batch job, task) of the live attempt."""
        version = self.at.app.worker.ledger.read(entity.key)
        assert version is not None and version.record.placement is not None, entity
        return version.record.placement.job_id, version.record.placement.task_id

    def finish(self, entity: Entity, exit_code: int = 0) -> None:
        """Its program ends by itself, with results if it succeeds."""
        job, task = self.place(entity)
        if exit_code == 0:
            self.at.leave_results(task)
        self.at.happen("finish", job=job, task=task, exit_code=exit_code)

    def preempt(self, entity: Entity) -> None:
        """The node that it runs on is taken away."""
        job, task = self.place(entity)
        info = self.at.get(f"/jobs/{job}/tasks/{task}")["nodeInfo"]
        self.at.happen("preempt", pool=info["poolId"], node=info["nodeId"])

    def run(self, seconds: float) -> None:
        """Ticks for so long."""
        for _ in range(int(seconds // 30)):
            self.at.tick()

    def fill(self, *pools: str) -> None:
        """Tasks of others take every free node of these pools."""
        for pool in pools:
            job = f"others-{pool}"
            if job not in self.at.batch.jobs:
                self._by_hand("/jobs", {"id": job, "poolInfo": {"poolId": pool}})
            taken = len(self.at.batch.jobs[job].tasks)
            for node in self.at.batch.pools[pool].nodes.values():
                if node.state == "idle":
                    taken += 1
                    self._by_hand(f"/jobs/{job}/tasks", {"id": f"other-{taken}", "commandLine": "other"})

    def end_others(self) -> None:
        """The tasks of others are over."""
        for job, task in self.at.runner.running():
            if job.startswith("others-"):
                self.at.happen("finish", job=job, task=task, exit_code=0)

    @contextmanager
    def fault(self, *rules: dict[str, Any]) -> Iterator[None]:
        """Batch answers so."""
        before = list(self.at.batch.faults.rules)
        for rule in rules:
            self.at.batch.faults.add(rule)
        yield
        self.at.batch.faults.rules[:] = before
