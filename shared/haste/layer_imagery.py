"""What training and inference take from the image layer of a model."""

from __future__ import annotations

from dataclasses import dataclass

from shared.batch.task_spec import ResourceFile
from shared.errors import Refused
from shared.haste import paths, records
from shared.haste.ids import is_guid
from shared.haste.workload import Blobs, JsonObject


@dataclass(frozen=True)
class LayerImagery:
    """The processed post-event imagery of a layer, and its normalization values, one per band."""

    mosaic: ResourceFile
    processed: ResourceFile
    means: list[int | float]
    stds: list[int | float]

    @property
    def files(self) -> tuple[ResourceFile, ResourceFile]:
        """Both rasters, in HASTE's order."""
        return self.mosaic, self.processed


def layer_of_model(blobs: Blobs, project_id: str, model: JsonObject) -> JsonObject:
    """The record of the model's image layer. Raises Refused if there is none."""
    layer_id = records.text(model, "imageLayerId")
    if not is_guid(layer_id):
        raise Refused("The model names no valid image layer (imageLayerId).")
    layer = records.read(blobs, paths.layer_record(project_id, layer_id))
    if layer is None:
        raise Refused("The image layer of this model does not exist any more.")
    return layer


def layer_imagery(blobs: Blobs, project_id: str, layer: JsonObject) -> LayerImagery:
    """The imagery of a processed layer. Raises Refused if something is missing."""
    means = records.numbers(layer, "normalizationMeans")
    stds = records.numbers(layer, "normalizationStds")
    mosaic = layer_file(blobs, project_id, layer, "postEventMosaicCogImageryUrl")
    processed = layer_file(blobs, project_id, layer, "postEventProcessedImageryUrl")
    if not means or len(means) != len(stds):
        raise Refused(
            "The image layer has no normalization values (normalizationMeans, normalizationStds): "
            "it has not been processed. Create the layer again."
        )
    return LayerImagery(mosaic, processed, means, stds)


def layer_file(blobs: Blobs, project_id: str, layer: JsonObject, field: str) -> ResourceFile:
    """A file of the layer, to be laid below `inputs/` under its path in the project. Raises Refused."""
    url = records.text(layer, field)
    if not url:
        raise Refused(f"The image layer has no {field}: it has not been processed. Create the layer again.")
    folder = f"{paths.project_folder(project_id)}/"
    name = paths.blob_name(url, blobs)
    if name is None or not name.startswith(folder):
        raise Refused(f"The image layer's {field} does not point to a file of this project.")
    return ResourceFile(blobs.url(name), f"inputs/{name.removeprefix(folder)}")
