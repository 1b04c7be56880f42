"""Whatever HASTE's record holds, the worker changes its own fields only, and leaves none empty that the UI needs."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.haste import log_text
from shared.haste.imageryprep import Imageryprep
from shared.haste.inference import Inference
from shared.haste.status_fields import INFERENCE, MAIN
from shared.haste.training import Training
from shared.haste.workload import Change, Workload
from shared.kinds import Kind
from shared.protocol.outcome import Outcome, Result, Run
from tests.support import samples
from tests.support.haste_results import (
    EVENT_FILE,
    EVENTS,
    IMAGERY_LOG,
    INFERENCE_LOG,
    imagery_results,
    inference_results,
    training_results,
)
from tests.support.memory_blobs import MemoryBlobs, MemoryFiles

STATUS = {"status", "statusMessage", "currentStep", "totalSteps", "progressPct"}
INFERENCE_STATUS = {
    "inferenceStatus",
    "inferenceStatusMessage",
    "inferenceCurrentStep",
    "inferenceTotalSteps",
    "inferenceProgressPct",
}
OWNED = {
    Kind.IMAGERYPREP: STATUS
    | {
        "preprocessJob",
        "imageryPath",
        "preEventPreviewUrls",
        "preEventMosaicCogImageryUrl",
        "preEventProcessedImageryUrl",
        "postEventPreviewUrls",
        "postEventMosaicCogImageryUrl",
        "postEventProcessedImageryUrl",
        "normalizationMeans",
        "normalizationStds",
        "buildingFootprintsUrl",
        "validAreaMaskUrl",
        "labelProjectId",
        "labelsUrl",
    },
    # the inference that follows is queued in the same change
    Kind.TRAINING: STATUS
    | INFERENCE_STATUS
    | {"trainingJob", "trainDate", "trainingOutputPath", "checkpointPath", "labelsUrl"},
    Kind.INFERENCE: INFERENCE_STATUS
    | {"inferenceJobs", "currentInferenceTaskId", "inferenceOutputPath", "predictedDamageLayerUrl", "gpkgUrl"},
}
NEVER_NULL = STATUS | INFERENCE_STATUS | {"inferenceJobs"}

RUNS = {
    Kind.IMAGERYPREP: samples.imagery_run(),
    Kind.TRAINING: samples.training_run(),
    Kind.INFERENCE: samples.inference_run(),
}
RESULTS = {
    Kind.IMAGERYPREP: imagery_results(),
    Kind.TRAINING: training_results(),
    Kind.INFERENCE: inference_results(),
}
FILES = MemoryFiles(
    {
        "wd/logs/imagery_friendly.log": IMAGERY_LOG,
        "wd/logs/workflow_progress.log": INFERENCE_LOG,
        f"wd/{EVENT_FILE}": EVENTS,
    }
)
AT = samples.at("11:00:00")


def workload(kind: Kind) -> Workload:
    blobs = MemoryBlobs(RESULTS[kind].content)
    match kind:
        case Kind.IMAGERYPREP:
            return Imageryprep(blobs, image_name="i", titiler_url="http://t/", tile_size=256)
        case Kind.TRAINING:
            return Training(blobs, image_name="i")
        case Kind.INFERENCE:
            return Inference(blobs, image_name="i", gdal_translate_params="x")


def changes(kind: Kind) -> list[Change]:
    """Every change of a kind: of a run, and of a request without a task."""
    work, run = workload(kind), RUNS[kind]
    made = [work.submitted(run, AT), work.noted(run, "Waiting", AT), work.progress(run, FILES, AT)]
    outcomes = [Outcome(result, "The end", AT) for result in Result if result is not Result.SUPERSEDED]
    made += [work.finished(run, outcome) for outcome in outcomes]
    made += [work.finished(Run(run.entity, run.request_id), outcome) for outcome in outcomes[1:]]
    return [change for change in made if change is not None]


CHANGES = [(kind, change) for kind in Kind for change in changes(kind)]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
words = st.sampled_from(["Queued", "InProgress", "Processed", "Failed", "Cancelled"])
task_ids = st.sampled_from([samples.IMAGERY_TASK, samples.TRAINING_TASK, samples.INFERENCE_TASK, "trn-other"])
jobs = st.fixed_dictionaries({}, optional={"taskId": task_ids, "status": words | values, "x": values})
plausible: dict[str, st.SearchStrategy[Any]] = {
    "status": words,
    "inferenceStatus": words,
    "preprocessJob": jobs,
    "trainingJob": jobs,
    "inferenceJobs": st.lists(jobs | values, max_size=3),
    "currentInferenceTaskId": task_ids,
    "maxEpochs": st.sampled_from(["3", 10, "x"]),
    "autoRunInference": st.booleans(),
}
all_keys = sorted(
    {*OWNED[Kind.IMAGERYPREP], *OWNED[Kind.TRAINING], *OWNED[Kind.INFERENCE], "name", "maxEpochs", "userId"}
)
records = st.fixed_dictionaries(
    {"unknown": values},
    optional={key: values | plausible[key] if key in plausible else values for key in [*all_keys, *plausible]},
)


@given(records, st.sampled_from(CHANGES))
@settings(max_examples=500)
def test_any_record(record: dict[str, Any], chosen: tuple[Kind, Change]) -> None:
    kind, change = chosen
    before = copy.deepcopy(record)
    changed = change(record)
    assert record == before  # what was read is not touched
    assert changed.keys() >= record.keys()
    differing = {key for key in changed if key not in record or record[key] != changed[key]}
    assert differing <= OWNED[kind]
    assert not [key for key in NEVER_NULL & differing if changed[key] is None]
    assert change(changed) == changed
    json.dumps(changed)


@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_progress_numbers_fit_together(kind: Kind, change: Change) -> None:
    record = change({"currentStep": 9, "totalSteps": None, "inferenceCurrentStep": 9, "inferenceTotalSteps": 0})
    fields = INFERENCE if kind is Kind.INFERENCE else MAIN
    if fields.percent in record:  # a note leaves the numbers alone
        step, total = record[fields.step], record[fields.total]
        assert 0 <= step <= total
        assert record[fields.percent] == round(step / total * 100, 2)


@pytest.mark.parametrize("kind", Kind)
def test_a_long_log_stays_bounded(kind: Kind) -> None:
    field = "inferenceStatusMessage" if kind is Kind.INFERENCE else "statusMessage"
    full = "".join(f"\n{log_text.entry(str(n), AT)}" for n in range(2000))
    for change in changes(kind):
        assert len(change({field: full})[field].encode()) <= log_text.MAX_BYTES
