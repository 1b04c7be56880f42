"""Timer behaviour that the recordings do not show: catching up, early wake-ups, a lost lock, failing storage."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from local.functions_host.queue_port import StorageFailure
from local.functions_host.schedule import parse_schedule
from local.functions_host.timer_listener import TimerCall, TimerListener
from local.functions_host.timer_status import ScheduleStatus, StatusStore
from tests.functions_host.virtual_time import run_in_virtual_time

START = datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC)


class Ticker:
    """A timer of every five seconds; `fired` holds the seconds after noon, `run_seconds` the lengths of the runs."""

    def __init__(self, store: StatusStore | None = None, clock_error: timedelta = timedelta()) -> None:
        self.fired: list[float] = []
        self.run_seconds: list[float] = []
        self.running = 0
        self.events: list[str] = []
        self._clock_error = clock_error
        schedule = parse_schedule("*/5 * * * * *")
        self.listener = TimerListener("tick", schedule, store, self._function, self._log, now=self._now)

    async def listen_for(self, seconds: float) -> None:
        stop = asyncio.Event()
        listening = asyncio.create_task(self.listener.run(stop))
        await asyncio.sleep(seconds)
        stop.set()
        await listening

    def _now(self) -> datetime:
        elapsed = timedelta(seconds=asyncio.get_running_loop().time())
        # Wakes up a little before the wall clock shows the time, as a timer on another clock may.
        return START + elapsed - (self._clock_error if elapsed else timedelta())

    async def _function(self, call: TimerCall) -> None:
        assert self.running == 0, "a timer must not overlap itself"
        self.running += 1
        self.fired.append(round(1 + asyncio.get_running_loop().time(), 1))
        await asyncio.sleep(self.run_seconds.pop(0) if self.run_seconds else 0)
        self.running -= 1

    def _log(self, event: str, /, level: int = logging.INFO, **fields: object) -> None:
        self.events.append(event)


def test_a_slow_run_is_followed_by_one_run_at_once_not_by_all_it_missed() -> None:
    async def check() -> None:
        ticker = Ticker()
        ticker.run_seconds = [12]
        await ticker.listen_for(25)
        assert ticker.fired == [5, 17, 20, 25]

    run_in_virtual_time(check())


def test_waking_early_does_not_fire_an_occurrence_twice() -> None:
    async def check() -> None:
        ticker = Ticker(clock_error=timedelta(milliseconds=20))
        await ticker.listen_for(20)
        assert ticker.fired == pytest.approx([5, 10, 15, 20], abs=0.1)

    run_in_virtual_time(check())


def test_a_run_left_over_from_a_lost_lock_is_waited_for() -> None:
    async def check() -> None:
        ticker = Ticker()
        ticker.run_seconds = [20]
        await ticker.listen_for(6)
        assert (ticker.fired, ticker.running) == ([5], 1)
        await ticker.listen_for(30)
        assert ticker.fired == [5, 30, 35]

    run_in_virtual_time(check())


class _BrokenStore:
    async def read(self) -> ScheduleStatus | None:
        raise StorageFailure("503 ServerBusy")

    async def write(self, status: ScheduleStatus) -> None:
        raise StorageFailure("503 ServerBusy")


def test_a_timer_ticks_on_while_its_status_cannot_be_kept() -> None:
    async def check() -> None:
        ticker = Ticker(_BrokenStore())
        await ticker.listen_for(10)
        assert ticker.fired == [5, 10]
        assert ticker.events.count("timer.status_failed") == 3

    run_in_virtual_time(check())
