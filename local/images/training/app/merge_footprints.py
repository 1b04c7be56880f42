"""Says for every building footprint how much of it is predicted as damaged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.warp import transform_geom

from local.images.geopackage import Polygon, PolygonLayer, Value, write_polygons
from local.images.rasters import Raster

# HASTE fixes these places in a project's list of classes.
DAMAGED, UNKNOWN = 3, 4


def merge(
    footprints: PolygonLayer, imagery: Raster, predictions: NDArray[np.uint8], path: Path
) -> list[tuple[dict[str, Any], bool]]:
    """Write the buildings on the imagery with their damage to ``path``.

    Returns their geometries in the CRS of the imagery, each with whether it is damaged.
    """
    pairs = [
        (transform_geom(f"EPSG:{footprints.epsg}", imagery.crs, _geojson(polygon)), polygon)
        for polygons in footprints.features
        for polygon in polygons
    ]
    numbers = (
        rasterize(
            [(geometry, number) for number, (geometry, _) in enumerate(pairs, start=1)],
            out_shape=predictions.shape,
            transform=imagery.transform,
            dtype="uint32",
        )
        if pairs
        else np.zeros(predictions.shape, dtype=np.uint32)
    )
    numbers[predictions == 0] = 0
    count = len(pairs) + 1
    total = np.bincount(numbers.ravel(), minlength=count)
    damaged = np.bincount(numbers[predictions == DAMAGED], minlength=count)
    unknown = np.bincount(numbers[predictions == UNKNOWN], minlength=count)

    rows: list[tuple[Polygon, Sequence[Value]]] = []
    found: list[tuple[dict[str, Any], bool]] = []
    for number, (geometry, polygon) in enumerate(pairs, start=1):
        if total[number]:
            share = float(damaged[number] / total[number])
            rows.append((polygon, (number - 1, share, int(share > 0), float(unknown[number] / total[number]))))
            found.append((geometry, share > 0))
    columns = {"id": "INTEGER", "damage_pct_0m": "REAL", "damaged": "INTEGER", "unknown_pct": "REAL"}
    write_polygons(path, path.stem, footprints.epsg, columns, rows)
    return found


def _geojson(polygon: Polygon) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[list(point) for point in ring] for ring in polygon]}
