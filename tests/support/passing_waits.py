"""Waits of the worker's one place that waits, passing at once: every pause is noted, and a clock moves with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import TypeVar

import pytest
import tenacity

from shared import retry

T = TypeVar("T")


class PassingWaits:
    """Notes the pauses; `monotonic` is the clock that they move."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._began = time.monotonic()

    def monotonic(self) -> float:
        return self._began + sum(self.seconds)

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def patiently(self, call: Callable[[], T]) -> T:
        """`retry.patiently` with these pauses."""
        return retry.patiently(call, sleep=self.sleep)

    @classmethod
    def installed(cls, patch: pytest.MonkeyPatch) -> PassingWaits:
        """For the Batch adapter, for the rest of the test."""
        waits = cls()
        patch.setattr(tenacity, "time", SimpleNamespace(monotonic=waits.monotonic))
        patch.setattr("shared.batch.client.patiently", waits.patiently)
        return waits
