"""The stand-in for HASTE's U-Net: softmax regression on the normalized channels of single pixels."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class CheckpointError(ValueError):
    """The file is not a checkpoint of this model."""


class PixelModel:
    """Scores each class for a pixel; class ``i`` stands for mask value ``i + 1``."""

    def __init__(self, channels: int, classes: int) -> None:
        self.weight: Floats = np.zeros((channels, classes))
        self.bias: Floats = np.zeros(classes)

    def fit_once(self, pixels: Floats, targets: NDArray[np.intp], rate: float) -> tuple[float, float]:
        """One gradient step on pixels (n, channels); returns loss and macro-averaged accuracy before the step."""
        probabilities = self._probabilities(pixels)
        true_class = (np.arange(len(targets)), targets)
        loss = float(-np.log(np.clip(probabilities[true_class], 1e-12, None)).mean())
        right = probabilities.argmax(axis=1) == targets
        accuracy = float(np.mean([right[targets == value].mean() for value in np.unique(targets)]))
        error = probabilities
        error[true_class] -= 1
        self.weight -= rate * pixels.T @ error / len(targets)
        self.bias -= rate * error.mean(axis=0)
        return loss, accuracy

    def predict(self, pixels: Floats) -> NDArray[np.uint8]:
        """Mask value (1, 2, ...) of each pixel (n, channels)."""
        scores = pixels @ self.weight + self.bias
        return np.asarray(scores.argmax(axis=1) + 1, dtype=np.uint8)

    def _probabilities(self, pixels: Floats) -> Floats:
        scores = pixels @ self.weight + self.bias
        scores -= scores.max(axis=1, keepdims=True)
        exponentials: Floats = np.exp(scores)
        exponentials /= exponentials.sum(axis=1, keepdims=True)
        return exponentials

    def save(self, path: Path) -> None:
        """Write a checkpoint; a reader sees the old file or the whole new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        with partial.open("wb") as file:
            np.savez(file, weight=self.weight, bias=self.bias)
        partial.replace(path)

    def load(self, path: Path, *, strict: bool) -> None:
        """Take the layers of a checkpoint; unless ``strict``, those of another shape keep their present values.

        Raises CheckpointError if the file is no checkpoint, or ``strict`` and a layer does not fit.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                layers = {name: stored[name] for name in ("weight", "bias")}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path.name} is not a checkpoint of this model") from error
        for name, present in (("weight", self.weight), ("bias", self.bias)):
            if layers[name].shape == present.shape:
                present[...] = layers[name]
            elif strict:
                raise CheckpointError(f"{path.name} was trained for other channels or classes")


def normalized(pixels: NDArray[np.generic], means: tuple[float, ...], stds: tuple[float, ...]) -> Floats:
    """Turn pixels (channels, n) into model input (n, channels)."""
    return np.asarray((pixels.T.astype(np.float64) - means) / stds, dtype=np.float64)
