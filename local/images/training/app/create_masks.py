"""Burns the user's labels into a mask of the mosaic's pixels."""

import json

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.features import rasterize
from rasterio.warp import transform_geom

from local.images.rasters import Raster
from local.images.scenery import METRES_PER_DEGREE
from local.images.training.app.experiment_config import ExperimentConfig

_AREA_TYPES = ("Polygon", "MultiPolygon")


class LabelError(ValueError):
    """The labels cannot be used with this imagery or these classes."""


def create_mask(config: ExperimentConfig, imagery: Raster) -> NDArray[np.uint8]:
    """Write ``masks/<labels>_mask.tif`` and return it: 0 unlabelled, else 1 + the place of the class in the config.

    Unlabelled pixels around the class to buffer take the class to buffer by. Raises LabelError for unknown classes
    and if no label lies on the imagery.
    """
    collection = json.loads(config.labels_path.read_text(encoding="utf-8"))
    values = {name: index for index, name in enumerate(config.classes, start=1)}
    burned = []
    for feature in collection["features"]:
        name = feature["properties"]["class"]
        if name not in values:
            raise LabelError(f"label class {name!r} is not one of the project's classes")
        if feature["geometry"]["type"] in _AREA_TYPES:
            burned.append((transform_geom("EPSG:4326", imagery.crs, feature["geometry"]), values[name]))
    shape = imagery.pixels.shape[1:]
    mask = (
        rasterize(burned, out_shape=shape, transform=imagery.transform, dtype="uint8")
        if burned
        else np.zeros(shape, dtype=np.uint8)
    )
    mask[~imagery.valid] = 0
    if not mask.any():
        raise LabelError("no label lies on the imagery")
    if config.class_to_buffer in values and config.class_to_buffer_by in values:
        ring = _grown(mask == values[config.class_to_buffer], _buffer_pixels(config, imagery))
        mask[ring & (mask == 0) & imagery.valid] = values[config.class_to_buffer_by]
    _write(config, imagery, mask)
    return mask


def _buffer_pixels(config: ExperimentConfig, imagery: Raster) -> int:
    units = config.buffer_metres / (METRES_PER_DEGREE if imagery.crs.is_geographic else 1.0)
    pixel_units: float = imagery.transform.a
    return max(1, round(units / pixel_units))


def _grown(mask: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    for _ in range(pixels):
        wider = mask.copy()
        wider[1:] |= mask[:-1]
        wider[:-1] |= mask[1:]
        wider[:, 1:] |= mask[:, :-1]
        wider[:, :-1] |= mask[:, 1:]
        mask = wider
    return mask


def _write(config: ExperimentConfig, imagery: Raster, mask: NDArray[np.uint8]) -> None:
    height, width = mask.shape
    path = config.experiment_dir / "masks" / f"{config.labels_path.stem}_mask.tif"
    path.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(
        path, "w", driver="GTiff", width=width, height=height, count=1, dtype="uint8", nodata=0, compress="deflate",
        crs=imagery.crs, transform=imagery.transform,
    ) as target:  # fmt: skip
        target.write(mask, 1)
