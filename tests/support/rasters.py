"""Small GeoTIFFs, made on the spot."""

from __future__ import annotations

import functools

import numpy
from rasterio.io import MemoryFile
from rasterio.transform import from_bounds

#: West, south, east, north of the label project in the samples.
SAMPLE_BOUNDS = (-120.512, 47.201, -120.488, 47.219)


@functools.cache
def geotiff(
    bounds: tuple[float, float, float, float] = SAMPLE_BOUNDS, crs: str | None = "EPSG:4326", pixels: int = 16
) -> bytes:
    """A tiled GeoTIFF of noise, so that it does not get small by compression."""
    rng = numpy.random.default_rng(0)
    with MemoryFile() as file:
        with file.open(
            driver="GTiff",
            width=pixels,
            height=pixels,
            count=3,
            dtype="uint8",
            crs=crs,
            transform=from_bounds(*bounds, pixels, pixels),
            tiled=True,
        ) as raster:
            raster.write(rng.integers(0, 255, (3, pixels, pixels), dtype="uint8"))
        content: bytes = file.read()
    return content
