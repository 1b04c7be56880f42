"""Runs handlers and timers of the real worker as step sequences: every access to storage or Batch is one step.

An actor is a greenlet that stops before each access. A scheduler decides who takes the next step, who crashes there,
and who is left standing, to go on later as a zombie. Nothing in the worker knows of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import greenlet


class Stepped:
    """A port whose every method is one step of the actor that calls it."""

    def __init__(self, name: str, port: Any) -> None:
        self._name = name
        self._port = port

    def __getattr__(self, method: str) -> Any:
        real = getattr(self._port, method)

        def call(*args: Any, **kwargs: Any) -> Any:
            actor = getattr(greenlet.getcurrent(), "actor", None)
            if actor is not None:
                actor.stop_before(f"{self._name}.{method}")
            return real(*args, **kwargs)

        return call


class Actor:
    """One handler or timer at work."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name = name
        self.at = "start"
        self._greenlet = greenlet.greenlet(work)
        self._greenlet.actor = self

    @property
    def dead(self) -> bool:
        """It has come to its end, or has crashed."""
        return bool(self._greenlet.dead)

    def step(self) -> None:
        """Go on to just before the next access, or to the end."""
        self._greenlet.switch()

    def stop_before(self, access: str) -> None:
        """Called by the actor itself: let the scheduler decide when this access happens."""
        self.at = access
        self._greenlet.parent.switch()

    def crash(self) -> None:
        """Die before the access it stands at: nothing it would still do happens."""
        if not self.dead:
            self._greenlet.throw(greenlet.GreenletExit)
