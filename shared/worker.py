"""What every use case works with: the services behind ports, the clock, and the limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from shared.batch.types import BatchService
from shared.haste.workload import Workload
from shared.kinds import Kind
from shared.ledger.port import Ledger
from shared.placement.placer import Placer
from shared.recovery import Policy
from shared.showing import HasteRecords
from shared.task_bodies import TaskBodies


class OwnQueue(Protocol):
    """The worker's own queue."""

    def send(self, text: str, visible_after_seconds: int = 0) -> None:
        """Put a message that shows up after some seconds and never expires."""


@dataclass(frozen=True)
class Limits:
    """How long things may take."""

    late_save: timedelta
    """how late HASTE's API may save after its message"""
    record_patience: timedelta
    """how long a HASTE record may be missing before its request is given up"""
    stuck_in_ending: timedelta
    """after that a task that runs on although its node is gone is deleted (two function timeouts)"""


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


@dataclass(frozen=True)
class Worker:
    """One tenant's worker."""

    tenant: str
    ledger: Ledger
    haste: HasteRecords
    workloads: Mapping[Kind, Workload]
    batch: BatchService
    placer: Placer
    tasks: TaskBodies
    own_queue: OwnQueue
    limits: Limits
    recovery: Mapping[Kind, Policy]
    progress_pace: Pace
    now: Callable[[], datetime]
