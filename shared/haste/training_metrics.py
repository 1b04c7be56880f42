"""What HASTE shows about a training, from the scalars that it logs: a history by epoch, and an estimate."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import fmean

from shared.haste.tfevents import Scalar
from shared.haste.workload import JsonObject

_UNKNOWN = "n/a"
_EPOCH = "epoch"
_VALUES = {"train_MulticlassAccuracy": "accuracy", "train_loss": "loss"}
#: So many epochs are shown, the newest: HASTE's record and this process's memory stay small whatever a program logs.
_MOST_EPOCHS = 1000
#: An epoch is taken to last as long as these many newest ones did.
_NEWEST = 3


@dataclass(frozen=True)
class _End:
    """The last event of an epoch, and the newest values at its step."""

    step: int
    wall_time: float
    accuracy: float | None = None
    loss: float | None = None


@dataclass(frozen=True)
class _Earlier:
    """Epochs before those that are shown."""

    count: int = 0
    minutes: float = 0.0
    through: float = -math.inf
    """the highest of their numbers"""
    wall_time: float = 0.0


@dataclass(frozen=True)
class Logged:
    """What the history needs of all scalars so far; it grows with the epochs, not with the scalars."""

    start: float = math.inf
    ends: Mapping[int, _End] = field(default_factory=dict)
    newest: int | None = None
    """the epoch that has logged last"""
    values: Mapping[str, Scalar] = field(default_factory=dict)
    """the scalar with the highest step, by field of `_End`"""
    earlier: _Earlier = _Earlier()

    def and_then(self, scalars: Iterable[Scalar]) -> Logged:
        """With what has been logged after it."""
        start, ends, newest, values = self.start, dict(self.ends), self.newest, dict(self.values)
        for scalar in scalars:
            if not (math.isfinite(scalar.value) and _is_date(scalar.wall_time)):
                continue
            start = min(start, scalar.wall_time)
            name = _VALUES.get(scalar.tag)
            if name is not None and (name not in values or scalar.step >= values[name].step):
                values[name] = scalar
            elif scalar.tag == _EPOCH and self._is_later(scalar, ends):
                newest = int(scalar.value)
                ends[newest] = replace(ends.get(newest, _End(0, 0)), step=scalar.step, wall_time=scalar.wall_time)
            else:
                continue
            if newest in ends:  # the order of the scalars of one step does not matter
                ends[newest] = _with_values(ends[newest], values)
        return replace(self, start=start, ends=ends, newest=newest, values=values)._shortened()

    def _is_later(self, scalar: Scalar, ends: Mapping[int, _End]) -> bool:
        number = int(scalar.value)
        return number > self.earlier.through and (number not in ends or scalar.step >= ends[number].step)

    def _shortened(self) -> Logged:
        ends, earlier = dict(self.ends), self.earlier
        for number in sorted(ends)[:-_MOST_EPOCHS]:
            end = ends.pop(number)
            minutes = _minutes(earlier.wall_time if earlier.count else self.start, end.wall_time)
            earlier = _Earlier(earlier.count + 1, earlier.minutes + minutes, number, end.wall_time)
        return replace(self, ends=ends, earlier=earlier)


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
    """The newest epochs so far, and what came before them.

    `start_time` and wall times are UTC, `YYYY-MM-DD HH:MM:SS`.
    """

    start_time: str
    epochs: tuple[Epoch, ...]
    earlier_epochs: int = 0
    earlier_minutes: float = 0.0

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


def history(logged: Logged) -> History | None:
    """The history by epoch; None if no usable epoch has been logged."""
    if not logged.ends:
        return None
    earlier = logged.earlier
    previous = earlier.wall_time if earlier.count else logged.start
    epochs = []
    for number, end in sorted(logged.ends.items()):
        minutes = _minutes(previous, end.wall_time)
        epochs.append(Epoch(number, minutes, end.accuracy, end.loss, _utc(end.wall_time)))
        previous = end.wall_time
    return History(_utc(logged.start), tuple(epochs), earlier.count, earlier.minutes)


def estimate(past: History, max_epochs: int) -> Estimate:
    """How far the training is. An epoch counts as completed once the next one has logged something.

    The epochs that are left are taken to last as long as the newest completed ones, of which the first is one only if
    there is no other: it begins with loading and warming up.
    """
    total = round(past.earlier_minutes + sum(epoch.elapsed_minutes for epoch in past.epochs), 2)
    completed = max(0, past.earlier_epochs + sum(epoch.number < max_epochs for epoch in past.epochs) - 1)
    if completed == 0:
        return Estimate(0, total)
    *ended, running = past.epochs
    newest = ended[1:][-_NEWEST:] or ended
    per_epoch = max(0.0, fmean(epoch.elapsed_minutes for epoch in newest))
    of_running = max(0.0, per_epoch - running.elapsed_minutes)
    left = max(0, max_epochs - completed - 1) * per_epoch + of_running
    return Estimate(completed, total, round(per_epoch, 2), round(left, 2))


def final_fields(past: History | None, max_epochs: int) -> JsonObject:
    """What `trainingJob` says after success. Without an event file the last known times stay."""
    known = {}
    if past is not None:
        known = estimate(past, max_epochs).job_fields() | {"trainStartTime": past.start_time, "logs": past.logs()}
    return known | {"completedEpochs": str(max_epochs), "approxMinutesToComplete": "0"}


def final_block(job: JsonObject, max_epochs: int) -> list[str]:
    """The lines below the last entry of HASTE's log text after success."""
    return [
        f"trainStartTime: {job.get('trainStartTime') or _UNKNOWN}",
        f"epoch: {max_epochs}",
        f"elapsedDurationInMinutes: {job.get('totalElapsedTime') or _UNKNOWN}",
        f"completedDate: {job['completedDate']}",
    ]


def _with_values(end: _End, values: Mapping[str, Scalar]) -> _End:
    known = {name: round(one.value, 6) for name, one in values.items() if one.step <= end.step}
    return replace(end, accuracy=known.get("accuracy", end.accuracy), loss=known.get("loss", end.loss))


def _minutes(since: float, until: float) -> float:
    return round((until - since) / 60, 2)


def _shown(minutes: float | None) -> str:
    return str(minutes) if minutes else _UNKNOWN


def _utc(wall_time: float) -> str:
    return datetime.fromtimestamp(wall_time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _is_date(wall_time: float) -> bool:
    """Within the years that `datetime` takes on every platform."""
    return 0 <= wall_time < 253402300800  # year 10000; false for NaN
