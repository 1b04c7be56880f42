"""Fires one timer function when its schedule says so."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from local.functions_host.log import EventLog
from local.functions_host.queue_port import StorageFailure
from local.functions_host.schedule import Schedule
from local.functions_host.timer_status import ScheduleStatus, StatusStore, check_past_due, next_occurrence


@dataclass(frozen=True)
class TimerCall:
    """What a timer function is told."""

    past_due: bool
    status: ScheduleStatus | None

    def to_json(self) -> dict[str, object]:
        """The trigger's value as the real host hands it to the Python worker."""
        return {
            "Schedule": {"AdjustForDST": True},
            "ScheduleStatus": self.status.to_json() if self.status else None,
            "IsPastDue": self.past_due,
        }


RunTimer = Callable[[TimerCall], Awaitable[None]]


class TimerListener:
    """One function at a time; a run that outlasts its schedule is followed by the next at once.

    With a `store`, a missed occurrence means one run at start that is told so; without one nothing is remembered.
    Stopping does not wait for a running function.
    """

    def __init__(
        self,
        function: str,
        schedule: Schedule,
        store: StatusStore | None,
        run_function: RunTimer,
        log: EventLog,
        *,
        run_on_startup: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        self._function = function
        self._schedule = schedule
        self._store = store
        self._run_function = run_function
        self._log = log
        self._run_on_startup = run_on_startup
        self._now = now
        self._status: ScheduleStatus | None = None
        self._running: asyncio.Task[None] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until `stop` is set."""
        stopped = asyncio.create_task(stop.wait())
        try:
            if await self._running_ended(stopped) and not stopped.done():
                await self._listen(stopped)
        finally:
            stopped.cancel()

    async def _listen(self, stopped: asyncio.Task[bool]) -> None:
        invoked_at = self._now()
        past_due = await self._read_status(invoked_at)
        if past_due:
            self._log("timer.past_due", function=self._function)
        elif self._run_on_startup:
            self._log("timer.run_on_startup", function=self._function)
        if (past_due or self._run_on_startup) and not await self._fire(invoked_at, stopped, past_due=past_due):
            return
        while True:
            due = next_occurrence(self._schedule, invoked_at)
            delay = max((due - self._now()).total_seconds(), 0.0)
            self._log("timer.wait", level=logging.DEBUG, function=self._function, seconds=delay)
            await asyncio.wait({stopped}, timeout=delay)
            if stopped.done():
                return
            # A sleep may end a moment early; counting from `due` keeps the occurrence from firing twice.
            invoked_at = max(self._now(), due)
            if not await self._fire(invoked_at, stopped):
                return

    async def _fire(self, invoked_at: datetime, stopped: asyncio.Task[bool], *, past_due: bool = False) -> bool:
        """Run the function and note the run; False when stopped before it ended."""
        call = TimerCall(past_due, self._status)
        self._running = asyncio.ensure_future(self._run_function(call))
        if not await self._running_ended(stopped):
            return False
        if self._store is not None:
            self._status = ScheduleStatus(invoked_at, next_occurrence(self._schedule, invoked_at), invoked_at)
            await self._write_status(self._status)
        return True

    async def _running_ended(self, stopped: asyncio.Task[bool]) -> bool:
        # A run left over from before a lost lease counts too: a timer never overlaps itself.
        if self._running is not None:
            await asyncio.wait({self._running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return self._running is None or self._running.done()

    async def _read_status(self, now: datetime) -> bool:
        """Load the stored status; True when an occurrence was missed."""
        if self._store is None:
            return False
        try:
            stored = await self._store.read()
        except StorageFailure as error:
            self._log("timer.status_failed", level=logging.ERROR, function=self._function, error=str(error))
            stored = None
        self._log("timer.status_read", level=logging.DEBUG, function=self._function, found=stored is not None)
        if stored is None:
            self._status = ScheduleStatus(None, next_occurrence(self._schedule, now), None)
            return False
        self._status, past_due = check_past_due(self._schedule, stored, now)
        if self._status != stored:
            await self._write_status(self._status)
        return past_due

    async def _write_status(self, status: ScheduleStatus) -> None:
        if self._store is None:
            return
        try:
            await self._store.write(status)
        except StorageFailure as error:
            self._log("timer.status_failed", level=logging.ERROR, function=self._function, error=str(error))
