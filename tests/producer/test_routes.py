import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from azure.storage.blob import BlobClient

from local.producer import HasteApi, HasteApiError, names, synthetic
from local.producer.records import Record, new_image_layer, new_model, new_project
from tests.producer.conftest import QUEUES, Account, Journal, sample

PROJECT_ID = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
LAYER_ID = "2c8e6d10-7a4b-4e39-9d52-6f1a3b8c4d05"
LABEL_PROJECT_ID = "b41f7a90-5c2d-4f68-a1e3-8d9c0e7b6a52"
MODEL_ID = "4821"
USER_ID = "analyst@example.org"
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")


def without_times(value: Any) -> Any:
    """The same value with every timestamp replaced."""
    return json.loads(STAMP.sub("<time>", json.dumps(value)))


def assert_like_sample(record: Record, name: str) -> None:
    """Same keys in the same order, same values but for times."""
    expected = sample(name)
    assert list(record) == list(expected)
    assert without_times(record) == without_times(expected)


def store_model(api: HasteApi, name: str, **fields: Any) -> Record:
    return api.storage.save(names.model_blob(PROJECT_ID, MODEL_ID), sample(f"metadata/{name}") | fields)


def sample_layer() -> Record:
    urls = sample("metadata/imagelayer.pending")
    return new_image_layer(
        PROJECT_ID,
        image_layer_id=LAYER_ID,
        name="Cedar Valley 12 Aug",
        user_id=USER_ID,
        pre_event_urls=urls["preEventImageryUrls"],
        post_event_urls=urls["postEventImageryUrls"],
    )


def sample_model() -> Record:
    return new_model(
        PROJECT_ID,
        LAYER_ID,
        model_id=MODEL_ID,
        name="cedar valley-unet-1",
        user_id=USER_ID,
        labelproject_id=LABEL_PROJECT_ID,
        labels_count=4,
    )


def test_project(api: HasteApi, account: Account, journal: Journal) -> None:
    api.create_project(new_project(name="Cedar Valley flood drill", user_id=USER_ID, project_id=PROJECT_ID))
    assert journal.steps == ["save project", f"put {QUEUES.stats}"]
    stored = api.storage.read(names.project_blob(PROJECT_ID))
    assert stored is not None
    assert_like_sample(stored, "metadata/project")
    stats = account.message(QUEUES.stats)
    assert list(stats) == list(sample("messages/stats.add-model"))
    assert (stats["name"], stats["affectedCountries"]) == ("Cedar Valley flood drill", ["Exampleland"])


def test_layer_is_sent_at_once_and_saved_after(api: HasteApi, account: Account, journal: Journal) -> None:
    api.put_layer(sample_layer())
    assert journal.steps == [f"put {QUEUES.image}", "save imagelayer", f"put {QUEUES.stats}"]
    assert journal.delays[QUEUES.image] == 0
    message = account.message(QUEUES.image)
    assert_like_sample(message, "messages/image-layer.queued")
    assert api.layer(PROJECT_ID, LAYER_ID) == message
    assert account.message(QUEUES.stats)["imageLayerStats"] == {"imageLayerId": LAYER_ID, "labelsCount": 0}


def test_messages_are_json_text_as_python_writes_it(api: HasteApi, account: Account) -> None:
    stored = api.put_layer(sample_layer() | {"name": "Vallée <1> & co"})
    assert account.texts(QUEUES.image) == [json.dumps(stored)]
    with BlobClient.from_connection_string(
        account.connection_string, "data", names.layer_blob(PROJECT_ID, LAYER_ID)
    ) as blob:
        assert blob.download_blob().readall() == json.dumps(stored).encode()


def test_a_stored_layer_is_edited_only(api: HasteApi, account: Account, journal: Journal) -> None:
    api.put_layer(sample_layer())
    journal.steps.clear()
    api.storage.save(names.layer_blob(PROJECT_ID, LAYER_ID), {"unknownKey": 1, "status": "Processed"})
    stored = api.put_layer(api.layer(PROJECT_ID, LAYER_ID) | {"name": "renamed"})
    assert journal.steps == ["save imagelayer", "save imagelayer"]
    assert account.count(QUEUES.image) == 1
    assert (stored["name"], stored["status"], stored["unknownKey"]) == ("renamed", "Processed", 1)


