"""What an inference needs: imagery, footprints, the checkpoint and the config of the training."""

from __future__ import annotations

from dataclasses import dataclass

from shared.batch.task_spec import ResourceFile
from shared.errors import NotThere, NotYet, Refused
from shared.haste import paths, records, task_spec
from shared.haste.layer_imagery import LayerImagery, layer_file, layer_imagery, layer_of_model
from shared.haste.status_fields import IN_PROGRESS, PROCESSED, QUEUED
from shared.haste.workload import Blobs, JsonObject
from shared.kinds import Entity

_FOOTPRINTS_PATH = "inputs/building_footprints.gpkg"
_CHECKPOINT_PATH = "inputs/checkpoint/last.ckpt"


@dataclass(frozen=True)
class InferenceInputs:
    """Checked inputs of one inference. `trained` is the config of the training."""

    model_name: str
    imagery: LayerImagery
    footprints: ResourceFile
    checkpoint: ResourceFile
    trained: JsonObject


def config_file_name(entity: Entity) -> str:
    """Training and inference of a model share the name of their config."""
    return f"experiment_config_{entity.entity_id}.yaml"


def inference_inputs(blobs: Blobs, entity: Entity) -> InferenceInputs:
    """Gather all inputs from HASTE's records. Raises NotThere without a model, NotYet, Refused."""
    name = paths.model_record(entity.project_id, entity.entity_id)
    model = records.read(blobs, name)
    if model is None:
        raise NotThere(name)
    if model.get("status") in (QUEUED, IN_PROGRESS):
        raise NotYet("The model is being trained: inference waits for the end of that.")
    if model.get("status") != PROCESSED:
        raise Refused("The model is not trained: inference needs a training that has completed successfully.")
    layer = layer_of_model(blobs, entity.project_id, model)
    return InferenceInputs(
        model_name=records.text(model, "name"),
        imagery=layer_imagery(blobs, entity.project_id, layer),
        footprints=_footprints(blobs, entity.project_id, layer),
        checkpoint=_checkpoint(blobs, model),
        trained=_trained_config(blobs, entity),
    )


def _footprints(blobs: Blobs, project_id: str, layer: JsonObject) -> ResourceFile:
    field = "buildingFootprintsUrl"
    if not records.text(layer, field):
        raise Refused(f"The image layer has no building footprints ({field}). Create the layer again.")
    return ResourceFile(layer_file(blobs, project_id, layer, field).url, _FOOTPRINTS_PATH)


def _checkpoint(blobs: Blobs, model: JsonObject) -> ResourceFile:
    path = records.text(model, "checkpointPath")
    if not path:
        raise Refused("The model has no checkpoint (checkpointPath). Train it again.")
    what = "The model's checkpoint (checkpointPath)"
    return task_spec.stored_file(blobs, f"{path}/last.ckpt", _CHECKPOINT_PATH, what)


def _trained_config(blobs: Blobs, entity: Entity) -> JsonObject:
    trained = records.read(blobs, paths.shared_input(entity.project_id, config_file_name(entity)))
    if trained is None:
        raise Refused("The configuration of the training does not exist any more. Train the model again.")
    return trained
