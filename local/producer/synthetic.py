"""A small made-up valley: GeoTIFFs from before and after an event, and the labels a user would draw on them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.io import MemoryFile
from rasterio.transform import array_bounds, from_origin
from rasterio.warp import transform

from local.images.scenery import Bounds, Building, Ring, buildings_within, square_ring
from local.producer.records import Record, new_label

EPSG = 32610
SIZE_PIXELS = 512
PIXEL_METRES = 1.0
LEFT, TOP = 689_100.0, 5_230_680.0  # the middle lies near longitude -120.5, latitude 47.2

_GROUND, _ROOF, _RUBBLE = (88, 122, 74), (205, 198, 186), (118, 74, 52)
_NOISE = 8
_LABELS_PER_CLASS = 4


def imagery(*, after_event: bool) -> bytes:
    """A GeoTIFF of 512 x 512 pixels, three bands of 8 bit; the same bytes on every call."""
    noise = np.random.default_rng(7 if after_event else 5)
    pixels = np.empty((3, SIZE_PIXELS, SIZE_PIXELS), dtype=np.int16)
    pixels[:] = np.reshape(_GROUND, (3, 1, 1))
    for building in _buildings():
        rows, columns = _window(building.bounds)
        color = _RUBBLE if after_event and building.is_damaged else _ROOF
        pixels[:, rows, columns] = np.reshape(color, (3, 1, 1))
    pixels += noise.integers(-_NOISE, _NOISE, pixels.shape, endpoint=True, dtype=np.int16)
    return _geotiff(pixels.clip(1, 255).astype(np.uint8))


def bounds() -> Bounds:
    """Left, bottom, right, top of the imagery in metres of EPSG:32610."""
    left, bottom, right, top = array_bounds(
        SIZE_PIXELS, SIZE_PIXELS, from_origin(LEFT, TOP, PIXEL_METRES, PIXEL_METRES)
    )
    return left, bottom, right, top


def labels() -> list[Record]:
    """Drawn labels in EPSG:4326: intact and damaged houses, and open ground between them."""
    houses = _buildings()
    intact = [house.ring for house in houses if not house.is_damaged][:_LABELS_PER_CLASS]
    damaged = [house.ring for house in houses if house.is_damaged][:_LABELS_PER_CLASS]
    ground = [_beside(house) for house in houses][:_LABELS_PER_CLASS]
    drawn = [("Building", ring) for ring in intact]
    drawn += [("Damaged Building", ring) for ring in damaged]
    drawn += [("Background", ring) for ring in ground]
    return [new_label(number, name, _to_wgs84(ring)) for number, (name, ring) in enumerate(drawn)]


def _buildings() -> list[Building]:
    return buildings_within(bounds(), is_geographic=False)


def _beside(house: Building) -> Ring:
    """Open ground to the east of a house."""
    _, bottom, right, top = house.bounds
    return square_ring((right + 10, bottom, right + 25, top))


def _window(area: Bounds) -> tuple[slice, slice]:
    left, bottom, right, top = area
    return (
        slice(round((TOP - top) / PIXEL_METRES), round((TOP - bottom) / PIXEL_METRES)),
        slice(round((left - LEFT) / PIXEL_METRES), round((right - LEFT) / PIXEL_METRES)),
    )


def _to_wgs84(ring: Ring) -> list[tuple[float, float]]:
    xs, ys = transform(f"EPSG:{EPSG}", "EPSG:4326", [x for x, _ in ring], [y for _, y in ring])
    return list(zip(xs, ys, strict=True))


def _geotiff(pixels: NDArray[np.uint8]) -> bytes:
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "width": SIZE_PIXELS,
        "height": SIZE_PIXELS,
        "count": 3,
        "dtype": "uint8",
        "nodata": 0,
        "photometric": "RGB",
        "compress": "deflate",
        "crs": CRS.from_epsg(EPSG),
        "transform": from_origin(LEFT, TOP, PIXEL_METRES, PIXEL_METRES),
    }
    with MemoryFile() as file:
        with file.open(**profile) as target:
            target.write(pixels)
        return bytes(file.read())
