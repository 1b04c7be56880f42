"""Where HASTE keeps things: blob names below a project's partition."""

import hashlib


def partition(project_id: str) -> str:
    """First part of all blob names of a project: SHA-256 of the project id in lower-case hex."""
    return hashlib.sha256(project_id.encode()).hexdigest()


def project_blob(project_id: str) -> str:
    return f"{partition(project_id)}/project_{project_id}.json"


def layer_blob(project_id: str, image_layer_id: str) -> str:
    return f"{partition(project_id)}/imagelayer_{image_layer_id}.json"


def label_project_blob(project_id: str, labelproject_id: str) -> str:
    return f"{partition(project_id)}/labels_{labelproject_id}.json"


def model_prefix(project_id: str) -> str:
    return f"{partition(project_id)}/model_"


def model_blob(project_id: str, model_id: str) -> str:
    return f"{model_prefix(project_id)}{model_id}.json"


def model_artifact_blobs(project_id: str, model_id: str) -> tuple[str, str, str]:
    """Config, labels and zips of a model, in the order in which HASTE deletes them."""
    folder = partition(project_id)
    config, labels = f"experiment_config_{model_id}.yaml", f"train_labels_{model_id}.geojson"
    return f"{folder}/{config}", f"{folder}/{labels}", f"{folder}/artifacts_model_{model_id}.json"


def uploaded_imagery_blob(project_id: str, file_id: str, extension: str = "tif") -> str:
    return f"{partition(project_id)}/raw_imagery_{project_id}_uploaded_{file_id}.{extension}"
