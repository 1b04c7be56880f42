"""What one process remembers between messages and runs of the timer: economies alone, nothing rests on them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nsmallest

from shared.ledger.port import LiveSummary

#: A task that waits for a node is looked into so often although nothing about it is new.
LOOK_AT_QUEUED_EVERY = timedelta(hours=1)
#: A record that this version cannot work with is told so often.
TELL_STANDING_STILL_EVERY = timedelta(minutes=10)
#: Whether a task's HASTE record is still there is asked no more often than this.
LOOK_FOR_RECORD_EVERY = timedelta(minutes=2)


class Pace:
    """Remembers, in this process only, when each record was last looked into: an economy, nothing rests on it."""

    _MOST_REMEMBERED = 50_000

    def __init__(self, every: timedelta) -> None:
        self._every = every
        self._last: dict[str, datetime] = {}

    def is_due(self, key: str, now: datetime) -> bool:
        """True at most once per `every`."""
        last = self._last.get(key)
        if last is not None and now - last < self._every:
            return False
        if len(self._last) >= self._MOST_REMEMBERED:
            self._last.clear()
        self._last[key] = now
        return True


class InTurn:
    """Whom a few looks in each run of the timer come to, in turn; in this process only: an economy like `Pace`."""

    def __init__(self, every: timedelta) -> None:
        self._every = every
        self._last: dict[str, datetime] = {}

    def next(self, keys: Iterable[str], most: int, now: datetime) -> frozenset[str]:
        """Those of `keys` whose last look is longest ago, `every` at least; one that is new comes after those."""
        self._last = {key: self._last.get(key, now - self._every) for key in keys}
        due = [key for key, last in self._last.items() if now - last >= self._every]
        chosen = nsmallest(most, due, key=self._last.__getitem__)
        self._last.update(dict.fromkeys(chosen, now))
        return frozenset(chosen)


class FileNames:
    """Which files a running task has on its node, for a few minutes, in this process only: an economy like `Pace`."""

    _FOR = timedelta(minutes=10)
    _MOST_REMEMBERED = 1000

    def __init__(self) -> None:
        self._names: dict[str, tuple[datetime, str, tuple[str, ...]]] = {}

    def names(self, task_id: str, prefix: str, now: datetime) -> tuple[str, ...]:
        """What is remembered below this prefix; empty if nothing is."""
        at, of_prefix, names = self._names.get(task_id, (now, prefix, ()))
        return names if of_prefix == prefix and now - at < self._FOR else ()

    def remember(self, task_id: str, prefix: str, names: tuple[str, ...], now: datetime) -> None:
        """What was listed just now."""
        if len(self._names) >= self._MOST_REMEMBERED:
            self._names.clear()
        self._names[task_id] = (now, prefix, names)

    def forget(self, task_id: str) -> None:
        """A file was not to be had: list anew next time."""
        self._names.pop(task_id, None)


class Turn:
    """Where a run of the timer that was cut short has stopped, in this process only, so that the next begins there."""

    def __init__(self) -> None:
        self._stopped_at: tuple[datetime, str] | None = None

    def ordered(self, live: Sequence[LiveSummary]) -> list[LiveSummary]:
        """Records in their order, beginning with the one that was not looked at any more."""
        if self._stopped_at is None:
            return list(live)
        first = bisect_left(live, self._stopped_at, key=_place)
        return [*live[first:], *live[:first]]

    def stopped_before(self, summary: LiveSummary | None) -> None:
        """This record was not looked at any more; None if all were."""
        self._stopped_at = None if summary is None else _place(summary)


def _place(summary: LiveSummary) -> tuple[datetime, str]:
    return summary.asked, summary.key


@dataclass
class Memory:
    """`progress`: of a running task; `nodes`: of one pool; `pools`: all of them. The others bring their pace."""

    progress: Pace
    nodes: Pace
    pools: Pace
    queued: Pace = field(default_factory=lambda: Pace(LOOK_AT_QUEUED_EVERY))
    standing_still: Pace = field(default_factory=lambda: Pace(TELL_STANDING_STILL_EVERY))
    records: InTurn = field(default_factory=lambda: InTurn(LOOK_FOR_RECORD_EVERY))
    file_names: FileNames = field(default_factory=FileNames)
    turn: Turn = field(default_factory=Turn)