def test_layer_without_pre_event_imagery(api: HasteApi) -> None:
    layer = api.put_layer(new_image_layer(PROJECT_ID, name="x", user_id=USER_ID, post_event_urls=["https://x/y.tif?z"]))
    assert list(layer) == list(sample("metadata/imagelayer.pending"))
    assert layer["preEventImageryUrls"] is layer["sourceTypePreEvent"] is None


def test_run_model_saves_a_line_that_the_message_lacks(api: HasteApi, account: Account, journal: Journal) -> None:
    api.put_run_model(sample_model())
    assert journal.steps == [f"put {QUEUES.train}", "save model", f"put {QUEUES.stats}"]
    assert journal.delays[QUEUES.train] == 30
    assert_like_sample(account.message(QUEUES.train), "messages/train.queued")
    assert_like_sample(api.model(PROJECT_ID, MODEL_ID), "metadata/model.train-queued")
    assert_like_sample(account.message(QUEUES.stats), "messages/stats.add-model")


def test_training_again_sends_the_stored_record(api: HasteApi, account: Account, journal: Journal) -> None:
    before = store_model(api, "model.train-failed")
    api.put_run_model(api.model(PROJECT_ID, MODEL_ID))
    message = account.message(QUEUES.train)
    assert (message["status"], message["currentStep"]) == ("Queued", 0)
    assert message["trainingJob"] == before["trainingJob"]
    assert message["statusMessage"] == before["statusMessage"]


def test_warm_start(api: HasteApi, account: Account, journal: Journal) -> None:
    expected = sample("messages/train.queued-with-base-weights")
    api.put_run_model(sample_model() | {"initialWeightsUrl": expected["initialWeightsUrl"]})
    assert_like_sample(account.message(QUEUES.train), "messages/train.queued-with-base-weights")


def test_run_inference(api: HasteApi, account: Account, journal: Journal) -> None:
    store_model(api, "model.train-processed", inferenceStatusMessage="\nold line")
    journal.steps.clear()
    api.put_run_inference(api.model(PROJECT_ID, MODEL_ID))
    assert journal.steps == [f"put {QUEUES.inference}", "save model"]
    assert journal.delays[QUEUES.inference] == 30
    assert_like_sample(account.message(QUEUES.inference), "messages/inference.queued")
    assert api.model(PROJECT_ID, MODEL_ID) == account.message(QUEUES.inference)


def test_inference_needs_a_trained_model(api: HasteApi, journal: Journal) -> None:
    with pytest.raises(HasteApiError):
        api.put_run_inference(sample("metadata/model.train-failed"))
    assert journal.steps == []


def test_deletion_takes_what_hastes_does_and_sends_no_word_of_it(api: HasteApi, journal: Journal) -> None:
    store_model(api, "model.train-inprogress")
    folder = names.partition(PROJECT_ID)
    others = [f"{folder}/{name}" for name in (f"labels_{LABEL_PROJECT_ID}.json", "trn-1/checkpoint/last.ckpt")]
    for name in (names.layer_blob(PROJECT_ID, LAYER_ID), *names.model_artifact_blobs(PROJECT_ID, MODEL_ID), *others):
        api.storage.save(name, {"imageLayerId": LAYER_ID})
    journal.steps.clear()
    api.delete_layer(PROJECT_ID, LAYER_ID)
    left = api.storage.blob_names(f"{folder}/")
    assert left == sorted([f"{folder}/artifacts_model_{MODEL_ID}.json", *others])
    with pytest.raises(HasteApiError):
        api.delete_model(PROJECT_ID, MODEL_ID)
    api.delete_project(PROJECT_ID)
    assert api.storage.blob_names(f"{folder}/") == []
    assert journal.steps == [f"put {QUEUES.stats}"] * 2


def test_deleting_a_model_stops_at_the_first_blob_that_is_missing(api: HasteApi) -> None:
    store_model(api, "model.train-inprogress")
    config, _labels, artifacts = names.model_artifact_blobs(PROJECT_ID, MODEL_ID)
    for name in (config, artifacts):
        api.storage.save(name, {})
    api.delete_model(PROJECT_ID, MODEL_ID)
    assert api.storage.blob_names(f"{names.partition(PROJECT_ID)}/") == [artifacts]


