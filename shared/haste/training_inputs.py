"""What a training needs: imagery, classes, labels, hyper-parameters and perhaps base weights."""

from __future__ import annotations

from dataclasses import dataclass

from shared.batch.task_spec import ResourceFile
from shared.errors import NotThere, Refused
from shared.haste import labels, paths, records, task_spec, usable_labels
from shared.haste.experiment_config import HyperParameters, hyper_parameters
from shared.haste.layer_imagery import LayerImagery, layer_imagery, layer_of_model
from shared.haste.workload import Blobs, JsonObject
from shared.kinds import Entity


@dataclass(frozen=True)
class TrainingInputs:
    """Checked inputs of one training."""

    imagery: LayerImagery
    classes: list[str]
    label_project: JsonObject
    parameters: HyperParameters
    weights: ResourceFile | None


def training_inputs(blobs: Blobs, entity: Entity) -> TrainingInputs:
    """Gather all inputs from HASTE's records. Raises NotThere without a model, Refused for everything else."""
    name = paths.model_record(entity.project_id, entity.entity_id)
    model = records.read(blobs, name)
    if model is None:
        raise NotThere(name)
    if records.text(model, "modelType") == "embedding":
        raise Refused("This is an embedding model; it cannot be trained.")
    parameters = hyper_parameters(model)
    layer = layer_of_model(blobs, entity.project_id, model)
    imagery = layer_imagery(blobs, entity.project_id, layer)
    classes = _classes(blobs, entity.project_id)
    return TrainingInputs(
        imagery=imagery,
        classes=classes,
        label_project=_label_project(blobs, entity.project_id, model, classes),
        parameters=parameters,
        weights=_weights(blobs, model),
    )


def _classes(blobs: Blobs, project_id: str) -> list[str]:
    project = records.read(blobs, paths.project_record(project_id))
    if project is None:
        raise Refused("The project of this model does not exist any more.")
    names = [records.text(item, "name") for item in records.children(project, "primaryClasses")]
    if not names or "" in names:
        raise Refused("The project has no classes (primaryClasses), or one without a name: training needs them.")
    return names


def _label_project(blobs: Blobs, project_id: str, model: JsonObject, classes: list[str]) -> JsonObject:
    layer_id, named = records.text(model, "imageLayerId"), records.text(model, "labelprojectId")
    label_project = labels.find_label_project(blobs, project_id, layer_id, named)
    if label_project is None:
        raise Refused("The image layer has no label project. Create the layer again, then label it.")
    if not records.children(label_project, "labels"):
        raise Refused("The image layer has no labels yet: training needs at least one.")
    fault = usable_labels.fault(label_project, classes)
    if fault is not None:
        raise Refused(fault)
    return label_project


def _weights(blobs: Blobs, model: JsonObject) -> ResourceFile | None:
    path = model.get("initialWeightsUrl")
    if path is None or path == "":
        return None
    what = "The base weights file (initialWeightsUrl)"
    return task_spec.stored_file(blobs, str(path), f"inputs/{str(path).rpartition('/')[2]}", what)
