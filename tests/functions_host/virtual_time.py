"""An event loop whose clock jumps: waiting costs no time, so a trace of ten minutes replays in milliseconds."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _JumpingSelector(selectors.DefaultSelector):
    """Moves the clock forward instead of blocking; `seconds` is the time since the loop was made."""

    seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("everything waits and no timer is left: a deadlock")
        self.seconds += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Single-threaded only: nothing outside the loop may be waited for."""

    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.seconds


def run_in_virtual_time(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end on a fresh virtual clock that starts at 0."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
