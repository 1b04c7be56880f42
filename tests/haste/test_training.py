"""Training, from HASTE's queued record to its processed, failed or cancelled one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from shared.batch.task_spec import ResourceFile, TaskSpec
from shared.errors import NotThere, Refused
from shared.haste.training import Training
from shared.haste.workload import Shown
from shared.kinds import Kind
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd
from tests.support import samples
from tests.support.haste_results import EVENT_FILE, EVENTS, training_results
from tests.support.haste_results import TRAINING_OUTPUT as OUTPUT
from tests.support.memory_blobs import MemoryBlobs, MemoryFiles

IMAGE = "example.azurecr.io/hastetraining:2.0.0"
RUN = samples.training_run()
END = TaskEnd(True, 0, None, samples.at("10:01:00"))
COMPLETED = Outcome(Result.COMPLETED, "Training job completed successfully", END.ended_at)
LABELS = f"{samples.FOLDER}/train_labels_4821.geojson"
BASE_WEIGHTS = f"{samples.FOLDER}/trn-11111111-2222-4333-8444-555555555555/checkpoint/last.ckpt"


def workload(blobs: MemoryBlobs) -> Training:
    return Training(blobs, image_name=IMAGE)


def queued_blobs(**model: Any) -> MemoryBlobs:
    """All records of a model that waits for its training."""
    blobs = samples.project_blobs(
        layer="imagelayer.processed", model="model.train-queued", labels="labelproject.with-labels"
    )
    samples.change(blobs, samples.MODEL_NAME, **model)
    return blobs


def record(state: str) -> dict[str, Any]:
    return samples.sample(f"metadata/model.{state}.json")


# --- before the task --------------------------------------------------------------------------------------------


def own_copies(task: TaskSpec) -> TaskSpec:
    """HASTE's task with the task's own copies of the files that we write."""
    files = tuple(
        ResourceFile(item.url.replace(f"{samples.FOLDER}/", f"{OUTPUT}/inputs/"), item.file_path)
        if item.file_path.rpartition("/")[2] in item.url and "/img-" not in item.url
        else item
        for item in task.resource_files
    )
    return TaskSpec(task.command_line, task.image_name, files, task.output_files, task.environment)


def test_task_is_haste_s_but_for_the_own_copies_of_labels_and_config() -> None:
    blobs = queued_blobs()
    expected = own_copies(samples.haste_task("training", IMAGE))
    assert workload(blobs).prepare(RUN, lambda url: url) == expected
    assert [file.url.rpartition("/")[2] in file.file_path for file in expected.resource_files] == [True] * 4


def test_config_is_haste_s_byte_for_byte_and_labels_are_haste_s() -> None:
    blobs = queued_blobs()
    workload(blobs).prepare(RUN, lambda url: url)
    for folder in (samples.FOLDER, f"{OUTPUT}/inputs"):
        assert blobs.content[f"{folder}/experiment_config_4821.yaml"] == samples.raw(
            "configs/experiment_config.training.yaml"
        )
        labels = json.loads(blobs.content[f"{folder}/train_labels_4821.geojson"])
        assert labels == samples.sample("configs/train_labels.geojson")


def test_on_shared_pools_the_labels_are_the_tasks_alone_and_the_record_names_them() -> None:
    blobs = queued_blobs()
    isolated = Training(blobs, image_name=IMAGE, isolated=True)
    task = isolated.prepare(RUN, lambda url: url)
    assert task == workload(queued_blobs()).prepare(RUN, lambda url: url)
    assert LABELS not in blobs.content
    own = f"{OUTPUT}/inputs/train_labels_4821.geojson"
    assert json.loads(blobs.content[own]) == samples.sample("configs/train_labels.geojson")
    assert samples.CONFIG_NAME in blobs.content, "inference reads it"
    model = isolated.submitted(RUN, samples.at("09:17:01"))(samples.sample("metadata/model.train-queued.json"))
    assert model["labelsUrl"] == blobs.reading_url(own)


@pytest.mark.parametrize("result", [Result.COMPLETED, Result.FAILED, Result.CANCELLED])
def test_at_the_end_they_are_in_haste_s_place_too_for_its_deletion(result: Result) -> None:
    blobs = queued_blobs()
    isolated = Training(blobs, image_name=IMAGE, isolated=True)
    isolated.prepare(RUN, lambda url: url)
    isolated.finished(RUN, Outcome(result, "The end", END.ended_at))
    assert json.loads(blobs.content[LABELS]) == samples.sample("configs/train_labels.geojson")


def test_a_training_without_a_task_and_one_that_was_taken_over_leave_haste_s_labels_alone() -> None:
    blobs = queued_blobs()
    blobs.content[LABELS] = b"of HASTE"
    for run in (RUN, replace(RUN, task_id=None, job_id=None)):
        Training(blobs, image_name=IMAGE, isolated=True).finished(run, Outcome(Result.FAILED, "The end", END.ended_at))
    assert blobs.content[LABELS] == b"of HASTE"


def test_a_task_that_was_taken_over_keeps_the_labels_that_the_record_names() -> None:
    blobs = queued_blobs()
    model = samples.sample("metadata/model.train-submitted.json")
    run = replace(RUN, task_id=model["trainingJob"]["taskId"])
    changed = Training(blobs, image_name=IMAGE, isolated=True).submitted(run, samples.at("09:17:01"))(model)
    assert changed["labelsUrl"] == model["labelsUrl"]


def test_base_weights() -> None:
    blobs = queued_blobs(initialWeightsUrl=BASE_WEIGHTS)
    blobs.content[BASE_WEIGHTS] = b"x"
    task = workload(blobs).prepare(RUN, lambda url: url)
    assert task.resource_files[3] == ResourceFile(blobs.url(BASE_WEIGHTS), "inputs/last.ckpt")
    assert task.resource_files[4].file_path == "inputs/experiment_config_4821.yaml"
    config = json.loads(blobs.content[samples.CONFIG_NAME])
    assert config["training"]["initial_weights_fn"] == "AZ_BATCH_TASK_WORKING_DIR/inputs/last.ckpt"


def test_a_small_learning_rate_is_a_number_for_yaml() -> None:
    blobs = queued_blobs(learningRate="0.00001")
    workload(blobs).prepare(RUN, lambda url: url)
    assert b'"learning_rate": 1.0e-05,' in blobs.content[samples.CONFIG_NAME]


def test_urls_without_a_query_and_of_another_host_style_are_taken() -> None:
    blobs = queued_blobs()
    layer = json.loads(blobs.content[samples.LAYER_NAME])
    url = (
        layer["postEventMosaicCogImageryUrl"]
        .partition("?")[0]
        .replace("http://127.0.0.1:10000/devstoreaccount1", "https://devstoreaccount1.blob.core.windows.net")
    )
    samples.change(blobs, samples.LAYER_NAME, postEventMosaicCogImageryUrl=url)
    assert workload(blobs).prepare(RUN, lambda url: url) == own_copies(samples.haste_task("training", IMAGE))


def test_check_waits_for_the_model_only() -> None:
    workload(queued_blobs()).check(RUN.entity)
    blobs = queued_blobs()
    del blobs.content[samples.MODEL_NAME]
    with pytest.raises(NotThere) as error:
        workload(blobs).check(RUN.entity)
    assert error.value.name == samples.MODEL_NAME


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"modelType": "embedding"}, "embedding"),
        ({"imageLayerId": None}, "imageLayerId"),
        ({"imageLayerId": "../x"}, "imageLayerId"),
        ({"imageLayerId": samples.PROJECT_ID}, "image layer of this model does not exist"),
        ({"learningRate": "fast"}, "learningRate is fast; it must be a number above 0"),
        ({"batchSize": "0"}, "batchSize"),
        ({"maxEpochs": "1.5"}, "maxEpochs"),
        ({"initialWeightsUrl": f"https://host/{BASE_WEIGHTS}"}, "initialWeightsUrl"),
        ({"initialWeightsUrl": "trn-1/checkpoint/last.ckpt"}, "initialWeightsUrl"),
        ({"initialWeightsUrl": f"{samples.FOLDER}/../x.ckpt"}, "initialWeightsUrl"),
        ({"initialWeightsUrl": BASE_WEIGHTS}, "does not exist"),
        ({"initialWeightsUrl": {"a": 1}}, "initialWeightsUrl"),
    ],
)
def test_models_that_can_never_be_trained(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as error:
        workload(queued_blobs(**fields)).check(RUN.entity)
    assert reason in error.value.sentence


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"postEventMosaicCogImageryUrl": None}, "postEventMosaicCogImageryUrl"),
        ({"postEventProcessedImageryUrl": ""}, "postEventProcessedImageryUrl"),
        ({"postEventMosaicCogImageryUrl": "https://s3.example/x.tif"}, "does not point to a file of this project"),
        ({"postEventMosaicCogImageryUrl": MemoryBlobs().url(f"{'0' * 64}/img/x.tif")}, "file of this project"),
        ({"normalizationMeans": []}, "normalizationMeans"),
        ({"normalizationStds": None}, "normalizationStds"),
        ({"normalizationMeans": [0, 0]}, "normalizationMeans"),
    ],
)
def test_layers_that_have_not_been_processed(fields: dict[str, Any], reason: str) -> None:
    blobs = queued_blobs()
    samples.change(blobs, samples.LAYER_NAME, **fields)
    with pytest.raises(Refused) as error:
        workload(blobs).check(RUN.entity)
    assert reason in error.value.sentence


@pytest.mark.parametrize("classes", [None, [], [{"name": None}], [{"color": "#000000"}]])
def test_projects_without_classes(classes: Any) -> None:
    blobs = queued_blobs()
    samples.change(blobs, f"{samples.FOLDER}/project_{samples.PROJECT_ID}.json", primaryClasses=classes)
    with pytest.raises(Refused, match="primaryClasses"):
        workload(blobs).check(RUN.entity)


def test_missing_label_project_and_missing_labels() -> None:
    blobs = queued_blobs()
    name = f"{samples.FOLDER}/labels_{samples.LABEL_PROJECT_ID}.json"
    blobs.content[name] = samples.raw("metadata/labelproject.fresh.json")
    with pytest.raises(Refused, match="no labels yet"):
        workload(blobs).check(RUN.entity)
    del blobs.content[name]
    with pytest.raises(Refused, match="no label project"):
        workload(blobs).check(RUN.entity)


# --- while it runs ----------------------------------------------------------------------------------------------


def test_submitted() -> None:
    submitted = workload(MemoryBlobs()).submitted(RUN, samples.at("09:31:00"))
    changed = submitted(record("train-queued"))
    expected = record("train-submitted")
    assert samples.lines(changed) == samples.lines(expected)
    assert changed | {"statusMessage": ""} == expected | {"statusMessage": ""}
    assert submitted(changed) == changed


def test_another_run_replaces_the_job_and_keeps_the_checkpoint() -> None:
    again = Run(RUN.entity, "message-9", 1, "job-2", "trn-2", samples.at("11:00:00"))
    changed = workload(MemoryBlobs()).submitted(again, samples.at("11:00:00"))(record("train-processed"))
    assert workload(MemoryBlobs()).shown(changed) == Shown("InProgress", "trn-2", "InProgress")
    assert changed["trainingJob"]["completedEpochs"] == "0"
    assert (changed["currentStep"], changed["totalSteps"], changed["progressPct"]) == (0, 4, 0.0)
    assert changed["trainingOutputPath"] is None
    assert changed["checkpointPath"] == f"{OUTPUT}/checkpoint"
    assert changed["trainDate"] == "2026-08-12T11:00:00.123456+00:00"


def test_unknown_keys_of_the_job_stay() -> None:
    before = record("train-submitted")
    before["trainingJob"]["computeJob"] = {"x": 1}
    submitted = workload(MemoryBlobs()).submitted(RUN, samples.at("09:31:00"))
    assert submitted(before) == before


def in_progress() -> dict[str, Any]:
    """HASTE's record, but for what is left: HASTE has no minute left where an epoch and a half are to come."""
    shown = record("train-inprogress")
    shown["trainingJob"]["approxMinutesToComplete"] = "5.0"
    shown["statusMessage"] = shown["statusMessage"].replace("Complete: calculating...", "Complete: 5.0")
    return shown


