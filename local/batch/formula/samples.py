"""What the service has sampled of a pool, and how a formula reads it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from local.batch.formula.errors import INSUFFICIENT_DATA, FormulaEvaluationError

PERIOD_SECONDS = 30.0
_KEPT = 2880
#: With how many percent of a window's samples `GetSample` is content when the formula does not say.
_DEFAULT_PERCENT = 1.0

METHODS = frozenset(("GetSample", "GetSamplePercent", "GetSamplePeriod", "Count", "HistoryBeginTime"))

Values = Mapping[str, float]


@dataclass
class History:
    """The samples of one pool, oldest first; a day of them is kept. Samples are never changed, so copies share them."""

    entries: deque[tuple[datetime, Values]] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, time: datetime, values: Values) -> None:
        """Note one sample of every metric. Metrics that it lacks have no sample at that time."""
        self.entries.append((time, values))

    def __deepcopy__(self, _memo: dict[int, Any]) -> History:
        return History(self.entries.copy())


@dataclass(frozen=True)
class Metric:
    """A service variable such as `$PendingTasks`, as a formula sees it at `now`: nothing younger than the lag.

    current: its present value, for variables that can be used as plain numbers.
    """

    name: str
    history: History
    now: datetime
    lag: timedelta
    current: float | None = None

    def samples(self, after: datetime | None = None, until: datetime | None = None, most: int = 0) -> list[float]:
        """The visible samples of after < time <= until, oldest first; only the newest `most` of them."""
        visible = self.now - self.lag
        found: list[float] = []
        for time, values in reversed(self.history.entries):
            if after is not None and time <= after:
                break
            if time <= visible and (until is None or time <= until) and self.name in values:
                found.append(values[self.name])
                if len(found) == most:
                    break
        found.reverse()
        return found

    def newest(self, count: int) -> tuple[float, ...]:
        """`GetSample(count)`: fails only when there is no sample at all."""
        found = self.samples(most=max(count, 1))
        if not found:
            raise self._insufficient(100.0, 0.0)
        return tuple(found)

    def between(self, start: datetime, end: datetime, wanted_percent: float | None) -> tuple[float, ...]:
        """`GetSample(start, end, percent)`: fails with fewer than `wanted_percent` of the samples there could be."""
        wanted = _DEFAULT_PERCENT if wanted_percent is None else wanted_percent
        received = self.percent(start, end)
        if received < wanted:
            raise self._insufficient(wanted, received)
        return tuple(self.samples(start, end))

    def percent(self, start: datetime, end: datetime) -> float:
        """How many percent of the samples that the period could have are there."""
        possible = max(1, round((end - start).total_seconds() / PERIOD_SECONDS))
        return min(100.0, 100.0 * len(self.samples(start, end)) / possible)

    def begin(self) -> datetime:
        """The time of the oldest visible sample."""
        for time, values in self.history.entries:
            if time <= self.now - self.lag and self.name in values:
                return time
        raise self._insufficient(100.0, 0.0)

    def _insufficient(self, wanted: float, received: float) -> FormulaEvaluationError:
        reason = f"Insufficient data from data set: {self.name} wanted {wanted:.0f}%, received {received:.0f}%"
        return FormulaEvaluationError(reason, INSUFFICIENT_DATA)
