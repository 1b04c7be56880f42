"""Paints the buildings for HASTE's map: green for intact, red for damaged, transparent elsewhere."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import rasterio.shutil
from rasterio.features import rasterize

from local.images.rasters import COG_OPTIONS, Raster

_INTACT, _DAMAGED = 1, 2
_PALETTE = np.array([(0, 0, 0, 0), (34, 197, 94, 255), (239, 68, 68, 255)], dtype=np.uint8)


def paint(buildings: list[tuple[dict[str, Any], bool]], imagery: Raster, path: Path) -> None:
    """Write an RGBA GeoTIFF of the buildings on the grid of the imagery."""
    height, width = imagery.valid.shape
    shapes = [(geometry, _DAMAGED if damaged else _INTACT) for geometry, damaged in buildings]
    kinds = (
        rasterize(shapes, out_shape=(height, width), transform=imagery.transform, dtype="uint8")
        if shapes
        else np.zeros((height, width), dtype=np.uint8)
    )
    with rasterio.open(
        path, "w", driver="GTiff", width=width, height=height, count=4, dtype="uint8", photometric="RGB", alpha="yes",
        tiled=True, compress="deflate", crs=imagery.crs, transform=imagery.transform,
    ) as target:  # fmt: skip
        target.write(np.moveaxis(_PALETTE[kinds], -1, 0))


def convert_to_cog(source: Path, target: Path) -> None:
    """Copy ``source`` as a Cloud Optimized GeoTIFF with the creation options of GDAL_TRANSLATE_PARAMS, if set."""
    words = os.environ.get("GDAL_TRANSLATE_PARAMS", "").replace("-co", " ").split()
    options = dict(word.split("=", 1) for word in words if "=" in word)
    rasterio.shutil.copy(source, target, driver="COG", **(options or COG_OPTIONS))
