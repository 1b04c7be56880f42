"""Imagery preparation, from HASTE's queued record to its processed or failed one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.batch.task_spec import OutputFile, ResourceFile
from shared.errors import NotThere, Refused
from shared.haste.imageryprep import Imageryprep
from shared.haste.workload import Shown
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd
from tests.support import samples
from tests.support.haste_results import IMAGERY_LOG, imagery_results
from tests.support.haste_results import IMAGERY_OUTPUT as OUTPUT
from tests.support.memory_blobs import MemoryBlobs, MemoryFiles
from tests.support.rasters import geotiff

IMAGE = "example.azurecr.io/hasteimageryprep:2.0.0"
RUN = samples.imagery_run()
END = TaskEnd(True, 0, None, samples.at("09:17:00"))
LAYER = f"{samples.PROJECT_ID}_{samples.LAYER_ID}"
CONFIG = f"imageryprep_config_{samples.LAYER_ID}.yaml"
COMPLETED = Outcome(Result.COMPLETED, "Image preprocessing completed successfully", END.ended_at)


def workload(blobs: MemoryBlobs) -> Imageryprep:
    return Imageryprep(blobs, image_name=IMAGE, titiler_url="http://localhost:7071/api/titiler/", tile_size=256)


def change_manifest(blobs: MemoryBlobs, **changes: Any) -> None:
    samples.change(blobs, f"{OUTPUT}/imagery_manifest.json", **changes)


def finish(blobs: MemoryBlobs, run: Run = RUN, end: TaskEnd = END) -> dict[str, Any]:
    """The record after the end, read from the state in progress."""
    outcome = workload(blobs).outcome(run, end)
    return workload(blobs).finished(run, outcome)(samples.sample("metadata/imagelayer.inprogress.json"))


# --- before the task --------------------------------------------------------------------------------------------


def test_check() -> None:
    workload(samples.project_blobs(layer="imagelayer.pending")).check(RUN.entity)
    with pytest.raises(NotThere) as error:
        workload(samples.project_blobs()).check(RUN.entity)
    assert error.value.name == samples.LAYER_NAME


@pytest.mark.parametrize("urls", [None, [], "https://x", [1]])
def test_a_layer_without_post_event_imagery_is_refused(urls: Any) -> None:
    blobs = samples.project_blobs()
    blobs.content[samples.LAYER_NAME] = json.dumps({"postEventImageryUrls": urls}).encode()
    with pytest.raises(Refused, match="postEventImageryUrls"):
        workload(blobs).check(RUN.entity)


def test_task_is_haste_s_but_for_the_own_copy_of_the_config_and_the_logs() -> None:
    blobs = samples.project_blobs(layer="imagelayer.pending")
    task = workload(blobs).prepare(RUN, lambda url: url)
    expected = samples.haste_task("imageryprep", IMAGE)
    assert task.command_line == expected.command_line
    assert task.resource_files == (ResourceFile(blobs.url(f"{OUTPUT}/inputs/{CONFIG}"), CONFIG),)
    assert expected.resource_files == (ResourceFile(blobs.url(f"{samples.FOLDER}/{CONFIG}"), CONFIG),)
    outputs, texts = expected.output_files
    logs = OutputFile("$AZ_BATCH_TASK_WORKING_DIR/logs/*", f"{OUTPUT}/logs")
    assert task.output_files == (outputs, logs, texts)
    assert task.environment == expected.environment


def test_both_configs_are_haste_s_byte_for_byte_without_fresh_credentials() -> None:
    blobs = samples.project_blobs(layer="imagelayer.pending")
    workload(blobs).prepare(RUN, lambda url: url)
    expected = samples.raw("configs/imageryprep_config.yaml")
    assert blobs.content[f"{samples.FOLDER}/{CONFIG}"] == expected
    assert blobs.content[f"{OUTPUT}/inputs/{CONFIG}"] == expected


def test_only_the_task_s_own_config_gets_fresh_credentials() -> None:
    blobs = samples.project_blobs(layer="imagelayer.pending")
    layer = json.loads(blobs.content[samples.LAYER_NAME]) | {"userBuildingFootprintsUrl": "https://x/user.gpkg?old"}
    blobs.content[samples.LAYER_NAME] = json.dumps(layer).encode()
    workload(blobs).prepare(RUN, lambda url: url.partition("?")[0] + "?fresh")
    own = json.loads(blobs.content[f"{OUTPUT}/inputs/{CONFIG}"])
    shared = json.loads(blobs.content[f"{samples.FOLDER}/{CONFIG}"])
    assert own["user_building_footprints_url"] == "https://x/user.gpkg?fresh"
    assert all(url.endswith("?fresh") for url in own["pre_event_imagery_urls"] + own["post_event_imagery_urls"])
    assert shared["user_building_footprints_url"] == layer["userBuildingFootprintsUrl"]
    assert shared["post_event_imagery_urls"] == layer["postEventImageryUrls"]


# --- while it runs ----------------------------------------------------------------------------------------------


def test_submitted() -> None:
    change = workload(MemoryBlobs()).submitted(RUN, samples.at("09:01:05"))
    record = change(samples.sample("metadata/imagelayer.pending.json"))
    expected = samples.sample("metadata/imagelayer.inprogress.json")
    assert samples.lines(record) == samples.lines(expected)
    assert record | {"statusMessage": ""} == expected | {"statusMessage": ""}
    assert change(record) == record


def test_another_attempt_starts_from_the_beginning() -> None:
    record = samples.sample("metadata/imagelayer.inprogress.json") | {"currentStep": 3, "progressPct": 75.0}
    again = Run(RUN.entity, RUN.request_id, 2, "job-2", "img-2", samples.at("10:00:00"))
    changed = workload(MemoryBlobs()).submitted(again, samples.at("10:00:00"))(record)
    assert workload(MemoryBlobs()).shown(changed) == Shown("InProgress", "img-2", "InProgress")
    assert (changed["currentStep"], changed["progressPct"]) == (0, 0.0)


def test_progress_is_a_step_per_new_line() -> None:
    content = IMAGERY_LOG
    record = samples.sample("metadata/imagelayer.inprogress.json")
    shown = []
    for length in [*range(0, len(content), 20), len(content)]:
        files = MemoryFiles({"wd/logs/imagery_friendly.log": content[:length]})
        change = workload(MemoryBlobs()).progress(RUN, files, samples.at("09:10:00"))
        record = change(record) if change else record
        shown.append((record["currentStep"], record["progressPct"]))
    assert sorted(set(shown)) == [(0, 0.0), (1, 25.0), (2, 50.0), (3, 75.0), (4, 100.0)]
    assert shown == sorted(shown)
    assert record["statusMessage"] == samples.sample("metadata/imagelayer.processed.json")["statusMessage"]


def test_more_lines_than_steps_stay_at_100_percent() -> None:
    content = "".join(f"2026-08-12T09:02:{n:02}.000000+00:00|{n}\n" for n in range(9)).encode()
    files = MemoryFiles({"wd/logs/imagery_friendly.log": content})
    change = workload(MemoryBlobs()).progress(RUN, files, samples.at("09:10:00"))
    assert change is not None
    record = change(samples.sample("metadata/imagelayer.inprogress.json"))
    assert (record["currentStep"], record["totalSteps"], record["progressPct"]) == (4, 4, 100.0)


def test_progress_shows_a_task_again_that_a_late_save_has_removed() -> None:
    files = MemoryFiles({"wd/logs/imagery_friendly.log": IMAGERY_LOG})
    change = workload(MemoryBlobs()).progress(RUN, files, samples.at("09:18:00"))
    assert change is not None
    record = change(samples.sample("metadata/imagelayer.pending.json"))
    assert workload(MemoryBlobs()).shown(record) == Shown("InProgress", samples.IMAGERY_TASK, "InProgress")
    assert record["preprocessJob"]["creationDate"] == "2026-08-12T09:01:05.123456+00:00"


def test_nothing_to_read() -> None:
    assert workload(MemoryBlobs()).progress(RUN, MemoryFiles(), samples.at("09:10:00")) is None


def test_noted_once() -> None:
    work = workload(MemoryBlobs())
    record = samples.sample("metadata/imagelayer.pending.json")
    once = work.noted(RUN, "Waiting for a free node", samples.at("09:02:00"))(record)
    assert once["statusMessage"].endswith("\n2026-08-12T09:02:00.123456+00:00: Waiting for a free node")
    assert work.noted(RUN, "Waiting for a free node", samples.at("09:03:00"))(once) == once
    assert once | {"statusMessage": ""} == record | {"statusMessage": ""}


# --- its end ----------------------------------------------------------------------------------------------------


def test_processed() -> None:
    blobs = imagery_results()
    assert workload(blobs).outcome(RUN, END) == COMPLETED
    record = finish(blobs)
    expected = samples.sample("metadata/imagelayer.processed.json")
    # ours: a last line, and an id of the label project that follows from the request
    last_line = "\n2026-08-12T09:17:00.123456+00:00: Image preprocessing completed successfully"
    expected["statusMessage"] += last_line
    expected["preprocessJob"]["logs"] += last_line
    expected["labelProjectId"] = record["labelProjectId"]
    expected["labelsUrl"] = blobs.reading_url(f"{samples.FOLDER}/artifacts/labels_{record['labelProjectId']}.geojson")
    assert record == expected
    label_project = json.loads(blobs.content[f"{samples.FOLDER}/labels_{record['labelProjectId']}.json"])
    assert label_project["features"] == samples.sample("metadata/labelproject.fresh.json")["features"]


def test_finishing_again_changes_nothing() -> None:
    blobs = imagery_results()
    record = finish(blobs)
    stored = dict(blobs.content)
    assert workload(blobs).finished(RUN, COMPLETED)(record) == record
    assert finish(blobs) == record
    assert blobs.content == stored


def test_without_pre_event_imagery_its_urls_are_empty_text() -> None:
    record = finish(imagery_results("imagery_manifest.no-pre-event"))
    assert record["status"] == "Processed"
    assert record["preEventMosaicCogImageryUrl"] == record["preEventProcessedImageryUrl"] == ""


def test_failed_footprints_fail_the_layer_but_show_its_imagery() -> None:
    record = finish(imagery_results("imagery_manifest.footprints-failed"))
    expected = samples.sample("metadata/imagelayer.failed-footprints.json")
    for one in (record, expected):
        one["statusMessage"] = "\n".join(
            sorted(one["statusMessage"].split("\n"))
        )  # HASTE has the reason before the log
        one["preprocessJob"]["logs"] = None
    assert record == expected


def test_the_footprints_error_is_redacted() -> None:
    blobs = imagery_results()
    change_manifest(blobs, building_footprints_error="GET https://h/x?sig=abc failed\n/mnt/batch/x.gpkg")
    sentence = workload(blobs).outcome(RUN, END).sentence
    assert sentence == "Building footprints unavailable — GET https://h/x failed x.gpkg"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"normalization_means": None}, "no normalization values"),
        ({"normalization_stds": [1]}, "no normalization values"),
        ({"post_event_mosaic_filename": ""}, "left no post-event imagery"),
        ({"post_event_processed_filename": None}, "left no post-event imagery"),
        ({"post_event_mosaic_filename": "other.tif"}, "no usable list of its results"),
        ({"building_footprints_filename": "../../x.gpkg"}, "no usable list of its results"),
        ({"building_footprints_filename": f"building_footprints_{LAYER}/x.gpkg"}, "no usable list of its results"),
        ({"preview_post_event_filenames": [1]}, "no usable list of its results"),
    ],
)
def test_unusable_results_are_a_failure(changes: dict[str, Any], reason: str) -> None:
    blobs = imagery_results()
    change_manifest(blobs, **changes)
    outcome = workload(blobs).outcome(RUN, END)
    assert outcome.result is Result.FAILED
    assert reason in outcome.sentence
    record = finish(blobs)
    assert record["status"] == record["preprocessJob"]["status"] == "Failed"
    assert record["labelProjectId"] is None
    assert isinstance(record["normalizationMeans"], list)


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{"])
def test_a_missing_or_broken_manifest_is_a_failure(content: bytes | None) -> None:
    blobs = imagery_results()
    del blobs.content[f"{OUTPUT}/imagery_manifest.json"]
    if content is not None:
        blobs.content[f"{OUTPUT}/imagery_manifest.json"] = content
    assert "no usable list" in workload(blobs).outcome(RUN, END).sentence
    assert finish(blobs)["postEventMosaicCogImageryUrl"] is None


def test_results_that_were_not_uploaded() -> None:
    blobs = imagery_results()
    manifest = samples.sample("task-files/imagery_manifest.json")
    del blobs.content[f"{OUTPUT}/{manifest['valid_area_mask_filename']}"]
    assert finish(blobs)["validAreaMaskUrl"] == ""
    del blobs.content[f"{OUTPUT}/{manifest['post_event_mosaic_filename']}"]
    assert "left no post-event imagery" in workload(blobs).outcome(RUN, END).sentence


def test_a_failed_layer_has_no_labels() -> None:
    outcome = Outcome(Result.FAILED, "x", END.ended_at)
    layer = samples.sample("metadata/imagelayer.inprogress.json") | {"labelsUrl": "of an earlier run"}
    assert workload(MemoryBlobs()).finished(RUN, outcome)(layer)["labelsUrl"] is None


def test_imagery_without_a_position_is_a_failure() -> None:
    blobs = imagery_results()
    manifest = samples.sample("task-files/imagery_manifest.json")
    blobs.content[f"{OUTPUT}/{manifest['post_event_processed_filename']}"] = geotiff(crs=None)
    assert "no position on the map" in workload(blobs).outcome(RUN, END).sentence


def test_a_failed_task_shows_its_log_without_secrets() -> None:
    blobs = samples.project_blobs(layer="imagelayer.inprogress")
    blobs.content[f"{OUTPUT}/logs/imagery_friendly.log"] = samples.raw("task-files/imagery_friendly.failed-leaky.log")
    blobs.content[f"{OUTPUT}/stderr.txt"] = b"Traceback"
    record = finish(blobs, end=TaskEnd(False, 1, "FailureExitCode", samples.at("09:03:00")))
    *_, downloading, error, last = record["statusMessage"].split("\n")
    assert downloading.endswith(": Downloading imagery")
    assert "Unable to download raw imagery" in error
    assert last == "2026-08-12T09:03:00.123456+00:00: Image preprocessing failed (exit code 1)"
    assert "sig=" not in json.dumps(record["statusMessage"])
    assert (record["status"], record["currentStep"], record["progressPct"]) == ("Failed", 2, 50.0)
    assert record["labelsUrl"] is None


def test_a_task_that_ran_too_long() -> None:
    end = TaskEnd(False, 137, "TaskEnded", samples.at("16:00:00"))
    sentence = workload(MemoryBlobs()).outcome(RUN, end).sentence
    assert sentence == "Image preprocessing failed: it reached its maximum run time"


def test_a_request_that_never_got_a_task() -> None:
    record = samples.sample("metadata/imagelayer.pending.json")
    run = Run(RUN.entity, RUN.request_id)
    outcome = Outcome(Result.FAILED, "The image layer names no post-event imagery.", samples.at("09:02:00"))
    changed = workload(MemoryBlobs()).finished(run, outcome)(record)
    assert changed["status"] == "Failed"
    assert changed["preprocessJob"] is None
    assert changed["statusMessage"] == record["statusMessage"] + (
        "\n2026-08-12T09:02:00.123456+00:00: The image layer names no post-event imagery."
    )
    assert {key for key in record if record[key] != changed[key]} == {"status", "statusMessage"}


def test_a_layer_deleted_meanwhile_gets_no_label_project() -> None:
    blobs = imagery_results()
    del blobs.content[samples.LAYER_NAME]
    workload(blobs).finished(RUN, COMPLETED)
    assert blobs.names(f"{samples.FOLDER}/labels_") == []


def test_nothing_follows() -> None:
    assert workload(MemoryBlobs()).follow_up(RUN, COMPLETED) is None
