"""Fits the pixel model epoch by epoch, with scalars to follow and checkpoints to keep."""

import numpy as np
from numpy.typing import NDArray

from local.images.pacing import Pace, fail_if_asked
from local.images.rasters import Raster
from local.images.training.app.event_file import EventFile
from local.images.training.app.experiment_config import ExperimentConfig
from local.images.training.app.pixel_model import PixelModel, normalized

_STEPS_PER_REPORT = 50
_REPORTS_PER_EPOCH = 2  # HASTE measures an epoch by the time between reports, so one report would say 0 minutes
_KEPT_CHECKPOINTS = 2
# Learning rates that suit a U-Net leave this small model where it is.
_RATE_FACTOR, _HIGHEST_RATE = 10_000, 2.0


def fine_tune(config: ExperimentConfig, imagery: Raster, mask: NDArray[np.uint8]) -> None:
    """Train for ``max_epochs``; leaves ``last.ckpt`` and the best checkpoints, and an event file that grows."""
    labelled = mask > 0
    pixels = normalized(imagery.pixels[:, labelled], config.means, config.stds)
    targets = mask[labelled].astype(np.intp) - 1
    model = PixelModel(len(imagery.pixels), len(config.classes))
    if config.initial_weights_path is not None:
        model.load(config.initial_weights_path, strict=False)
    rate = min(_HIGHEST_RATE, config.learning_rate * _RATE_FACTOR)
    pace = Pace(config.max_epochs * _REPORTS_PER_EPOCH)
    kept: list[tuple[float, str]] = []
    step = 0
    with EventFile(config.log_dir / config.experiment_name / "version_0") as events:
        for epoch in range(config.max_epochs):
            for _ in range(_REPORTS_PER_EPOCH):
                for _ in range(_STEPS_PER_REPORT):
                    loss, accuracy = model.fit_once(pixels, targets, rate)
                pace.step()
                step += _STEPS_PER_REPORT
                events.add_scalars(
                    step, {"train_loss": loss, "train_MulticlassAccuracy": accuracy, "epoch": float(epoch)}
                )
                fail_if_asked()
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.4f}", flush=True)
            name = f"epoch={epoch}-step={step}.ckpt"
            model.save(config.checkpoint_dir / name)
            model.save(config.checkpoint_dir / "last.ckpt")
            kept = sorted([*kept, (loss, name)])
            for _, worse in kept[_KEPT_CHECKPOINTS:]:
                (config.checkpoint_dir / worse).unlink()
            del kept[_KEPT_CHECKPOINTS:]
