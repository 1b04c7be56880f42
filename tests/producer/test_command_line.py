import json
import os
import subprocess
import sys

from local.producer import HasteApi, names
from tests.producer.conftest import QUEUES, Account, sample

LABEL_PROJECT_ID = "b41f7a90-5c2d-4f68-a1e3-8d9c0e7b6a52"


def producer(account: Account, *arguments: str) -> "subprocess.CompletedProcess[str]":
    settings = {
        "BLOB_CONNECTION_STRING": account.connection_string,
        "BLOB_CONTAINER": "data",
        "IMAGE_QUEUE_NAME": QUEUES.image,
        "TRAIN_QUEUE_NAME": QUEUES.train,
        "INFERENCE_QUEUE_NAME": QUEUES.inference,
        "STATS_QUEUE_NAME": QUEUES.stats,
    }
    return subprocess.run(
        [sys.executable, "-m", "local.producer", *arguments],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def sent(account: Account, *arguments: str) -> dict[str, str]:
    finished = producer(account, *arguments)
    assert finished.returncode == 0, finished.stderr
    return dict(json.loads(finished.stdout))


def test_a_layer_is_made_trained_inferred_and_cancelled(api: HasteApi, account: Account) -> None:
    ids = sent(account, "layer")
    project = ["--project-id", ids["projectId"]]
    layer = account.message(QUEUES.image)
    assert layer["imageLayerId"] == ids["imageLayerId"]
    assert [len(layer[key]) for key in ("preEventImageryUrls", "postEventImageryUrls")] == [1, 1]

    too_early = producer(account, "train", *project, "--layer-id", ids["imageLayerId"])
    assert (too_early.returncode, too_early.stdout) == (1, "")
    assert "no label project yet" in too_early.stderr

    label_project = sample("metadata/labelproject.fresh") | {
        "projectId": ids["projectId"],
        "imageLayerId": ids["imageLayerId"],
    }
    api.storage.save(names.label_project_blob(ids["projectId"], LABEL_PROJECT_ID), label_project)
    api.storage.save(names.layer_blob(ids["projectId"], ids["imageLayerId"]), {"labelProjectId": LABEL_PROJECT_ID})
    run = ["--delay-seconds", "0"]
    model_id = sent(account, "train", *project, "--layer-id", ids["imageLayerId"], "--epochs", "5", *run)["modelId"]
    model = account.message(QUEUES.train)
    assert (model["modelId"], model["maxEpochs"], model["totalSteps"]) == (model_id, "5", 6)
    stored_labels = api.label_project(ids["projectId"], LABEL_PROJECT_ID)["labels"]
    assert model["labelsCount"] == len(stored_labels) == 12

    api.storage.save(names.model_blob(ids["projectId"], model_id), {"status": "Processed"})
    sent(account, "infer", *project, "--model-id", model_id, *run)
    assert account.message(QUEUES.inference)["inferenceStatus"] == "Queued"
    sent(account, "cancel", "--inference", *project, "--model-id", model_id, *run)
    assert json.loads(account.texts(QUEUES.inference)[1])["inferenceStatus"] == "Cancelled"

    sent(account, "train", *project, "--model-id", model_id, *run)
    sent(account, "cancel", *project, "--model-id", model_id, *run)
    statuses = [json.loads(text)["status"] for text in account.texts(QUEUES.train)]
    assert statuses == ["Queued", "Queued", "Cancelled"]
    assert api.model(ids["projectId"], model_id)["status"] == "Cancelled"


def test_without_connection_string() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "local.producer", "layer"],
        env={key: value for key, value in os.environ.items() if key != "BLOB_CONNECTION_STRING"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 2
    assert "BLOB_CONNECTION_STRING" in finished.stderr
