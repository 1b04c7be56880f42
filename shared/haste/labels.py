"""Label projects: finding the one of an image layer, and its labels as the GeoJSON that HASTE exports and trains on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.errors import Refused
from shared.haste import paths, records
from shared.haste.ids import is_guid
from shared.haste.workload import Blobs, JsonObject
from shared.kinds import Entity


def find_label_project(blobs: Blobs, project_id: str, layer_id: str, named: str = "") -> JsonObject | None:
    """The label project of a layer; None if there is none.

    It is the one that the record at hand names, if that is one of this layer, found by one read. Otherwise it is the
    first by name, as HASTE's API finds it.
    """
    for name in _names(blobs, project_id, named):
        try:
            label_project = records.read(blobs, name)
        except Refused:  # a broken one belongs to nobody
            continue
        if label_project is not None and label_project.get("imageLayerId") == layer_id:
            return label_project
    return None


def _names(blobs: Blobs, project_id: str, named: str) -> Iterator[str]:
    if is_guid(named):
        yield paths.label_project_record(project_id, named)
    yield from blobs.names(paths.label_project_prefix(project_id))


def geojson(label_project: JsonObject) -> JsonObject:
    """All labels as a FeatureCollection. Label ids are left out, and the class is called `class`."""
    return {
        "type": "FeatureCollection",
        "name": label_project.get("name"),
        "features": [_feature(label) for label in records.children(label_project, "labels")],
    }


def file_name(model: Entity) -> str:
    """Name of the file with the labels that a model is trained on."""
    return f"train_labels_{model.entity_id}.geojson"


def blob_for_haste(model: Entity) -> str:
    """Where HASTE keeps that file. Its deletion of a model stops if it is not there, and leaves the rest."""
    return paths.shared_input(model.project_id, file_name(model))


def copy_for_haste(blobs: Blobs, model: Entity, own_copy: str) -> None:
    """Put the labels that a task has had for itself there. If it had none, HASTE's own app has written these."""
    content = blobs.read(own_copy)
    if content is not None:
        blobs.write(blob_for_haste(model), content)


def _feature(label: JsonObject) -> JsonObject:
    properties = records.child(label, "properties") or {}
    return {
        "type": "Feature",
        "geometry": label.get("geometry"),
        "properties": {
            "azureMapsShapeId": properties.get("azureMapsShapeId"),
            "class": class_of(label),
            "source": properties.get("source"),
            "subType": properties.get("subType"),
            "radius": properties.get("radius"),
        },
    }


def class_of(label: JsonObject) -> Any:
    """Stored records say `primaryClass`, bodies of the labelling tool `class`."""
    properties = records.child(label, "properties") or {}
    name = properties.get("class")
    return properties.get("primaryClass") if name is None else name