def test_progress() -> None:
    files = MemoryFiles({f"wd/{EVENT_FILE}": EVENTS, "wd/logs/other.txt": b"x"})
    progress = workload(MemoryBlobs()).progress(RUN, files, samples.at("09:50:30"))
    assert progress is not None
    changed = progress(record("train-submitted"))
    assert changed == in_progress()
    later = workload(MemoryBlobs()).progress(RUN, files, samples.at("09:51:00"))
    assert later is not None
    assert later(changed) == changed  # no block of lines while the epoch is the same


def test_the_newest_event_file_counts() -> None:
    newer = EVENT_FILE.replace("1786527300", "1786529999")
    files = MemoryFiles({f"wd/{EVENT_FILE}": EVENTS, f"wd/{newer}": b"", f"wd/{newer}.profile": b""})
    assert workload(MemoryBlobs()).progress(RUN, files, samples.at("09:50:30")) is None


@pytest.mark.parametrize("content", [{}, {f"wd/{EVENT_FILE}": b""}, {f"wd/{EVENT_FILE}": EVENTS[:100]}])
def test_no_progress_to_read(content: dict[str, bytes]) -> None:
    assert workload(MemoryBlobs()).progress(RUN, MemoryFiles(content), samples.at("09:50:30")) is None


def test_progress_shows_a_task_again_that_a_late_save_has_removed() -> None:
    files = MemoryFiles({f"wd/{EVENT_FILE}": EVENTS})
    progress = workload(MemoryBlobs()).progress(RUN, files, samples.at("09:50:30"))
    assert progress is not None
    changed = progress(record("train-queued"))
    expected = in_progress()
    assert samples.lines(changed) == samples.lines(expected)
    assert changed | {"statusMessage": ""} == expected | {"statusMessage": ""}


