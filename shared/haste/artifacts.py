"""HASTE's request for a zip of what the runs of a model have left: the record of artifacts, and the message.

HASTE's own app makes the zip. It reads the model's output paths when it gets the message, and takes the message for the
whole record.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from shared.errors import Refused
from shared.haste import labels, log_text, paths, records
from shared.haste.status_fields import QUEUED
from shared.haste.workload import Blobs, JsonObject
from shared.kinds import Entity
from shared.protocol.outcome import Run

#: HASTE's app puts the record into a message again at every look, longer each time; a queue takes 64 KiB.
_MOST_CHARACTERS = 32 * 1024

_EMPTY: JsonObject = {
    "projectId": None,
    "imageLayerId": None,
    "modelId": None,
    "currentZipJobUid": None,
    "zipUrl": None,
    "trainingZipUrl": None,
    "trainingZipSize": None,
    "inferenceZipUrl": None,
    "inferenceZipSize": None,
    "zipStatus": None,
    "zipStatusMessage": "",
    "zipJobs": [],
    "dependsOn": ["Model", "modelId"],
}


def record_name(entity: Entity) -> str:
    """Blob name of a model's ModelArtifacts."""
    return paths.artifacts_record(entity.project_id, entity.entity_id)


def model_to_zip(blobs: Blobs, run: Run, output_field: str) -> JsonObject | None:
    """The Model, if its record names what this run has left in `output_field`; else nobody would find that.

    HASTE deletes config, labels and artifacts of a model in this order, and stops at the first that is missing. So the
    labels are put in their place before there is a record of artifacts: models that were trained on shared pools by
    version 0.1.0 lack them.
    """
    if run.task_id is None:
        return None
    project_id, model_id = run.entity.project_id, run.entity.entity_id
    try:
        model = records.read(blobs, paths.model_record(project_id, model_id))
    except Refused:
        return None  # it could not show the end either, and that has been told
    if model is None or model.get(output_field) != paths.task_folder(project_id, run.task_id):
        return None
    trained_on = paths.blob_name(records.text(model, "labelsUrl"), blobs)
    expected = labels.blob_for_haste(run.entity)
    if trained_on not in (None, expected) and blobs.size_bytes(expected) is None:
        labels.copy_for_haste(blobs, run.entity, trained_on)
    return model


def queued(entity: Entity, model: JsonObject, at: datetime) -> Callable[[JsonObject | None], JsonObject]:
    """Makes the stored ModelArtifacts, or None, one that asks for a zip. URLs of earlier zips stay, as in HASTE.

    One of another layer was left behind by HASTE's deletion of that; the four digits of a model's id come again.
    """
    layer_id = model.get("imageLayerId")

    def change(stored: JsonObject | None) -> JsonObject:
        before = stored or {}
        if before.get("imageLayerId") not in (None, layer_id):
            before = {}
        return {
            **_EMPTY,
            **before,
            "projectId": entity.project_id,
            "imageLayerId": layer_id,
            "modelId": entity.entity_id,
            "currentZipJobUid": None,
            "zipUrl": None,
            "zipStatus": QUEUED,
            "zipStatusMessage": log_text.append("", log_text.entry("Queued for zipping", at)),
            "zipJobs": records.children(before, "zipJobs"),
        }

    return change


def message(record: JsonObject) -> str:
    """The record as HASTE's app takes it, without what other programs keep in it, and with as many jobs as fit."""
    asking = {key: record[key] for key in _EMPTY}
    text = records.dump(asking).decode()
    while len(text) > _MOST_CHARACTERS and asking["zipJobs"]:
        asking["zipJobs"] = asking["zipJobs"][1:]  # the oldest
        text = records.dump(asking).decode()
    return text