def test_cancel_is_sent_before_its_line_is_saved(api: HasteApi, account: Account, journal: Journal) -> None:
    store_model(api, "model.train-inprogress")
    journal.steps.clear()
    api.put_cancel_model(PROJECT_ID, MODEL_ID)
    assert journal.steps == [f"put {QUEUES.train}", "save model"]
    assert journal.delays[QUEUES.train] == 1
    assert_like_sample(account.message(QUEUES.train), "messages/train.cancel")
    assert_like_sample(api.model(PROJECT_ID, MODEL_ID), "metadata/model.train-cancel-requested")


@pytest.mark.parametrize(
    ("status", "inference_status", "noted"),
    [
        ("Failed", None, "statusMessage"),
        ("Failed", "Processed", "statusMessage"),
        ("Queued", "Processed", "inferenceStatusMessage"),
        ("InProgress", "Failed", "inferenceStatusMessage"),
        ("Processed", "Failed", "inferenceStatusMessage"),
    ],
)
def test_cancel_that_comes_too_late_is_a_note(
    api: HasteApi, journal: Journal, status: str, inference_status: str | None, noted: str
) -> None:
    before = store_model(api, "model.train-processed", status=status, inferenceStatus=inference_status)
    journal.steps.clear()
    after = api.put_cancel_model(PROJECT_ID, MODEL_ID)
    assert journal.steps == ["save model"]
    assert [key for key in after if after[key] != before[key]] == [noted]
    assert STAMP.match(after[noted].removeprefix(before[noted]).removeprefix("\n"))


@pytest.mark.parametrize("inference_status", [None, "Queued", "InProgress", "Cancelled"])
def test_haste_cannot_cancel_inference(api: HasteApi, journal: Journal, inference_status: str | None) -> None:
    before = store_model(api, "model.inference-inprogress", inferenceStatus=inference_status)
    journal.steps.clear()
    with pytest.raises(HasteApiError):
        api.put_cancel_model(PROJECT_ID, MODEL_ID)
    assert journal.steps == []
    assert api.model(PROJECT_ID, MODEL_ID) == before


def test_newer_versions_cancel_inference(api: HasteApi, account: Account, journal: Journal) -> None:
    store_model(api, "model.inference-inprogress")
    journal.steps.clear()
    api.put_cancel_inference(PROJECT_ID, MODEL_ID)
    assert journal.steps == ["save model", f"put {QUEUES.inference}"]
    assert_like_sample(account.message(QUEUES.inference), "messages/inference.cancel-newer-api")


def test_labels(api: HasteApi, account: Account, journal: Journal) -> None:
    blob = names.label_project_blob(PROJECT_ID, LABEL_PROJECT_ID)
    api.storage.save(blob, sample("metadata/labelproject.fresh"))
    stored = api.put_labels(PROJECT_ID, LABEL_PROJECT_ID, synthetic.labels())
    expected = sample("metadata/labelproject.with-labels")
    assert list(stored) == list(expected)
    for label in stored["labels"]:
        assert list(label) == list(expected["labels"][0])
        assert list(label["properties"]) == list(expected["labels"][0]["properties"])
    classes = [entry["name"] for entry in sample("metadata/project")["primaryClasses"]]
    assert {label["properties"]["primaryClass"] for label in stored["labels"]} == set(classes)
    statistics = {"imageLayerId": LAYER_ID, "labelsCount": len(stored["labels"])}
    assert account.message(QUEUES.stats)["imageLayerStats"] == statistics


def test_what_is_not_stored_is_refused(api: HasteApi, journal: Journal) -> None:
    requests: list[Callable[[], Record]] = [
        lambda: api.put_labels(PROJECT_ID, LABEL_PROJECT_ID, []),
        lambda: api.put_cancel_model(PROJECT_ID, MODEL_ID),
        lambda: api.layer(PROJECT_ID, LAYER_ID),
    ]
    for request in requests:
        with pytest.raises(HasteApiError, match="no such"):
            request()
    assert journal.steps == []


def test_message_is_hidden_for_the_delay(api: HasteApi, account: Account) -> None:
    api.put_run_model(sample_model())
    assert account.count(QUEUES.train) == 1
    assert account.texts(QUEUES.train) == []
    api.put_run_model(sample_model(), delay_seconds=0)
    assert len(account.texts(QUEUES.train)) == 1