def test_noted_once() -> None:
    noted = workload(MemoryBlobs()).noted(RUN, "Preempted, waiting", samples.at("09:40:00"))
    changed = noted(record("train-inprogress"))
    assert changed["statusMessage"].endswith("\n2026-08-12T09:40:00.123456+00:00: Preempted, waiting")
    assert noted(changed) == changed


@pytest.mark.parametrize("state", ["train-cancelled", "train-processed", "train-failed"])
def test_a_live_run_that_waits_is_queued_whatever_an_earlier_one_has_come_to(state: str) -> None:
    noted = workload(MemoryBlobs()).noted(RUN, "Waiting for capacity", samples.at("09:40:00"))
    changed = noted(record(state))
    assert changed["status"] == "Queued"
    assert changed["statusMessage"].endswith(": Waiting for capacity")


# --- its end ----------------------------------------------------------------------------------------------------


def processed(**fields: Any) -> dict[str, Any]:
    blobs = training_results()
    assert workload(blobs).outcome(RUN, END) == COMPLETED
    return workload(blobs).finished(RUN, COMPLETED)(record("train-inprogress") | fields)


def test_processed() -> None:
    changed = processed(autoRunInference=False)
    expected = record("train-processed") | {"autoRunInference": False}
    # the sample's event file ends before the last epoch, and HASTE writes its last line a second later
    expected["trainingJob"].update({key: changed["trainingJob"][key] for key in ("logs", "totalElapsedTime")})
    expected["statusMessage"] = (
        expected["statusMessage"].replace("10:01:01", "10:01:00").replace("Minutes: 25.0", "Minutes: 15.0")
    )
    assert changed == expected
    assert changed["trainingJob"]["totalElapsedTime"] == "15.0"


