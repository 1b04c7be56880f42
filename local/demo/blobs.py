"""The blobs that HASTE's contract promises for each kind of work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from local.demo.evidence import Evidence
from local.producer.names import label_project_blob, layer_blob, model_blob, partition

_STREAMS = ("stdout.txt", "stderr.txt")


def missing_blobs(evidence: Evidence) -> list[str]:
    """The promised names, or beginnings of names, that the listing lacks."""
    return [name for name in expected_blobs(evidence) if not _is_there(name, evidence.blob_names)]


def expected_blobs(evidence: Evidence) -> list[str]:
    """Names by what HASTE's records say; one that ends in `*` is the beginning of a name."""
    layers = [name for layer in evidence.layers for name in _imageryprep(layer)]
    return [*layers, *_training(evidence.model), *_inference(evidence.model)]


def _imageryprep(layer: Mapping[str, Any]) -> list[str]:
    project_id, layer_id = layer["projectId"], layer["imageLayerId"]
    suffix = f"{project_id}_{layer_id}"
    results = [
        f"raw_imagery_post_event_{suffix}_*",
        f"preview_raw_imagery_post_event_{suffix}_*",
        f"raw_imagery_post_event_mosaic_cog_{suffix}.tif",
        f"processed_imagery_post_event_cog_{suffix}.tif",
        f"building_footprints_{suffix}.gpkg",
        f"valid_area_mask_{suffix}.geojson",
        "imagery_manifest.json",
        "logs/imagery_friendly.log",
        *_STREAMS,
    ]
    if layer.get("preEventImageryUrls"):
        results += [
            f"raw_imagery_pre_event_{suffix}_*",
            f"raw_imagery_pre_event_mosaic_cog_{suffix}.tif",
            f"processed_imagery_pre_event_cog_{suffix}.tif",
        ]
    label_project_id = layer.get("labelProjectId")
    return [
        layer_blob(project_id, layer_id),
        f"{partition(project_id)}/imageryprep_config_{layer_id}.yaml",
        label_project_blob(project_id, str(label_project_id)),
        f"{partition(project_id)}/artifacts/labels_{label_project_id}.geojson",
        *_in_folder(layer, layer.get("preprocessJob"), results),
    ]


def _training(model: Mapping[str, Any]) -> list[str]:
    project_id, model_id = model["projectId"], model["modelId"]
    results = [
        f"inputs/train_labels_{model_id}.geojson",
        f"inputs/experiment_config_{model_id}.yaml",
        "checkpoint/last.ckpt",
        f"logs/model_{model_id}/version_0/events.out.tfevents.*",
        *_STREAMS,
    ]
    return [
        model_blob(project_id, model_id),
        f"{partition(project_id)}/experiment_config_{model_id}.yaml",
        f"{model.get('checkpointPath')}/last.ckpt",
        *_in_folder(model, model.get("trainingJob"), results),
    ]


def _inference(model: Mapping[str, Any]) -> list[str]:
    mosaic = f"raw_imagery_post_event_mosaic_cog_{model['projectId']}_{model['imageLayerId']}"
    results = [
        f"{mosaic}_predictions.tif",
        f"{mosaic}_visualizer.tif",
        f"predicted_damage_{model['name']}.gpkg",
        *_STREAMS,
    ]
    return [name for job in model.get("inferenceJobs") or [None] for name in _in_folder(model, job, results)]


def _in_folder(record: Mapping[str, Any], job: Mapping[str, Any] | None, results: Iterable[str]) -> list[str]:
    task_id = (job or {}).get("taskId")
    return [f"{partition(record['projectId'])}/{task_id}/{result}" for result in results]


def _is_there(wanted: str, names: Iterable[str]) -> bool:
    if wanted.endswith("*"):
        return any(name.startswith(wanted[:-1]) for name in names)
    return wanted in names
