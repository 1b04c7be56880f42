"""What HASTE shows about a training, from the scalars that it logs: a history by epoch, and an estimate."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.haste.tfevents import Scalar
from shared.haste.workload import JsonObject

_UNKNOWN = "n/a"


@dataclass(frozen=True)
class Epoch:
    """One epoch that has logged something. Times in minutes; accuracy and loss are None if not logged yet."""

    number: int
    elapsed_minutes: float
    accuracy: float | None
    loss: float | None
    wall_time: str


@dataclass(frozen=True)
class History:
    """All epochs so far. `start_time` and wall times are UTC, `YYYY-MM-DD HH:MM:SS`."""

    start_time: str
    epochs: tuple[Epoch, ...]

    def logs(self) -> str:
        """JSON text for `trainingJob.logs`."""
        return json.dumps(
            [
                {
                    "epoch": epoch.number,
                    "elapsedDurationInMinutes": epoch.elapsed_minutes,
                    "multiclassAccuracy": epoch.accuracy,
                    "loss": epoch.loss,
                    "wallTime": epoch.wall_time,
                }
                for epoch in self.epochs
            ]
        )


@dataclass(frozen=True)
class Estimate:
    """Numbers of a running training. None = not known yet. The first epoch's length counts from the first event."""

    completed_epochs: int = 0
    total_elapsed_minutes: float | None = None
    minutes_per_epoch: float | None = None
    minutes_left: float | None = None

    def job_fields(self) -> JsonObject:
        """Fields of `trainingJob`; HASTE keeps them as text and shows `n/a` for 0 and for what is not known."""
        return {
            "completedEpochs": str(self.completed_epochs),
            "approxMinutesToComplete": _shown(self.minutes_left),
            "totalElapsedTime": _shown(self.total_elapsed_minutes),
            "timePerEpoch": _shown(self.minutes_per_epoch),
        }


def history(scalars: Sequence[Scalar]) -> History | None:
    """The history by epoch; None if no usable epoch has been logged."""
    usable = [scalar for scalar in scalars if math.isfinite(scalar.value) and _is_date(scalar.wall_time)]
    last_of_epoch: dict[int, Scalar] = {}
    for scalar in usable:
        number = int(scalar.value)
        if scalar.tag == "epoch" and (number not in last_of_epoch or scalar.step >= last_of_epoch[number].step):
            last_of_epoch[number] = scalar
    if not last_of_epoch:
        return None
    accuracies = _by_step(usable, "train_MulticlassAccuracy")
    losses = _by_step(usable, "train_loss")
    start = previous = min(scalar.wall_time for scalar in usable)
    epochs = []
    for number, last in sorted(last_of_epoch.items()):
        epochs.append(
            Epoch(
                number,
                elapsed_minutes=round((last.wall_time - previous) / 60, 2),
                accuracy=_latest(accuracies, last.step),
                loss=_latest(losses, last.step),
                wall_time=_utc(last.wall_time),
            )
        )
        previous = last.wall_time
    return History(_utc(start), tuple(epochs))


def estimate(past: History, max_epochs: int) -> Estimate:
    """How far the training is. An epoch counts as completed once the next one has logged something."""
    first = next((epoch for epoch in past.epochs if epoch.number == 0), None)
    if first is None or first.elapsed_minutes == 0:
        return Estimate()
    total = round(sum(epoch.elapsed_minutes for epoch in past.epochs), 2)
    completed = max(0, sum(epoch.number < max_epochs for epoch in past.epochs) - 1)
    if completed == 0:
        return Estimate(0, total)
    left = round(max(0.0, max_epochs * first.elapsed_minutes - total), 2)
    return Estimate(completed, total, first.elapsed_minutes, left)


def _by_step(scalars: Sequence[Scalar], tag: str) -> list[Scalar]:
    return sorted((scalar for scalar in scalars if scalar.tag == tag), key=lambda scalar: scalar.step)


def _latest(logged: list[Scalar], up_to_step: int) -> float | None:
    position = bisect.bisect_right(logged, up_to_step, key=lambda scalar: scalar.step)
    return round(logged[position - 1].value, 6) if position else None


def _shown(minutes: float | None) -> str:
    return str(minutes) if minutes else _UNKNOWN


def _utc(wall_time: float) -> str:
    return datetime.fromtimestamp(wall_time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _is_date(wall_time: float) -> bool:
    """Within the years that `datetime` takes on every platform."""
    return 0 <= wall_time < 253402300800  # year 10000; false for NaN
