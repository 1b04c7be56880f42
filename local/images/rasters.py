"""GeoTIFF helpers of both images: mosaics in memory and Cloud Optimized GeoTIFFs on disk."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.merge import merge
from rasterio.transform import Affine, array_bounds
from rasterio.vrt import WarpedVRT
from rasterio.warp import transform_bounds

from local.images.scenery import Bounds

COG_OPTIONS: Mapping[str, str] = {"compress": "deflate", "blocksize": "256"}


@dataclass(frozen=True)
class Raster:
    """Pixels (bands, rows, columns), where they are, and which of them are valid."""

    pixels: NDArray[Any]
    valid: NDArray[np.bool_]
    transform: Affine
    crs: CRS

    @property
    def bounds(self) -> Bounds:
        """Left, bottom, right, top in CRS units."""
        _, height, width = self.pixels.shape
        left, bottom, right, top = array_bounds(height, width, self.transform)
        return left, bottom, right, top


def mosaic(paths: Sequence[Path], clip_bbox: Sequence[float] | None = None) -> Raster:
    """Merge the files into one raster in the CRS of the first; later files fill the gaps of earlier ones.

    ``clip_bbox`` is west, south, east, north in EPSG:4326. Raises rasterio's errors for unreadable files and
    ValueError if the first has no CRS or the clip area misses the imagery.
    """
    with ExitStack() as stack:
        first = stack.enter_context(rasterio.open(paths[0]))
        if first.crs is None:
            raise ValueError(f"{paths[0].name} has no coordinate reference system")
        sources = [first]
        for path in paths[1:]:
            source = stack.enter_context(rasterio.open(path))
            sources.append(source if source.crs == first.crs else stack.enter_context(WarpedVRT(source, crs=first.crs)))
        bounds = None
        if clip_bbox is not None:
            covered = [min(s.bounds.left for s in sources), min(s.bounds.bottom for s in sources)]
            covered += [max(s.bounds.right for s in sources), max(s.bounds.top for s in sources)]
            bounds = _intersection(transform_bounds("EPSG:4326", first.crs, *clip_bbox), covered)
        pixels, transform = merge(sources, bounds=bounds, masked=True)
        valid = np.asarray(~np.ma.getmaskarray(pixels).all(axis=0), dtype=np.bool_)
        return Raster(pixels.filled(0), valid, transform, first.crs)


def _intersection(wanted: Sequence[float], covered: Sequence[float]) -> Bounds:
    left, bottom = max(wanted[0], covered[0]), max(wanted[1], covered[1])
    right, top = min(wanted[2], covered[2]), min(wanted[3], covered[3])
    if left >= right or bottom >= top:
        raise ValueError("the clip area does not touch the imagery")
    return left, bottom, right, top


def read(path: Path) -> Raster:
    """Read a whole file."""
    with rasterio.open(path) as source:
        return Raster(source.read(), source.dataset_mask() > 0, source.transform, source.crs)


def to_rgb(raster: Raster) -> NDArray[np.uint8]:
    """Three bands of 8 bit: the first three bands (the last repeated if there are fewer), other types stretched."""
    bands = raster.pixels[[min(band, raster.pixels.shape[0] - 1) for band in range(3)]]
    if bands.dtype == np.uint8:
        return np.asarray(bands, dtype=np.uint8)
    values = bands[:, raster.valid] if raster.valid.any() else bands.reshape(3, -1)
    low, high = np.percentile(values, [2, 98])
    scaled = (bands.astype(np.float64) - low) / max(high - low, 1e-9) * 254 + 1
    return np.where(raster.valid, np.clip(scaled, 1, 255), 0).astype(np.uint8)


def write_cog(
    path: Path,
    pixels: NDArray[Any],
    transform: Affine,
    crs: CRS,
    *,
    nodata: float | None = None,
    options: Mapping[str, str] = COG_OPTIONS,
) -> None:
    """Write pixels (bands, rows, columns) as a Cloud Optimized GeoTIFF."""
    bands, height, width = pixels.shape
    profile = {"width": width, "height": height, "count": bands, "dtype": pixels.dtype, "nodata": nodata}
    with rasterio.open(path, "w", driver="COG", transform=transform, crs=crs, **profile, **options) as target:
        target.write(pixels)
