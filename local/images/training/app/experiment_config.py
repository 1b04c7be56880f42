"""The experiment config: JSON text in a .yaml file, checked for presence and type before any work starts."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# YAML 1.1 takes a number with an exponent as a float only if it has a decimal point and a signed exponent.
_YAML_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?")

_TEXT, _INT, _FLOAT, _BOOL, _LIST = (str,), (int,), (float,), (bool,), (list,)
_REQUIRED: dict[str, tuple[type, ...]] = {
    "experiment_name": _TEXT,
    "experiment_dir": _TEXT,
    "imagery.raw_fn": _TEXT,
    "imagery.num_channels": _INT,
    "imagery.normalization_means": _LIST,
    "imagery.normalization_stds": _LIST,
    "labels.fn": _TEXT,
    "labels.classes": _LIST,
    "labels.buffer_in_meters": (int, float),
    "labels.class_to_buffer": _TEXT,
    "labels.class_to_buffer_by": _TEXT,
    "training.learning_rate": _FLOAT,
    "training.max_epochs": _INT,
    "training.batch_size": _INT,
    "training.gpu_id": _INT,
    "training.log_dir": _TEXT,
    "training.checkpoint_subdir": _TEXT,
    "training.use_constraint_loss": _BOOL,
    "training.initial_weights_fn": (str, type(None)),
    "inference.output_subdir": _TEXT,
    "inference.batch_size": _INT,
    "inference.gpu_id": _INT,
    "inference.checkpoint_fn": _TEXT,
}
_REQUIRED_FOR_INFERENCE: dict[str, tuple[type, ...]] = {
    "inference.padding": _INT,
    "inference.patch_size": _INT,
    "inference.predictions_gpkg_fileprefix": _TEXT,
}


class ConfigError(ValueError):
    """The experiment config lacks a key or holds a value of the wrong type."""


@dataclass(frozen=True)
class ExperimentConfig:
    """What the two steps use of the config; paths are absolute, ``classes`` in the order of mask values 1, 2, ..."""

    experiment_dir: Path
    experiment_name: str
    mosaic_path: Path
    means: tuple[float, ...]
    stds: tuple[float, ...]
    labels_path: Path
    classes: tuple[str, ...]
    buffer_metres: float
    class_to_buffer: str
    class_to_buffer_by: str
    learning_rate: float
    max_epochs: int
    log_dir: Path
    checkpoint_dir: Path
    initial_weights_path: Path | None
    checkpoint_path: Path
    inference_dir: Path
    gpkg_prefix: str | None


def load(path: Path, step: str) -> ExperimentConfig:
    """Read and check the config for ``step`` ("training" or "inference"); raises ConfigError naming the key."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"), parse_float=_yaml_float)
    except ValueError as error:
        raise ConfigError(f"{path.name} is not JSON text: {error}") from error
    required = _REQUIRED | (_REQUIRED_FOR_INFERENCE if step == "inference" else {})
    for key, types in required.items():
        _check(values, key, types)
    imagery, labels, training, inference = (values[key] for key in ("imagery", "labels", "training", "inference"))
    channels = imagery["num_channels"]
    if not len(imagery["normalization_means"]) == len(imagery["normalization_stds"]) == channels:
        raise ConfigError("imagery.normalization_means and normalization_stds need one value per channel")
    if step == "inference" and (inference["patch_size"] < 1 or inference["patch_size"] & (inference["patch_size"] - 1)):
        raise ConfigError("inference.patch_size must be a power of 2")
    directory = Path(values["experiment_dir"])
    weights = training["initial_weights_fn"]
    return ExperimentConfig(
        experiment_dir=directory,
        experiment_name=values["experiment_name"],
        mosaic_path=Path(imagery["raw_fn"]),
        means=tuple(imagery["normalization_means"]),
        stds=tuple(imagery["normalization_stds"]),
        labels_path=Path(labels["fn"]),
        classes=tuple(labels["classes"]),
        buffer_metres=float(labels["buffer_in_meters"]),
        class_to_buffer=labels["class_to_buffer"],
        class_to_buffer_by=labels["class_to_buffer_by"],
        learning_rate=training["learning_rate"],
        max_epochs=training["max_epochs"],
        log_dir=Path(training["log_dir"]),
        checkpoint_dir=directory / training["checkpoint_subdir"],
        initial_weights_path=Path(weights) if weights is not None else None,
        checkpoint_path=Path(inference["checkpoint_fn"]),
        inference_dir=directory / inference["output_subdir"],
        gpkg_prefix=inference.get("predictions_gpkg_fileprefix"),
    )


def _yaml_float(text: str) -> float | str:
    return float(text) if _YAML_FLOAT.fullmatch(text) else text


def _check(values: Any, key: str, types: tuple[type, ...]) -> None:
    value = values
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            raise ConfigError(f"{key} is missing")
        value = value[part]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
        raise ConfigError(f"{key} must be {names}, not {type(value).__name__}")
