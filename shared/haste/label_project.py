"""The label project that HASTE shows for every processed image layer."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from shared.haste import labels, paths, records
from shared.haste.log_text import timestamp
from shared.haste.raster import Position
from shared.haste.workload import Blobs, JsonObject

_NAMESPACE = uuid.UUID("0d2f9a63-6c1e-4a57-9f5b-3a7c1de84b90")


@dataclass(frozen=True)
class TileServer:
    """The TiTiler that serves the tiles: its public address, and the tile size in pixels."""

    url: str
    tile_size: int

    def tile_url(self, raster_url: str) -> str:
        """Template of the tile addresses of a raster; empty without a raster."""
        if not raster_url:
            return ""
        # every character is escaped: the raster's own query must not become part of this one
        source = quote(raster_url, safe="")
        return f"{self.url.rstrip('/')}/cog/tiles/WebMercatorQuad/{{z}}/{{x}}/{{y}}?scale=1&url={source}"


@dataclass(frozen=True)
class LabelledLayer:
    """What a label project says about its image layer. Raster URLs carry their SAS."""

    project_id: str
    layer_id: str
    name: str
    post_event_url: str
    pre_event_url: str
    outline: list[Position]


def ensure_label_project(
    blobs: Blobs, tiles: TileServer, layer: LabelledLayer, request_id: str, at: datetime
) -> tuple[str, str]:
    """Id of the layer's label project and URL of its export. Both are created unless they exist; repeatable.

    A second label project would hide the user's labels, so one that exists is used, and the id of a new one follows
    from the request.
    """
    label_project = labels.find_label_project(blobs, layer.project_id, layer.layer_id)
    if label_project is None:
        label_project = _new(tiles, layer, str(uuid.uuid5(_NAMESPACE, request_id)), at)
        name = paths.label_project_record(layer.project_id, label_project["labelprojectId"])
        blobs.create(name, records.dump(label_project))
    label_project_id = records.text(label_project, "labelprojectId")
    export = paths.labels_export(layer.project_id, label_project_id)
    blobs.create(export, records.dump(labels.geojson(label_project)))
    return label_project_id, blobs.reading_url(export)


def _new(tiles: TileServer, layer: LabelledLayer, label_project_id: str, at: datetime) -> JsonObject:
    longitudes, latitudes = zip(*layer.outline, strict=True)
    return {
        "projectId": layer.project_id,
        "labelprojectId": label_project_id,
        "imageLayerId": layer.layer_id,
        "name": layer.name,
        "creationDate": timestamp(at),
        "labels": [],
        "imagery": {
            "enabled": True,
            "type": "TileLayer",
            "tileSize": tiles.tile_size,
            "tileUrl": tiles.tile_url(layer.post_event_url),
            "preEventTileUrl": tiles.tile_url(layer.pre_event_url),
            "postEventTileUrl": tiles.tile_url(layer.post_event_url),
            "bounds": [-180, -85.5, 180, 85.5],
        },
        "features": [
            {
                "type": "Feature",
                "featureId": None,
                "geometry": {"type": "Polygon", "coordinates": [[list(corner) for corner in layer.outline]]},
                "bbox": [min(longitudes), min(latitudes), max(longitudes), max(latitudes)],
                "assignedCount": 0,
            }
        ],
        "dependsOn": ["ImageLayer", "imageLayerId"],
    }
