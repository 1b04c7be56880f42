"""Legacy mode: one pool, the pool's identity. HASTE's own records and messages give HASTE's own task bodies.

Each kind has a tenant of its own with HASTE's sample records, and one tenant goes the whole way with real imagery.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from local.certificates import Certificates
from local.producer import names
from local.stack import Stack, running_stack
from local.stack.settings import IMAGERYPREP_IMAGE, QUEUES, TRAINING_IMAGE
from local.stack.world import default_world
from tests.scenarios.haste_differences import DIFFERENCES, Body, Difference
from tests.support.outside import BatchAccount, Haste, wait_for
from tests.support.stacks import APP_FOLDER, options

SAMPLES = APP_FOLDER / "tests" / "haste_samples"
SAMPLE_ACCOUNT = "http://127.0.0.1:10000/devstoreaccount1"
WHOLE_WAY = "wholeway"

PROJECT = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
LAYER = "2c8e6d10-7a4b-4e39-9d52-6f1a3b8c4d05"
LABELS = "b41f7a90-5c2d-4f68-a1e3-8d9c0e7b6a52"
FOLDER = names.partition(PROJECT)
CONFIG = f"{FOLDER}/experiment_config_4821.yaml"


@dataclass(frozen=True)
class Sample:
    """What HASTE has stored and sent for one kind of work. `stored`: blob -> file; `made`: what HASTE makes."""

    prefix: str
    queue: str
    message: str
    stored: Mapping[str, str]
    made: Mapping[str, str]
    present: Sequence[str] = ()


_RECORDS = {f"{FOLDER}/project_{PROJECT}.json": "metadata/project.json"}
_MODEL = _RECORDS | {f"{FOLDER}/imagelayer_{LAYER}.json": "metadata/imagelayer.processed.json"}
KINDS: Mapping[str, Sample] = {
    "imageryprep": Sample(
        "img-",
        QUEUES["IMAGE_QUEUE_NAME"],
        "messages/image-layer.queued.json",
        _RECORDS | {f"{FOLDER}/imagelayer_{LAYER}.json": "messages/image-layer.queued.json"},
        {f"{FOLDER}/imageryprep_config_{LAYER}.yaml": "configs/imageryprep_config.yaml"},
    ),
    "training": Sample(
        "trn-",
        QUEUES["TRAIN_QUEUE_NAME"],
        "messages/train.queued.json",
        _MODEL
        | {
            f"{FOLDER}/model_4821.json": "metadata/model.train-queued.json",
            f"{FOLDER}/labels_{LABELS}.json": "metadata/labelproject.with-labels.json",
        },
        {
            CONFIG: "configs/experiment_config.training.yaml",
            f"{FOLDER}/train_labels_4821.geojson": "configs/train_labels.geojson",
        },
    ),
    "inference": Sample(
        "inf-",
        QUEUES["INFERENCE_QUEUE_NAME"],
        "messages/inference.queued.json",
        _MODEL
        | {
            f"{FOLDER}/model_4821.json": "metadata/model.inference-queued.json",
            CONFIG: "configs/experiment_config.training.yaml",
        },
        {CONFIG: "configs/experiment_config.inference.yaml"},
        (f"{FOLDER}/trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a71/checkpoint/last.ckpt",),
    ),
}


def body_sample(kind: str) -> Body:
    return dict(json.loads((SAMPLES / f"batch-tasks/{kind}.json").read_text(encoding="utf-8")))


class Legacy:
    """The samples sent, and one job of each kind gone the whole way."""

    def __init__(self, stack: Stack) -> None:
        self.batch = BatchAccount(stack)
        self.accounts = stack.accounts
        self.hastes = {tenant: Haste(stack, tenant) for tenant in (WHOLE_WAY, *KINDS)}
        self.tasks = {kind: self._send(kind, sample) for kind, sample in KINDS.items()}
        haste = self.hastes[WHOLE_WAY]
        self.layer = haste.prepared_layer()
        self.model = haste.new_model(self.layer, inference=True)

    def sample(self, kind: str, file: str) -> str:
        """A sample with the tenant's account in it."""
        text = (SAMPLES / file).read_text(encoding="utf-8")
        return text.replace(SAMPLE_ACCOUNT, self.accounts[kind].blob_endpoint)

    def _send(self, kind: str, sample: Sample) -> str:
        """Returns the id of the task that comes of it."""
        haste = self.hastes[kind]
        for blob, file in sample.stored.items():
            haste.data.upload_blob(blob, self.sample(kind, file).encode())
        for blob in sample.present:
            haste.data.upload_blob(blob, b"weights")
        haste.queue(sample.queue).send_message(json.dumps(json.loads(self.sample(kind, sample.message))))
        return wait_for(lambda: self.batch.created(prefix=sample.prefix))[0]

    def expected(self, kind: str, differences: Sequence[Difference]) -> Body:
        """HASTE's body with our task id, the tenant's account, and the differences."""
        sample = body_sample(kind)
        text = json.dumps(sample).replace(sample["id"], self.tasks[kind])
        body: Body = json.loads(text.replace(SAMPLE_ACCOUNT, self.accounts[kind].blob_endpoint))
        for difference in differences:
            if kind in difference.kinds:
                difference.change(body)
        return body

    def found(self, kind: str) -> Body:
        """The body that was added, and, as in the samples, the job's id."""
        task = self.tasks[kind]
        return {"_jobId": self.batch.events("task_created", task=task)[0]["job"], **self.batch.body(task)}


