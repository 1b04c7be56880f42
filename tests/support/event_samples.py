"""Event files of HASTE's own training, what TensorBoard reads from them, and longer ones made of the same records."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from local.images.training.app.event_file import record, scalar_event, version_event
from tests.support import samples

FILES = ("events.out.tfevents.five-epochs", "events.out.tfevents.warm-three-epochs")
#: (tag, wall time, step, value)
Logged = tuple[str, float, int, float]


@cache
def content(name: str) -> bytes:
    """One of the real files."""
    return samples.raw(f"training-events/{name}")


@cache
def records(name: str) -> tuple[tuple[int, int, float], ...]:
    """Of each record: where it begins and ends, and the time of its event."""
    data, position, found = content(name), 0, []
    while position < len(data):
        (length,) = struct.unpack_from("<Q", data, position)
        end = position + length + 16
        found.append((position, end, struct.unpack_from("<d", data, position + 13)[0]))
        position = end
    return tuple(found)


def logged(name: str, length: int | None = None) -> list[Logged]:
    """What TensorBoard reads from the first `length` bytes: the scalars of all records that are whole."""
    there = {at for _, end, at in records(name) if length is None or end <= length}
    tags = samples.sample("training-events/expected.json")[name]["scalars"]
    return sorted(
        ((tag, *one) for tag, all_ in tags.items() for one in all_ if one[0] in there), key=lambda one: one[1]
    )


def epochs(scalars: list[Logged]) -> list[dict[str, Any]]:
    """`trainingJob.logs` by HASTE's rule."""
    last: dict[int, Logged] = {}
    for one in scalars:
        if one[0] == "epoch" and one[2] >= last.get(int(one[3]), one)[2]:
            last[int(one[3])] = one
    previous = min((at for _, at, _, _ in scalars), default=0.0)
    found = []
    for number, (_, at, step, _) in sorted(last.items()):
        found.append(
            {
                "epoch": number,
                "elapsedDurationInMinutes": round((at - previous) / 60, 2),
                "multiclassAccuracy": _newest(scalars, "train_MulticlassAccuracy", step),
                "loss": _newest(scalars, "train_loss", step),
                "wallTime": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            }
        )
        previous = at
    return found


def _newest(scalars: list[Logged], tag: str, step: int) -> float | None:
    of_tag = sorted((one for one in scalars if one[0] == tag and one[2] <= step), key=lambda one: one[2])
    return round(of_tag[-1][3], 6) if of_tag else None


class LongFile:
    """A file that grows by epochs as HASTE's training writes them: six pictures in a row, then scalars."""

    def __init__(self, began: float) -> None:
        data = content(FILES[0])
        pictures = [data[start:end] for start, end, _ in records(FILES[0]) if end - start > 100_000]
        self._pictures = b"".join(pictures[6:12])
        self._began = began
        self.epochs = 0
        self.content = record(version_event(began)) + record(scalar_event(began, 0, "hp_metric", -1.0))
        self.scalar_bytes = len(self.content)

    def add_epoch(self, minutes: float = 1.0) -> bytes:
        """One more epoch; returns what it adds."""
        self._began += minutes * 60
        number, step = float(self.epochs), 1024 * self.epochs + 1023
        values = {"train_loss": 1 / (step + 1), "train_MulticlassAccuracy": 0.5, "val_loss": 0.25, "epoch": number}
        scalars = b"".join(record(scalar_event(self._began, step, tag, value)) for tag, value in values.items())
        self.epochs += 1
        self.scalar_bytes += len(scalars)
        self.content += self._pictures + scalars
        return self._pictures + scalars

    @property
    def picture_bytes(self) -> int:
        """Of one epoch."""
        return len(self._pictures)


class Reads:
    """Reads of a file that may change meanwhile, remembered by their lengths. `None` = it cannot be had."""

    def __init__(self, data: Callable[[], bytes | None]) -> None:
        self._data = data
        self.lengths: list[int] = []

    def __call__(self, offset: int, most_bytes: int) -> bytes | None:
        data = self._data()
        if data is None:
            return None
        self.lengths.append(len(data[offset : offset + most_bytes]))
        return data[offset : offset + most_bytes]

    def since(self) -> list[int]:
        """The lengths since this was asked last."""
        taken, self.lengths = self.lengths, []
        return taken


def cuts(name: str) -> Iterator[int]:
    """Where a growing file may end: at, in and behind headers, data and checksums of every record."""
    for start, end, _ in records(name):
        yield from (
            start,
            start + 5,
            start + 8,
            start + 11,
            start + 12,
            start + 13,
            (start + end) // 2,
            end - 4,
            end - 1,
        )
    yield len(content(name))
