"""How long a stand-in task takes, and whether it fails: set by environment variables."""

import os
import time


class RequestedFailureError(RuntimeError):
    """The task fails because HASTE_LOCAL_FAIL is 1."""


class Pace:
    """Spreads HASTE_LOCAL_SECONDS evenly over ``steps`` calls of :meth:`step`."""

    def __init__(self, steps: int) -> None:
        total_seconds = float(os.environ.get("HASTE_LOCAL_SECONDS") or 0)
        self._seconds_per_step = max(0.0, total_seconds) / max(1, steps)

    def step(self) -> None:
        """Sleep for one step's share."""
        if self._seconds_per_step:
            time.sleep(self._seconds_per_step)


def fail_if_asked() -> None:
    """Raise RequestedFailureError if HASTE_LOCAL_FAIL is 1."""
    if os.environ.get("HASTE_LOCAL_FAIL") == "1":
        raise RequestedFailureError("the task was asked to fail")