def test_of_the_uploaded_event_file_only_what_is_new_is_read() -> None:
    """The one process has followed it on the node; another one reads all of it."""
    blobs = training_results()
    training = workload(blobs)
    training.progress(RUN, MemoryFiles({f"wd/{EVENT_FILE}": EVENTS[:-44]}), samples.at("09:50:30"))
    followed = training.finished(RUN, COMPLETED)(record("train-inprogress"))
    assert blobs.range_lengths == [4 + 44]
    assert followed == workload(blobs).finished(RUN, COMPLETED)(record("train-inprogress"))
    assert blobs.range_lengths == [4 + 44, len(EVENTS)]


def test_processed_without_an_event_file_keeps_what_was_known() -> None:
    blobs = MemoryBlobs({f"{OUTPUT}/checkpoint/last.ckpt": b"x"})
    changed = workload(blobs).finished(RUN, COMPLETED)(record("train-inprogress"))
    assert changed["trainingJob"]["logs"] == record("train-inprogress")["trainingJob"]["logs"]
    assert (changed["trainingJob"]["completedEpochs"], changed["progressPct"]) == ("3", 100.0)


def test_inference_is_queued_in_the_same_change() -> None:
    changed = processed()
    queued = record("inference-queued")
    fields = [key for key in queued if key.startswith("inference") and not key.endswith("Message")]
    assert {key: changed[key] for key in fields} == {key: queued[key] for key in fields}
    assert changed["inferenceStatusMessage"] == "\n2026-08-12T10:01:00.123456+00:00: Queued for inference"


def test_finishing_again_changes_nothing_even_while_inference_runs() -> None:
    finished = workload(training_results()).finished(RUN, COMPLETED)
    changed = finished(record("train-inprogress")) | {"inferenceStatus": "InProgress", "inferenceCurrentStep": 3}
    assert finished(changed) == changed


