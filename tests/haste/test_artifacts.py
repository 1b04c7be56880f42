"""HASTE's request for a zip: the record of artifacts and the message, as HASTE's own code makes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.haste import artifacts
from shared.haste.inference import Inference
from shared.haste.training import Training
from shared.haste.workload import JsonObject
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result
from tests.support import samples
from tests.support.memory_blobs import MemoryBlobs

ENTITY = Entity(Kind.INFERENCE, samples.PROJECT_ID, samples.MODEL_ID)
MODEL = samples.sample("metadata/model.inference-processed.json")
AT = samples.at("10:13:01")
LABELS = f"{samples.FOLDER}/train_labels_4821.geojson"


def asked(stored: JsonObject | None = None) -> JsonObject:
    return artifacts.queued(ENTITY, MODEL, AT)(stored)


def test_record_and_message_are_haste_s_byte_for_byte() -> None:
    record = asked()
    assert artifacts.record_name(ENTITY) == f"{samples.FOLDER}/artifacts_model_4821.json"
    assert record == samples.sample("metadata/artifacts.queued.json")
    assert artifacts.message(record) == json.dumps(samples.sample("messages/zip.queued.json"))


@pytest.mark.parametrize("state", ["queued", "inprogress", "processed"])
def test_a_stored_record_is_used_again_with_the_zips_it_names(state: str) -> None:
    stored = samples.sample(f"metadata/artifacts.{state}.json")
    expected = stored | {
        "currentZipJobUid": None,
        "zipUrl": None,
        "zipStatus": "Queued",
        "zipStatusMessage": samples.sample("metadata/artifacts.queued.json")["zipStatusMessage"],
    }
    assert asked(stored) == expected
    assert json.loads(artifacts.message(expected)) == expected


def test_a_record_of_a_deleted_model_with_the_same_id_is_not_used_again() -> None:
    stored = samples.sample("metadata/artifacts.processed.json") | {"imageLayerId": "another, deleted"}
    assert asked(stored) == samples.sample("metadata/artifacts.queued.json")


def test_what_others_keep_in_the_record_stays_there_and_is_not_sent() -> None:
    record = asked(samples.sample("metadata/artifacts.processed.json") | {"_jobRuntime": {"attempt": 2}})
    assert record["_jobRuntime"] == {"attempt": 2}
    assert "_jobRuntime" not in json.loads(artifacts.message(record))


def test_of_many_zips_the_message_names_the_newest_that_leave_haste_room() -> None:
    stored = samples.sample("metadata/artifacts.processed.json")
    (job,) = stored["zipJobs"]
    stored["zipJobs"] = [job | {"taskId": f"zip-{n}"} for n in range(100)]
    record = asked(stored)
    assert len(record["zipJobs"]) == 100
    text = artifacts.message(record)
    assert 30 * 1024 < len(text) <= 32 * 1024
    sent = [one["taskId"] for one in json.loads(text)["zipJobs"]]
    assert sent == [f"zip-{n}" for n in range(100 - len(sent), 100)]


values = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.none() | st.dictionaries(st.text(), st.text()))


@given(st.dictionaries(st.sampled_from([*samples.sample("metadata/artifacts.queued.json"), "unknown"]), values))
@settings(max_examples=200)
def test_any_stored_record_becomes_one_that_asks(stored: dict[str, Any]) -> None:
    record = asked(stored)
    assert asked(record) == record
    sent = json.loads(artifacts.message(record))
    assert list(sent) == list(samples.sample("messages/zip.queued.json"))
    assert (sent["zipStatus"], sent["currentZipJobUid"], sent["zipUrl"]) == ("Queued", None, None)
    assert all(isinstance(job, dict) for job in sent["zipJobs"])
    is_of_another_layer = stored.get("imageLayerId") is not None
    assert record.get("unknown") == (None if is_of_another_layer else stored.get("unknown"))


# --- which ends ask for one -------------------------------------------------------------------------------------


def trained(state: str, *names: str) -> MemoryBlobs:
    blobs = samples.project_blobs(model=f"model.{state}")
    blobs.content |= {f"{samples.FOLDER}/{samples.TRAINING_TASK}/{name}": b"x" for name in names}
    return blobs


def training_asks(blobs: MemoryBlobs, result: Result) -> bool:
    outcome = Outcome(result, "The end", AT)
    return Training(blobs, image_name="i").to_zip(samples.training_run(), outcome) is not None


def inference_asks(blobs: MemoryBlobs, result: Result) -> bool:
    outcome = Outcome(result, "The end", AT)
    workload = Inference(blobs, image_name="i", gdal_translate_params="")
    return workload.to_zip(samples.inference_run(), outcome) is not None


@pytest.mark.parametrize("result", Result)
def test_a_training_asks_after_a_failure_and_after_a_cancel(result: Result) -> None:
    wanted = result in (Result.FAILED, Result.CANCELLED)
    assert training_asks(trained("train-failed", "stdout.txt"), result) == wanted


@pytest.mark.parametrize("left", ["stdout.txt", "logs/workflow_progress.log", "checkpoint/last.ckpt"])
def test_whatever_a_failed_training_has_left_is_zipped(left: str) -> None:
    assert training_asks(trained("train-failed", left), Result.FAILED)


def test_a_training_that_never_ran_has_left_nothing() -> None:
    blobs = trained("train-failed", "inputs/train_labels_4821.geojson", "inputs/experiment_config_4821.yaml")
    assert not training_asks(blobs, Result.FAILED)


@pytest.mark.parametrize("result", Result)
def test_an_inference_asks_after_success_and_after_a_failure(result: Result) -> None:
    wanted = result in (Result.COMPLETED, Result.FAILED)
    assert inference_asks(samples.project_blobs(model="model.inference-processed"), result) == wanted


@pytest.mark.parametrize("record", [None, b"[]", b"{}", b'{"inferenceOutputPath": "another run\'s"}'])
def test_without_a_record_that_names_what_was_left_nobody_asks(record: bytes | None) -> None:
    blobs = MemoryBlobs({} if record is None else {samples.MODEL_NAME: record})
    assert not inference_asks(blobs, Result.COMPLETED)


# --- what HASTE's deletion expects ------------------------------------------------------------------------------


def test_labels_that_only_a_task_had_are_put_in_their_place_before_there_is_a_zip() -> None:
    blobs = samples.project_blobs(model="model.inference-processed")
    own = f"{samples.FOLDER}/{samples.TRAINING_TASK}/inputs/train_labels_4821.geojson"
    samples.change(blobs, samples.MODEL_NAME, labelsUrl=blobs.reading_url(own))
    blobs.content[own] = b"labels"
    assert inference_asks(blobs, Result.COMPLETED)
    assert blobs.content[LABELS] == b"labels"


def test_labels_that_are_in_their_place_stay() -> None:
    blobs = samples.project_blobs(model="model.inference-processed")
    blobs.content[LABELS] = b"of HASTE"
    own = f"{samples.FOLDER}/{samples.TRAINING_TASK}/inputs/train_labels_4821.geojson"
    blobs.content[own] = b"others"
    samples.change(blobs, samples.MODEL_NAME, labelsUrl=blobs.reading_url(own))
    assert inference_asks(blobs, Result.COMPLETED)
    assert blobs.content[LABELS] == b"of HASTE"
