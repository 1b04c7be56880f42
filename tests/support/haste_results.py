"""What successful tasks leave in blob storage."""

from __future__ import annotations

import json

from tests.support import samples
from tests.support.memory_blobs import MemoryBlobs
from tests.support.rasters import geotiff

IMAGERY_OUTPUT = f"{samples.FOLDER}/{samples.IMAGERY_TASK}"
TRAINING_OUTPUT = f"{samples.FOLDER}/{samples.TRAINING_TASK}"
INFERENCE_OUTPUT = f"{samples.FOLDER}/{samples.INFERENCE_TASK}"

INFERENCE_CONFIG = f"{INFERENCE_OUTPUT}/inputs/experiment_config_{samples.MODEL_ID}.yaml"
MOSAIC = f"raw_imagery_post_event_mosaic_cog_{samples.PROJECT_ID}_{samples.LAYER_ID}"
GPKG = "predicted_damage_cedar-valley-unet-1"

EVENT_FILE = "logs/model_4821/version_0/events.out.tfevents.1786527300.examplenode.1.0"
EVENTS = samples.raw("task-files/events.out.tfevents.1786527300.examplenode.1.0")
IMAGERY_LOG = samples.raw("task-files/imagery_friendly.log")
INFERENCE_LOG = samples.raw("task-files/workflow_progress.inference.log")


def imagery_results(manifest: str = "imagery_manifest") -> MemoryBlobs:
    """The layer's record, in progress, and all files that a manifest names."""
    blobs = samples.project_blobs(layer="imagelayer.inprogress")
    content = samples.sample(f"task-files/{manifest}.json")
    for key, names in content.items():
        if "filename" in key:
            for name in [names] if isinstance(names, str) else names:
                blobs.content[f"{IMAGERY_OUTPUT}/{name}"] = geotiff() if name.endswith(".tif") else b"x"
    blobs.content[f"{IMAGERY_OUTPUT}/imagery_manifest.json"] = json.dumps(content).encode()
    blobs.content[f"{IMAGERY_OUTPUT}/logs/imagery_friendly.log"] = IMAGERY_LOG
    return blobs


def training_results() -> MemoryBlobs:
    """A checkpoint and an event file that ends before the last epoch."""
    return MemoryBlobs({f"{TRAINING_OUTPUT}/checkpoint/last.ckpt": b"x", f"{TRAINING_OUTPUT}/{EVENT_FILE}": EVENTS})


def inference_results() -> MemoryBlobs:
    """The task's own config, both results and the log."""
    return MemoryBlobs(
        {
            INFERENCE_CONFIG: samples.raw("configs/experiment_config.inference.yaml"),
            f"{INFERENCE_OUTPUT}/{MOSAIC}_visualizer.tif": b"x",
            f"{INFERENCE_OUTPUT}/{GPKG}.gpkg": b"x",
            f"{INFERENCE_OUTPUT}/logs/workflow_progress.log": INFERENCE_LOG,
        }
    )
