"""The experiment config of HASTE's training image: JSON text that a YAML parser reads.

Its paths hold the literal word AZ_BATCH_TASK_WORKING_DIR (no dollar sign), which the container replaces.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from shared.errors import Refused
from shared.haste import records
from shared.haste.layer_imagery import LayerImagery
from shared.haste.redaction import safe_text
from shared.haste.workload import JsonObject

_DIRECTORY = "AZ_BATCH_TASK_WORKING_DIR"
_NAME_CHARACTERS = 120
#: Of epochs, or of images in a batch: no training comes near it, and every reader of the config can hold it.
_MOST_WHOLE_NUMBER = 10**9


@dataclass(frozen=True)
class HyperParameters:
    """What the user may set for a training."""

    batch_size: int
    learning_rate: float
    max_epochs: int


def hyper_parameters(model: JsonObject) -> HyperParameters:
    """From the model's text fields, with HASTE's fallbacks for empty ones. Raises Refused if one makes no sense."""
    return HyperParameters(
        batch_size=whole_number(model, "batchSize", fallback=1),
        learning_rate=_positive(model, "learningRate", fallback=0.0001),
        max_epochs=whole_number(model, "maxEpochs", fallback=1),
    )


def whole_number(model: JsonObject, field: str, fallback: int) -> int:
    """One of the model's text fields as a whole number above 0, within reason. Raises Refused if it makes no sense."""
    value = _positive(model, field, fallback)
    if value != int(value):
        raise _nonsense(model, field, "a whole number")
    if value > _MOST_WHOLE_NUMBER:
        raise _nonsense(model, field, f"{_MOST_WHOLE_NUMBER} at most")
    return int(value)


def training_config(
    model_id: str,
    imagery: LayerImagery,
    classes: list[str],
    parameters: HyperParameters,
    labels_path: str,
    weights_path: str | None,
) -> JsonObject:
    """Config of a training. Paths are those in the task's working directory."""
    return {
        "experiment_dir": _DIRECTORY,
        "experiment_name": f"model_{model_id}",
        "imagery": {
            "normalization_means": imagery.means,
            "normalization_stds": imagery.stds,
            "num_channels": len(imagery.means),
            "raw_fn": f"{_DIRECTORY}/{imagery.mosaic.file_path}",
            "rgb_fn": f"{_DIRECTORY}/{imagery.processed.file_path}",
        },
        # the container checks that these exist already when it trains
        "inference": {
            "output_subdir": "",
            "batch_size": 1,
            "gpu_id": 0,
            "checkpoint_fn": "",
            "padding": None,
            "patch_size": None,
            "building_footprints_source": None,
            "country_alpha2_iso_code": None,
            "predictions_gpkg_fileprefix": None,
        },
        "labels": {
            "buffer_in_meters": 3,
            "class_to_buffer": "Building",
            "class_to_buffer_by": "Background",
            "classes": classes,
            "fn": f"{_DIRECTORY}/{labels_path}",
        },
        "training": {
            "batch_size": parameters.batch_size,
            "checkpoint_subdir": "checkpoint",
            "gpu_id": 0,
            "learning_rate": parameters.learning_rate,
            "log_dir": f"{_DIRECTORY}/logs",
            "max_epochs": parameters.max_epochs,
            "use_constraint_loss": False,
            "initial_weights_fn": f"{_DIRECTORY}/{weights_path}" if weights_path else None,
        },
    }


def inference_config(trained: JsonObject, checkpoint_path: str, gpkg_prefix: str) -> JsonObject:
    """The stored config of the training with the part for inference filled in."""
    inference = {
        "output_subdir": "inference",
        "batch_size": 1,
        "gpu_id": 0,
        "checkpoint_fn": f"{_DIRECTORY}/{checkpoint_path}",
        "padding": 64,
        "patch_size": 256,  # must be a power of 2
        "building_footprints_source": "microsoft",  # this and the next are checked for, not used
        "country_alpha2_iso_code": "US",
        "predictions_gpkg_fileprefix": gpkg_prefix,
    }
    return {**trained, "inference": inference}


def gpkg_prefix(model_name: str) -> str:
    """Name, without `.gpkg`, of the predictions file. HASTE's own for all names that need no escaping in a URL."""
    slug = re.sub(r"[^A-Za-z0-9._~-]", "-", model_name)[:_NAME_CHARACTERS]
    return f"predicted_damage_{slug}"


def dump(config: JsonObject) -> bytes:
    """JSON text that YAML 1.1 reads alike: `1e-05` would be a string there, `1.0e-05` is a number."""
    return _text(config).encode()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    if isinstance(value, float):
        digits, exponent, power = repr(value).partition("e")
        return digits + (".0" if exponent and "." not in digits else "") + exponent + power
    return json.dumps(value)


def _positive(model: JsonObject, field: str, fallback: float) -> float:
    value = model.get(field)
    if value is None or value == "":
        return fallback
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise _nonsense(model, field, "a number above 0")
    return number


def _nonsense(model: JsonObject, field: str, rule: str) -> Refused:
    value = model[field]
    shown = safe_text(str(value), 40) if isinstance(value, (str, int, float)) else records.json_type(value)
    return Refused(f"The model's {field} is {shown}; it must be {rule}.")
