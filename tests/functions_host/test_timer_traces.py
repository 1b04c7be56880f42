"""The timer listener does what Microsoft's did, scenario by scenario."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.functions_host.schedule import fires_within_a_minute, parse_schedule
from local.functions_host.timer_listener import TimerCall, TimerListener
from local.functions_host.timer_status import ScheduleStatus
from tests.functions_host.recordings import read_lines
from tests.functions_host.virtual_time import run_in_virtual_time

SCENARIOS = read_lines("timer-traces.jsonl")
_DAY = "2026-11-30T"
_NOISE_SECONDS = 0.3
_STATUS = re.compile(r"Last='(?P<last>.*)', Next='(?P<next>.*)', LastUpdated='(?P<updated>.*)'")


class _Store:
    """Keeps a status in memory and traces its use."""

    def __init__(self, replay: "TimerReplay", status: ScheduleStatus | None) -> None:
        self._replay = replay
        self._status = status

    async def read(self) -> ScheduleStatus | None:
        self._replay.trace("status-read", _status_times(self._status))
        return self._status

    async def write(self, status: ScheduleStatus) -> None:
        self._status = status
        self._replay.trace("status-written", _status_times(status))


class TimerReplay:
    """One run of one scenario; `events` are (wall clock time, kind, detail)."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self._scenario = scenario
        self._recorded = recorded_events(scenario)
        self._start = self._recorded[0][0]
        self.events: list[tuple[datetime, str, Any]] = []

    async def run(self) -> None:
        schedule = parse_schedule(self._scenario["schedule"])
        options = self._scenario["options"]
        monitored = options.get("useMonitor", True) and not fires_within_a_minute(
            schedule, self._start.replace(tzinfo=None)
        )
        listener = TimerListener(
            "traced",
            schedule,
            _Store(self, self._stored()) if monitored else None,
            self._function,
            self._log,
            run_on_startup=options.get("runOnStartup", False),
            now=self._now,
        )
        stop = asyncio.Event()
        listening = asyncio.create_task(listener.run(stop))
        stopping = next(moment for moment, kind, _ in self._recorded if kind == "stopping")
        await asyncio.sleep((stopping - self._start).total_seconds())
        self.trace("stopping")
        stop.set()
        await listening
        self.trace("stopped")

    def trace(self, kind: str, detail: Any = None) -> None:
        self.events.append((self._now(), kind, detail))

    def _now(self) -> datetime:
        return self._start + timedelta(seconds=asyncio.get_running_loop().time())

    def _stored(self) -> ScheduleStatus | None:
        """What the recorded host found in the blob."""
        read = next((detail for _, kind, detail in self._recorded if kind == "status-read"), None)
        if read is None or read[1] is None:
            return None
        return ScheduleStatus(*read)

    async def _function(self, call: TimerCall) -> None:
        told = call.to_json()
        status = told["ScheduleStatus"]
        assert status is None or isinstance(status, dict)
        times = tuple(_time(status[name]) if status else None for name in ("Last", "Next", "LastUpdated"))
        self.trace("fire", (told["IsPastDue"], times))
        if "12 s" in self._scenario["note"]:
            await asyncio.sleep(12)
            self.trace("function-ends")

    def _log(self, event: str, /, level: int = 0, **fields: object) -> None:
        if event == "timer.wait":
            self.trace("wait", float(str(fields["seconds"])))
        elif event in ("timer.past_due", "timer.run_on_startup"):
            self.trace(event.removeprefix("timer.").replace("_", "-"))
        elif event != "timer.status_read":
            raise AssertionError(f"the recording has nothing like {event} {fields}")


def recorded_events(scenario: dict[str, Any]) -> list[tuple[datetime, str, Any]]:
    """The recording in the form of TimerReplay.events."""
    events: list[tuple[datetime, str, Any]] = []
    for moment, kind, *rest in scenario["events_utc"]:
        detail: Any = None
        if kind == "wait":
            hours, minutes, seconds = rest[0].split(":")
            detail = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        elif kind == "fire":
            told = rest[0]
            detail = (told["isPastDue"], tuple(_time(told[name]) for name in ("last", "next", "lastUpdated")))
        elif kind.startswith("status-"):
            found = _STATUS.fullmatch(rest[0])
            assert found is not None
            detail = tuple(_time(found[name]) for name in ("last", "next", "updated"))
        elif kind == "started":
            continue  # our listener starts in the background, so there is no such moment
        events.append((datetime.fromisoformat(_DAY + moment).replace(tzinfo=UTC), kind, detail))
    return events


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario["scenario"], scope="module")
def traces(request: pytest.FixtureRequest) -> tuple[list[Any], list[Any]]:
    """The recorded events and ours."""
    replay = TimerReplay(request.param)
    run_in_virtual_time(replay.run())
    return recorded_events(request.param), replay.events


def test_the_same_things_happen_in_the_same_order(traces: tuple[list[Any], list[Any]]) -> None:
    recorded, ours = traces
    assert [kind for _, kind, _ in ours] == [kind for _, kind, _ in recorded]


def test_at_about_the_same_times(traces: tuple[list[Any], list[Any]]) -> None:
    recorded, ours = traces
    for (our_moment, kind, _), (moment, _, _) in zip(ours, recorded, strict=True):
        assert abs((our_moment - moment).total_seconds()) < _NOISE_SECONDS, kind


def test_waits_are_as_long(traces: tuple[list[Any], list[Any]]) -> None:
    recorded, ours = traces
    waits = [detail for _, kind, detail in recorded if kind == "wait"]
    assert [detail for _, kind, detail in ours if kind == "wait"] == pytest.approx(waits, abs=_NOISE_SECONDS)


def test_functions_are_told_and_statuses_hold_the_same(traces: tuple[list[Any], list[Any]]) -> None:
    recorded, ours = traces
    for (_, kind, our_detail), (_, _, detail) in zip(ours, recorded, strict=True):
        if kind == "fire":
            assert our_detail[0] == detail[0]
            _assert_near(our_detail[1], detail[1])
        elif kind.startswith("status-"):
            _assert_near(our_detail, detail)


def _assert_near(ours: tuple[datetime | None, ...], recorded: tuple[datetime | None, ...]) -> None:
    for our_time, time in zip(ours, recorded, strict=True):
        assert (our_time is None) == (time is None)
        if our_time is not None and time is not None:
            assert abs((our_time - time).total_seconds()) < _NOISE_SECONDS


def _status_times(status: ScheduleStatus | None) -> tuple[datetime | None, ...]:
    return (status.last, status.next, status.last_updated) if status else (None, None, None)


def _time(text: str | None) -> datetime | None:
    """A time that never was (nothing, or in year 1) is None."""
    if text in (None, "(null)"):
        return None
    assert text is not None
    value = datetime.fromisoformat(text)
    return None if value.year == 1 else value
