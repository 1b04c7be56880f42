"""Runs one step of HASTE's model workflow: training or inference."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from local.images.geopackage import read_polygons
from local.images.pacing import Pace, fail_if_asked
from local.images.progress_log import ProgressLog
from local.images.rasters import read
from local.images.training.app import experiment_config
from local.images.training.app.create_masks import create_mask
from local.images.training.app.experiment_config import ExperimentConfig
from local.images.training.app.fine_tune import fine_tune
from local.images.training.app.inference import predict
from local.images.training.app.merge_footprints import merge
from local.images.training.app.output2visualizer import convert_to_cog, paint

_INFERENCE_STEPS = 5
_FOOTPRINTS = "inputs/building_footprints.gpkg"

Result = TypeVar("Result")


class StepFailedError(Exception):
    """A part of the workflow failed; the message names the part and nothing else."""


def _run(part: str, work: Callable[[], Result]) -> Result:
    try:
        return work()
    except Exception as error:  # users see the part that failed only, the reason goes to stderr
        traceback.print_exc()
        raise StepFailedError(f"Error running {part}") from error


def train(config: ExperimentConfig) -> None:
    """Masks, then the fit; HASTE's container logs progress of this step in the event file alone."""
    imagery = _run("create_masks.py", lambda: read(config.mosaic_path))
    mask = _run("create_masks.py", lambda: create_mask(config, imagery))
    _run("fine_tune.py", lambda: fine_tune(config, imagery, mask))


def infer(config: ExperimentConfig, log: ProgressLog) -> None:
    """Predictions, damage per building, and the picture for the map."""
    base = config.mosaic_path.stem
    directory = config.inference_dir
    directory.mkdir(parents=True, exist_ok=True)
    temporary, visualizer = directory / f"{base}_temp_vis.tif", directory / f"{base}_visualizer.tif"
    pace = Pace(_INFERENCE_STEPS)

    log.add("Generating predictions")
    pace.step()
    _run("inference.py", fail_if_asked)
    imagery = _run("inference.py", lambda: read(config.mosaic_path))
    predictions = _run("inference.py", lambda: predict(config, imagery, directory / f"{base}_predictions.tif"))
    log.add("Using cached building footprints")
    pace.step()
    footprints = _run("merge_with_building_footprints.py", lambda: read_polygons(config.experiment_dir / _FOOTPRINTS))
    log.add("Merging predictions")
    pace.step()
    gpkg = directory / f"{config.gpkg_prefix}.gpkg"
    buildings = _run("merge_with_building_footprints.py", lambda: merge(footprints, imagery, predictions, gpkg))
    log.add("Generating results")
    pace.step()
    _run("output2visualizer.py", lambda: paint(buildings, imagery, temporary))
    log.add("Converting results to COG")
    pace.step()
    _run("output2visualizer.py", lambda: convert_to_cog(temporary, visualizer))


def main() -> int:
    """Run with ``--config FILE --step training|inference``; returns the exit code."""
    parser = argparse.ArgumentParser(prog="run_workflow.py")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--step", choices=("training", "inference"), required=True)
    arguments = parser.parse_args()
    log = ProgressLog(Path(os.environ["AZ_BATCH_TASK_WORKING_DIR"], "logs", "workflow_progress.log"))
    try:
        config = _run("check_config.py", lambda: experiment_config.load(arguments.config, arguments.step))
        if arguments.step == "training":
            train(config)
        else:
            infer(config, log)
    except StepFailedError as error:
        log.add(str(error))
        log.add("Error running command (exit code 1). See task stderr for details.")
        log.add("Please contact your HASTE website administrator")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