def test_finishing_again_after_a_late_save() -> None:
    """HASTE's API has put the record back as it was at a cancel that came too late."""
    finished = workload(training_results()).finished(RUN, COMPLETED)
    assert workload(MemoryBlobs()).shown(finished(record("train-cancel-requested"))).status == "Processed"


def test_success_without_a_checkpoint_is_a_failure() -> None:
    outcome = workload(MemoryBlobs()).outcome(RUN, END)
    assert outcome == Outcome(Result.FAILED, "Training job failed: it left no checkpoint", END.ended_at)


def test_failed() -> None:
    blobs = MemoryBlobs(
        {
            f"{OUTPUT}/logs/workflow_progress.log": samples.raw("task-files/workflow_progress.training-failed.log"),
            f"{OUTPUT}/stderr.txt": b"Traceback",
        }
    )
    outcome = workload(blobs).outcome(RUN, TaskEnd(False, 1, "FailureExitCode", samples.at("09:33:00")))
    finished = workload(blobs).finished(RUN, outcome)
    changed = finished(record("train-submitted"))
    expected = record("train-failed")
    assert (
        changed["statusMessage"].replace(" (exit code 1)\nError running f", "\nError running f")
        == expected["statusMessage"]
    )
    assert changed | {"statusMessage": ""} == expected | {"statusMessage": ""}
    assert finished(changed) == changed


def test_failed_by_batch() -> None:
    end = TaskEnd(False, None, "ContainerInvalidImage", END.ended_at)
    sentence = workload(MemoryBlobs()).outcome(RUN, end).sentence
    assert sentence == "Training job failed (Azure Batch reported ContainerInvalidImage)"


def test_cancelled() -> None:
    outcome = Outcome(Result.CANCELLED, "Training cancelled", samples.at("09:52:02"))
    changed = workload(MemoryBlobs()).finished(RUN, outcome)(record("train-cancel-requested"))
    expected = record("train-cancelled")
    *before, _task_line, last = expected["statusMessage"].split("\n")
    assert changed["statusMessage"].split("\n") == [*before, last.replace("09:52:03", "09:52:02")]
    assert changed | {"statusMessage": ""} == expected | {"statusMessage": ""}


def test_cancelled_before_there_was_a_task() -> None:
    outcome = Outcome(Result.CANCELLED, "Training cancelled", samples.at("09:30:10"))
    before = record("train-queued")
    changed = workload(MemoryBlobs()).finished(Run(RUN.entity, "message-2"), outcome)(before)
    assert changed["status"] == "Cancelled"
    assert {key for key in before if before[key] != changed[key]} == {"status", "statusMessage"}


def test_cancelled_between_two_attempts_leaves_no_job_open() -> None:
    outcome = Outcome(Result.CANCELLED, "Training cancelled", samples.at("09:55:00"))
    changed = workload(MemoryBlobs()).finished(Run(RUN.entity, "message-2"), outcome)(record("train-inprogress"))
    assert changed["trainingJob"]["status"] == "Cancelled"


def test_a_failed_request_leaves_the_job_of_an_earlier_run_alone() -> None:
    outcome = Outcome(Result.FAILED, "The image layer has no labels yet.", samples.at("12:00:00"))
    before = record("train-processed") | {"status": "Queued"}
    changed = workload(MemoryBlobs()).finished(Run(RUN.entity, "message-9"), outcome)(before)
    assert changed["trainingJob"] == before["trainingJob"]
    assert changed["checkpointPath"] == before["checkpointPath"]


@pytest.mark.parametrize(
    ("fields", "result", "expected"),
    [
        ({"autoRunInference": True}, Result.COMPLETED, Kind.INFERENCE),
        ({"autoRunInference": False}, Result.COMPLETED, None),
        ({"autoRunInference": None}, Result.COMPLETED, None),
        ({"autoRunInference": True}, Result.FAILED, None),
        ({"autoRunInference": True}, Result.CANCELLED, None),
    ],
)
def test_what_follows(fields: dict[str, Any], result: Result, expected: Kind | None) -> None:
    outcome = Outcome(result, "", END.ended_at)
    assert workload(queued_blobs(**fields)).follow_up(RUN, outcome) is expected


def test_nothing_follows_for_a_deleted_model() -> None:
    assert workload(MemoryBlobs()).follow_up(RUN, COMPLETED) is None
