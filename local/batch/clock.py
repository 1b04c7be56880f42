"""Where the emulator takes the time from."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

FIRST_DAY = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


class Clock(Protocol):
    """Anything that tells the time in UTC."""

    def now(self) -> datetime: ...


class RealClock:
    """The computer's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class ScaledClock:
    """Begins now and runs `speed` times as fast as the computer's: at 60 a minute of the service passes in a second.

    Only the service's time is scaled; a task's process takes the time it takes.
    """

    def __init__(self, speed: float) -> None:
        if speed <= 0:
            raise ValueError(f"time cannot pass {speed:g} times as fast")
        self._speed = speed
        self._begin = datetime.now(UTC)
        self._begin_seconds = time.monotonic()

    def now(self) -> datetime:
        return self._begin + timedelta(seconds=(time.monotonic() - self._begin_seconds) * self._speed)


class ManualClock:
    """A clock that moves only when told, for tests that must not wait.

    Several parts of a test may share one: `World.tick()` catches up with whatever time it shows.
    """

    def __init__(self, start: datetime = FIRST_DAY) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward; time never runs backwards."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        self._now += timedelta(seconds=seconds)
