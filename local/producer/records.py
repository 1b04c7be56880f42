"""HASTE's records as its web application makes them: every field present, in HASTE's order."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

Record = dict[str, Any]

CLASSES = (("Background", "#4B5563"), ("Building", "#22C55E"), ("Damaged Building", "#EF4444"))


def now() -> str:
    """HASTE's timestamp: UTC, microseconds, ``+00:00``."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def status_line(text: str) -> str:
    """A line to append to a status message."""
    return f"\n{now()}: {text}"


def new_project(*, name: str, user_id: str, project_id: str | None = None) -> Record:
    """A project with three classes, the third of which is damage."""
    return {
        "projectId": project_id or str(uuid4()),
        "name": name,
        "description": "Exercise data, not a real event",
        "affectedCountries": ["Exampleland"],
        "userId": user_id,
        "eventDate": "2026-08-10T00:00:00Z",
        "eventTypes": ["Flood"],
        "creationDate": now(),
        "imageLayerCount": 0,
        "imageLayer": None,
        "primaryClasses": [{"name": name, "color": color} for name, color in CLASSES],
    }


def new_image_layer(
    project_id: str,
    *,
    name: str,
    user_id: str,
    post_event_urls: Sequence[str],
    pre_event_urls: Sequence[str] = (),
    image_layer_id: str | None = None,
    clip_bbox: Sequence[float] | None = None,
    user_building_footprints_url: str | None = None,
) -> Record:
    """A layer as the user submits it; without pre-event imagery its pre-event fields are null."""
    has_pre_event = bool(pre_event_urls)
    return {
        "imageLayerId": image_layer_id or str(uuid4()),
        "projectId": project_id,
        "labelProjectId": None,
        "name": name,
        "description": "Post-event mosaic",
        "workflowType": "standard",
        "format": "tif",
        "sourceType": None,
        "sourceTypePreEvent": "planet_skysat" if has_pre_event else None,
        "sourceTypePostEvent": "planet_skysat",
        "imageryCaptureDatePreEvent": "2026-07-30" if has_pre_event else None,
        "imageryCaptureDatePostEvent": "2026-08-12",
        "normalizationFactor": None,
        "imageryCaptureDate": None,
        "preEventImageryUrls": list(pre_event_urls) if has_pre_event else None,
        "preEventPreviewUrls": [],
        "preEventMosaicCogImageryUrl": None,
        "preEventProcessedImageryUrl": None,
        "postEventImageryUrls": list(post_event_urls),
        "postEventPreviewUrls": [],
        "postEventMosaicCogImageryUrl": None,
        "postEventProcessedImageryUrl": None,
        "processedImageryUrls": None,
        "rawImageryUrls": None,
        "previewSourceImageryUrls": None,
        "preprocessJob": None,
        "imageryPath": None,
        "userId": user_id,
        "status": None,
        "statusMessage": "",
        "currentStep": 0,
        "totalSteps": 0,
        "progressPct": 0.0,
        "creationDate": now(),
        "modelCount": 0,
        "labelProjectCount": 0,
        "autoFineTune": False,
        "models": None,
        "normalizationMeans": [],
        "normalizationStds": [],
        "labelProject": None,
        "labelsUrl": None,
        "buildingFootprintsUrl": None,
        "userBuildingFootprintsUrl": user_building_footprints_url,
        "clipBbox": list(clip_bbox) if clip_bbox is not None else None,
        "validAreaMaskUrl": None,
        "dependsOn": ["Project", "projectId"],
    }


def new_model(
    project_id: str,
    image_layer_id: str,
    *,
    name: str,
    user_id: str,
    labelproject_id: str | None,
    labels_count: int = 0,
    max_epochs: int = 3,
    learning_rate: str = "0.0001",
    batch_size: int = 32,
    initial_weights_url: str = "",
    auto_run_inference: bool = True,
    model_id: str | None = None,
) -> Record:
    """A model to train; HASTE keeps its numbers as text."""
    return {
        "modelId": model_id or f"{random.randrange(10_000):04}",
        "projectId": project_id,
        "imageLayerId": image_layer_id,
        "labelprojectId": labelproject_id,
        "name": name,
        "labelsCount": labels_count,
        "baseModel": None,
        "baseModelWeightsUrl": None,
        "initialWeightsUrl": initial_weights_url,
        "outputModelWeightsUrl": None,
        "learningRate": learning_rate,
        "batchSize": str(batch_size),
        "maxEpochs": str(max_epochs),
        "userId": user_id,
        "creationDate": now(),
        "trainDate": None,
        "status": None,
        "currentStep": 0,
        "progressPct": 0.0,
        "totalSteps": 0,
        "statusMessage": "",
        "autoRunInference": auto_run_inference,
        "checkpointPath": None,
        "trainingOutputPath": None,
        "inferenceOutputPath": None,
        "trainingJob": None,
        "inferenceJobs": [],
        "inferenceStatus": None,
        "inferenceCurrentStep": 0,
        "inferenceProgressPct": 0.0,
        "inferenceTotalSteps": 0,
        "inferenceUid": None,
        "currentInferenceTaskId": None,
        "inferenceStatusMessage": "",
        "predictedDamageLayerUrl": None,
        "gpkgUrl": None,
        "labelsUrl": None,
        "modelType": "trained",
        "embeddingModel": None,
        "resizeFactor": None,
        "numFeatures": None,
        "embeddingJob": None,
        "embeddingsGeoJSONUrl": None,
        "pmtilesUrl": None,
        "featuresSidecarUrl": None,
        "dependsOn": ["ImageLayer", "imageLayerId"],
    }


def new_label(number: int, class_name: str, ring: Sequence[tuple[float, float]]) -> Record:
    """A polygon drawn by the user; ``ring`` is closed, longitude and latitude in degrees."""
    return {
        "type": "Feature",
        "properties": {
            "azureMapsShapeId": f"shape-{number}",
            "primaryClass": class_name,
            "source": "Drawn",
            "subType": None,
            "radius": None,
        },
        "id": f"label-{number}",
        "geometry": {"type": "Polygon", "coordinates": [[list(point) for point in ring]]},
    }


def new_stats(project_id: str, **fields: Any) -> Record:
    """An ``add`` message for HASTE's dashboard numbers."""
    empty: Record = {
        "action": "add",
        "projectId": project_id,
        "name": None,
        "description": None,
        "creationDate": None,
        "imageLayerStats": None,
        "modelIds": [],
        "affectedCountries": [],
    }
    return empty | fields
