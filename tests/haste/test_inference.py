"""Inference, from HASTE's queued record to its processed, failed or cancelled one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.batch.task_spec import OutputFile, ResourceFile
from shared.errors import NotThere, Refused
from shared.haste.inference import Inference
from shared.haste.workload import Shown
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd
from tests.support import samples
from tests.support.haste_results import GPKG, MOSAIC, inference_results
from tests.support.haste_results import INFERENCE_CONFIG as OWN_CONFIG
from tests.support.haste_results import INFERENCE_LOG as LOG
from tests.support.haste_results import INFERENCE_OUTPUT as OUTPUT
from tests.support.memory_blobs import MemoryBlobs, MemoryFiles

IMAGE = "example.azurecr.io/hastetraining:2.0.0"
GDAL = "BIGTIFF=YES NUM_THREADS=ALL_CPUS COMPRESS=DEFLATE PREDICTOR=2"
RUN = samples.inference_run()
END = TaskEnd(True, 0, None, samples.at("10:13:00"))
COMPLETED = Outcome(Result.COMPLETED, "Inference job completed successfully", END.ended_at)
CHECKPOINT = f"{samples.FOLDER}/{samples.TRAINING_TASK}/checkpoint/last.ckpt"


def workload(blobs: MemoryBlobs) -> Inference:
    return Inference(blobs, image_name=IMAGE, gdal_translate_params=GDAL)


def queued_blobs(**model: Any) -> MemoryBlobs:
    """All records of a trained model that waits for its inference."""
    blobs = samples.project_blobs(layer="imagelayer.processed", model="model.inference-queued")
    samples.change(blobs, samples.MODEL_NAME, **model)
    blobs.content[samples.CONFIG_NAME] = samples.raw("configs/experiment_config.training.yaml")
    blobs.content[CHECKPOINT] = b"x"
    return blobs


def record(state: str) -> dict[str, Any]:
    return samples.sample(f"metadata/model.{state}.json")


# --- before the task --------------------------------------------------------------------------------------------


def test_task_is_haste_s_but_for_the_own_copy_of_the_config_and_the_logs() -> None:
    blobs = queued_blobs()
    task = workload(blobs).prepare(RUN, lambda url: url)
    expected = samples.haste_task("inference", IMAGE)
    assert task.command_line == expected.command_line
    assert task.resource_files[:-1] == expected.resource_files[:-1]
    assert task.resource_files[-1] == ResourceFile(blobs.url(OWN_CONFIG), expected.resource_files[-1].file_path)
    outputs, texts = expected.output_files
    logs = OutputFile("$AZ_BATCH_TASK_WORKING_DIR/logs/*", f"{OUTPUT}/logs")
    assert task.output_files == (outputs, logs, texts)
    assert task.environment == expected.environment


def test_both_configs_are_haste_s_byte_for_byte() -> None:
    blobs = queued_blobs()
    workload(blobs).prepare(RUN, lambda url: url)
    expected = samples.raw("configs/experiment_config.inference.yaml")
    assert blobs.content[samples.CONFIG_NAME] == blobs.content[OWN_CONFIG] == expected
    workload(blobs).prepare(RUN, lambda url: url)
    assert blobs.content[samples.CONFIG_NAME] == expected


@pytest.mark.parametrize(("name", "prefix"), [("a b,c", "a-b-c"), (None, "model_4821"), ("", "model_4821")])
def test_the_name_of_the_predictions_is_one_slug(name: Any, prefix: str) -> None:
    blobs = queued_blobs(name=name)
    workload(blobs).prepare(RUN, lambda url: url)
    gpkg = f"predicted_damage_{prefix}"
    assert json.loads(blobs.content[OWN_CONFIG])["inference"]["predictions_gpkg_fileprefix"] == gpkg
    blobs.content |= {f"{OUTPUT}/{gpkg}.gpkg": b"x", f"{OUTPUT}/{MOSAIC}_visualizer.tif": b"x"}
    samples.change(blobs, samples.MODEL_NAME, name="renamed meanwhile")
    assert workload(blobs).outcome(RUN, END).result is Result.COMPLETED
    changed = workload(blobs).finished(RUN, COMPLETED)(record("inference-inprogress"))
    assert changed["gpkgUrl"] == blobs.reading_url(f"{OUTPUT}/{gpkg}.gpkg")


def test_check_waits_for_the_model_only() -> None:
    workload(queued_blobs()).check(RUN.entity)
    with pytest.raises(NotThere) as error:
        workload(MemoryBlobs()).check(RUN.entity)
    assert error.value.name == samples.MODEL_NAME


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "Failed"}, "not trained"),
        ({"status": None}, "not trained"),
        ({"checkpointPath": None}, "checkpointPath"),
        ({"checkpointPath": "https://host/x"}, "checkpointPath"),
        ({"checkpointPath": f"{samples.FOLDER}/../x"}, "checkpointPath"),
        ({"checkpointPath": f"{samples.FOLDER}/trn-other/checkpoint"}, "does not exist"),
        ({"imageLayerId": samples.PROJECT_ID}, "image layer of this model does not exist"),
    ],
)
def test_models_that_cannot_be_used(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as error:
        workload(queued_blobs(**fields)).check(RUN.entity)
    assert reason in error.value.sentence


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"buildingFootprintsUrl": ""}, "no building footprints (buildingFootprintsUrl). Create the layer again."),
        ({"buildingFootprintsUrl": "https://x/y.gpkg"}, "does not point to a file of this project"),
        ({"postEventMosaicCogImageryUrl": None}, "postEventMosaicCogImageryUrl"),
    ],
)
def test_layers_that_cannot_be_used(fields: dict[str, Any], reason: str) -> None:
    blobs = queued_blobs()
    samples.change(blobs, samples.LAYER_NAME, **fields)
    with pytest.raises(Refused) as error:
        workload(blobs).check(RUN.entity)
    assert reason in error.value.sentence


@pytest.mark.parametrize("content", [None, b"", b"- yaml"])
def test_a_lost_config_of_the_training(content: bytes | None) -> None:
    blobs = queued_blobs()
    del blobs.content[samples.CONFIG_NAME]
    if content is not None:
        blobs.content[samples.CONFIG_NAME] = content
    with pytest.raises(Refused, match=r"configuration|experiment_config"):
        workload(blobs).check(RUN.entity)


# --- while it runs ----------------------------------------------------------------------------------------------


def test_submitted() -> None:
    submitted = workload(MemoryBlobs()).submitted(RUN, samples.at("10:01:40"))
    changed = submitted(record("inference-queued"))
    expected = record("inference-inprogress")
    field = "inferenceStatusMessage"
    assert samples.lines(changed, field) == samples.lines(expected, field)
    assert changed | {field: ""} == expected | {field: ""}
    assert submitted(changed) == changed


def test_another_run_adds_an_entry_and_removes_old_results() -> None:
    again = Run(RUN.entity, "message-9", 1, "job-2", "inf-2", samples.at("11:00:00"))
    changed = workload(MemoryBlobs()).submitted(again, samples.at("11:00:00"))(record("inference-processed"))
    assert [job["taskId"] for job in changed["inferenceJobs"]] == [samples.INFERENCE_TASK, "inf-2"]
    assert changed["inferenceJobs"][0] == record("inference-processed")["inferenceJobs"][0]
    assert workload(MemoryBlobs()).shown(changed) == Shown("InProgress", "inf-2", "InProgress")
    assert changed["predictedDamageLayerUrl"] is changed["gpkgUrl"] is changed["inferenceOutputPath"] is None
    assert (changed["inferenceCurrentStep"], changed["inferenceProgressPct"]) == (0, 0.0)


def test_another_attempt_closes_the_entry_of_the_one_before() -> None:
    again = Run(RUN.entity, RUN.request_id, 2, "job-2", "inf-2", samples.at("10:20:00"))
    changed = workload(MemoryBlobs()).submitted(again, samples.at("10:20:00"))(record("inference-inprogress"))
    first, second = changed["inferenceJobs"]
    assert (first["status"], first["completedDate"]) == ("Failed", "2026-08-12T10:20:00.123456+00:00")
    assert (second["taskId"], second["status"]) == ("inf-2", "InProgress")


def test_progress_is_a_step_per_new_line() -> None:
    files = MemoryFiles({"wd/logs/workflow_progress.log": LOG})
    progress = workload(MemoryBlobs()).progress(RUN, files, samples.at("10:12:30"))
    assert progress is not None
    changed = progress(record("inference-inprogress"))
    assert (changed["inferenceCurrentStep"], changed["inferenceProgressPct"]) == (5, 71.43)
    expected = record("inference-processed")["inferenceStatusMessage"].rpartition("\n")[0]
    assert changed["inferenceStatusMessage"] == changed["inferenceJobs"][0]["logs"] == expected
    assert progress(changed) == changed
    assert workload(MemoryBlobs()).progress(RUN, MemoryFiles(), samples.at("10:12:30")) is None


# --- its end ----------------------------------------------------------------------------------------------------


def test_processed() -> None:
    blobs = inference_results()
    assert workload(blobs).outcome(RUN, END) == COMPLETED
    finished = workload(blobs).finished(RUN, COMPLETED)
    changed = finished(record("inference-inprogress"))
    # HASTE stops at 6 of 7 steps
    all_steps = {"inferenceCurrentStep": 7, "inferenceProgressPct": 100.0}
    assert changed == record("inference-processed") | all_steps
    assert finished(changed) == changed


@pytest.mark.parametrize("missing", [f"{MOSAIC}_visualizer.tif", f"{GPKG}.gpkg"])
def test_missing_results_are_a_failure(missing: str) -> None:
    blobs = inference_results()
    del blobs.content[f"{OUTPUT}/{missing}"]
    outcome = workload(blobs).outcome(RUN, END)
    assert outcome == Outcome(Result.FAILED, "Inference job failed: it left no complete results", END.ended_at)
    changed = workload(blobs).finished(RUN, outcome)(record("inference-inprogress"))
    assert changed["predictedDamageLayerUrl"] is changed["gpkgUrl"] is None
    assert changed["inferenceOutputPath"] == OUTPUT


def test_a_task_of_haste_s_own_app_has_only_the_shared_config() -> None:
    blobs = inference_results()
    blobs.content[samples.CONFIG_NAME] = blobs.content.pop(OWN_CONFIG)
    assert workload(blobs).outcome(RUN, END).result is Result.COMPLETED
    blobs.content[samples.CONFIG_NAME] = b"{}"
    assert workload(blobs).outcome(RUN, END).result is Result.FAILED


def test_failed() -> None:
    blobs = MemoryBlobs({f"{OUTPUT}/logs/workflow_progress.log": LOG[:130], f"{OUTPUT}/stderr.txt": b"Traceback"})
    outcome = workload(blobs).outcome(RUN, TaskEnd(False, 1, "FailureExitCode", END.ended_at))
    changed = workload(blobs).finished(RUN, outcome)(record("inference-inprogress"))
    assert workload(blobs).shown(changed) == Shown("Failed", samples.INFERENCE_TASK, "Failed")
    assert changed["inferenceStatusMessage"].endswith(": Inference job failed (exit code 1)")
    assert "Traceback" not in json.dumps(changed)
    assert changed["inferenceOutputPath"] == OUTPUT
    assert changed["inferenceCurrentStep"] == 2


def test_cancelled() -> None:
    outcome = Outcome(Result.CANCELLED, "Inference cancelled", samples.at("10:04:30"))
    finished = workload(MemoryBlobs()).finished(RUN, outcome)
    changed = finished(record("inference-cancel-requested"))
    assert workload(MemoryBlobs()).shown(changed) == Shown("Cancelled", samples.INFERENCE_TASK, "Cancelled")
    assert changed["inferenceStatusMessage"].endswith(": Inference cancelled")
    assert changed["inferenceOutputPath"] is None
    assert finished(changed) == changed


def test_an_end_whose_entry_a_late_save_has_removed() -> None:
    changed = workload(inference_results()).finished(RUN, COMPLETED)(record("inference-queued"))
    assert workload(MemoryBlobs()).shown(changed) == Shown("Processed", samples.INFERENCE_TASK, "Processed")
    assert changed["inferenceJobs"][0]["creationDate"] == "2026-08-12T10:01:40.123456+00:00"


def test_a_request_that_never_got_a_task() -> None:
    outcome = Outcome(Result.FAILED, "The model is not trained.", samples.at("10:02:00"))
    before = record("inference-queued")
    changed = workload(MemoryBlobs()).finished(Run(RUN.entity, "message-3"), outcome)(before)
    assert changed["inferenceStatus"] == "Failed"
    assert {key for key in before if before[key] != changed[key]} == {"inferenceStatus", "inferenceStatusMessage"}


def test_current_task_id_that_names_no_entry() -> None:
    shown = workload(MemoryBlobs()).shown({"inferenceStatus": "InProgress", "currentInferenceTaskId": "inf-x"})
    assert shown == Shown("InProgress", "inf-x", None)


def test_nothing_follows() -> None:
    assert workload(MemoryBlobs()).follow_up(RUN, COMPLETED) is None