@pytest.fixture(scope="module")
def legacy(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legacy]:
    training, imagery = body_sample("training"), body_sample("imageryprep")
    world: dict[str, Any] = default_world(1.0)
    images = {
        imagery["containerSettings"]["imageName"]: world["images"][IMAGERYPREP_IMAGE],
        training["containerSettings"]["imageName"]: world["images"][TRAINING_IMAGE],
    }
    identity = training["resourceFiles"][0]["identityReference"]["resourceId"]
    settings = {
        "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": imagery["containerSettings"]["imageName"],
        "AZURE_BATCH_DOCKER_IMAGE": training["containerSettings"]["imageName"],
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": identity,
    }
    made = options(
        tmp_path_factory.mktemp("run"),
        certificates,
        tenants=(WHOLE_WAY, *KINDS),
        legacy=True,
        world=world | {"images": images},
        settings=settings,
    )
    with running_stack(made) as running:
        yield Legacy(running.stack)


def test_all_three_kinds_are_processed(legacy: Legacy) -> None:
    assert legacy.model.ended() == "Processed"
    assert legacy.model.inference_ended() == "Processed"
    jobs = [legacy.layer.record["preprocessJob"], legacy.model.record["trainingJob"]]
    jobs += legacy.model.record["inferenceJobs"]
    assert {job["jobId"] for job in jobs} == {body_sample("training")["_jobId"]}


def test_the_request_for_a_zip_is_haste_s(legacy: Legacy) -> None:
    haste, model = legacy.hastes[WHOLE_WAY], legacy.model
    (message,) = wait_for(haste.zips_asked)
    record = json.loads(
        haste.data.download_blob(f"{names.partition(model.project_id)}/artifacts_model_{model.model_id}.json").readall()
    )
    assert record == message
    sample = json.loads((SAMPLES / "messages/zip.queued.json").read_text(encoding="utf-8"))
    ids = {"projectId": model.project_id, "imageLayerId": legacy.layer.layer_id, "modelId": model.model_id}
    assert {**message, "zipStatusMessage": ""} == {**sample, **ids, "zipStatusMessage": ""}
    assert message["zipStatusMessage"][33:] == sample["zipStatusMessage"][33:]


@pytest.mark.parametrize("kind", KINDS)
def test_the_task_body_is_haste_s_but_for_the_listed_differences(legacy: Legacy, kind: str) -> None:
    assert legacy.found(kind) == legacy.expected(kind, DIFFERENCES)


@pytest.mark.parametrize("kind", KINDS)
def test_configs_are_haste_s(legacy: Legacy, kind: str) -> None:
    for blob, file in KINDS[kind].made.items():
        written = legacy.hastes[kind].data.download_blob(blob).readall().decode()
        if blob.endswith(".geojson"):
            assert json.loads(written) == json.loads(legacy.sample(kind, file))
        else:
            assert written == legacy.sample(kind, file)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda one: one.change.__name__)
def test_each_difference_is_real_and_documented(legacy: Legacy, difference: Difference) -> None:
    others = [one for one in DIFFERENCES if one is not difference]
    for kind in difference.kinds:
        assert legacy.found(kind) != legacy.expected(kind, others)
    text = (APP_FOLDER / "docs" / "haste-compatibility.md").read_text(encoding="utf-8")
    assert difference.sentence in " ".join(text.split())
