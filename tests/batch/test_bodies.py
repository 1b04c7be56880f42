"""Task bodies as they arrive at Batch: HASTE's own in the legacy mode, isolated in the shared one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from shared.batch.task_body import TaskBodies
from shared.batch.transfer import IdentityTransfer, Transfer
from shared.haste.imageryprep import Imageryprep
from shared.haste.inference import Inference
from shared.haste.training import Training
from shared.haste.workload import Workload
from shared.kinds import Kind
from shared.protocol.outcome import Run
from shared.storage.addresses import ContainerAddress
from tests.support import samples
from tests.support.batch_account import Account
from tests.support.haste_results import training_results
from tests.support.small_world import NoCredentials

IDENTITY = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/example-rg/providers"
    "/Microsoft.ManagedIdentity/userAssignedIdentities/example-umi"
)
URL = "http://127.0.0.1:10000/devstoreaccount1/data"
IMAGE = "example.azurecr.io/hastetraining:2.0.0"


def _imageryprep() -> tuple[Workload, Run]:
    blobs = samples.project_blobs(layer="imagelayer.pending")
    image = "example.azurecr.io/hasteimageryprep:2.0.0"
    return Imageryprep(blobs, image_name=image, titiler_url="https://localhost/", tile_size=256), samples.imagery_run()


def _training() -> tuple[Workload, Run]:
    blobs = samples.project_blobs(
        layer="imagelayer.processed", model="model.train-queued", labels="labelproject.with-labels"
    )
    return Training(blobs, image_name=IMAGE), samples.training_run()


def _inference() -> tuple[Workload, Run]:
    blobs = samples.project_blobs(layer="imagelayer.processed", model="model.inference-queued")
    blobs.content |= training_results().content
    blobs.content.setdefault(samples.CONFIG_NAME, samples.raw("configs/experiment_config.training.yaml"))
    params = "BIGTIFF=YES NUM_THREADS=ALL_CPUS COMPRESS=DEFLATE PREDICTOR=2"
    return Inference(blobs, image_name=IMAGE, gdal_translate_params=params), samples.inference_run()


MAKERS: dict[Kind, Callable[[], tuple[Workload, Run]]] = {
    Kind.IMAGERYPREP: _imageryprep,
    Kind.TRAINING: _training,
    Kind.INFERENCE: _inference,
}


def on_the_wire(kind: Kind, bodies: TaskBodies) -> dict[str, Any]:
    """The body that Batch takes."""
    workload, run = MAKERS[kind]()
    assert run.task_id is not None
    account = Account()
    account.batch.create_job(samples.JOB_ID, "h100", None, None)
    transfer = bodies.transfer(kind)
    account.batch.create_task(
        samples.JOB_ID, bodies.body(run.task_id, kind, workload.prepare(run, transfer.resign), transfer)
    )
    spec: dict[str, Any] = account.world.jobs[samples.JOB_ID].tasks[run.task_id].spec
    return spec


def legacy(max_run: timedelta | None = None) -> TaskBodies:
    def transfer(_kind: Kind) -> Transfer:
        return IdentityTransfer(ContainerAddress(URL), URL, IDENTITY)

    return TaskBodies(False, timedelta(days=2), dict.fromkeys(Kind, max_run), transfer)


def shared(max_run: timedelta) -> TaskBodies:
    return TaskBodies(True, timedelta(hours=1), dict.fromkeys(Kind, max_run), lambda _kind: NoCredentials())


def as_documented(kind: Kind, haste: dict[str, Any]) -> dict[str, Any]:
    """HASTE's body with the differences of docs/haste-compatibility.md: own copies of what we write, and the logs."""
    folder = f"{samples.FOLDER}/{haste['id']}"
    written = ("imageryprep_config_", "experiment_config_", "train_labels_")
    for file in haste["resourceFiles"]:
        name = file["httpUrl"].rpartition("/")[2]
        if name.startswith(written):
            file["httpUrl"] = f"{URL}/{folder}/inputs/{name}"
    if kind is not Kind.TRAINING:
        first = haste["outputFiles"][0]
        container = first["destination"]["container"] | {"path": f"{folder}/logs"}
        logs = first | {"filePattern": "$AZ_BATCH_TASK_WORKING_DIR/logs/*", "destination": {"container": container}}
        haste["outputFiles"].insert(1, logs)
    del haste["_jobId"]
    return haste


@pytest.mark.parametrize("kind", Kind)
def test_in_the_legacy_mode_the_task_is_hastes(kind: Kind) -> None:
    expected = as_documented(kind, samples.sample(f"batch-tasks/{kind.value}.json"))
    body = on_the_wire(kind, legacy())
    assert body.pop("environmentSettings", []) == expected.pop("environmentSettings")
    assert body == expected


def test_in_the_legacy_mode_a_maximum_run_time_is_there_only_if_it_is_set() -> None:
    assert "maxWallClockTime" not in on_the_wire(Kind.TRAINING, legacy())["constraints"]
    assert on_the_wire(Kind.TRAINING, legacy(timedelta(hours=30)))["constraints"]["maxWallClockTime"] == "P1DT6H"


@pytest.mark.parametrize("kind", Kind)
def test_on_shared_pools_a_task_sees_its_own_directory_as_its_own_user_and_ends_in_time(kind: Kind) -> None:
    body = on_the_wire(kind, shared(timedelta(hours=12)))
    mounts = body["containerSettings"]["containerHostBatchBindMounts"]
    assert [mount["source"] for mount in mounts] == ["Task"], "without it the container gets the whole node's root"
    assert body["userIdentity"]["autoUser"]["scope"] == "task"
    assert body["constraints"]["retentionTime"] == "PT1H"
    assert body["constraints"]["maxWallClockTime"] == "PT12H"
    assert "identityReference" not in str(body)


def test_apart_from_that_the_modes_make_the_same_task() -> None:
    one, other = on_the_wire(Kind.TRAINING, legacy()), on_the_wire(Kind.TRAINING, shared(timedelta(hours=12)))
    for body in (one, other):
        for name in ("constraints", "userIdentity", "resourceFiles", "outputFiles"):
            body.pop(name, None)
        body["containerSettings"].pop("containerHostBatchBindMounts", None)
    assert one == other
