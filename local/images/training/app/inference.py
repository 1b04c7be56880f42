"""Predicts a class for every pixel of the mosaic."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from local.images.rasters import Raster, write_cog
from local.images.training.app.experiment_config import ExperimentConfig
from local.images.training.app.pixel_model import PixelModel, normalized


def predict(config: ExperimentConfig, imagery: Raster, path: Path) -> NDArray[np.uint8]:
    """Write the mask values (0 outside the imagery) to ``path`` and return them as (rows, columns)."""
    model = PixelModel(len(imagery.pixels), len(config.classes))
    model.load(config.checkpoint_path, strict=True)
    predictions = np.zeros(imagery.valid.shape, dtype=np.uint8)
    predictions[imagery.valid] = model.predict(normalized(imagery.pixels[:, imagery.valid], config.means, config.stds))
    write_cog(path, predictions[np.newaxis], imagery.transform, imagery.crs, nodata=0)
    return predictions
