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
            here = greenlet.getcurrent()
            if isinstance(here, Actor):
                here.at = f"{self._name}.{method}"
                here.parent.switch()
            result = real(*args, **kwargs)
            return list(result) if method == "live" else result

        return call


class Crash(greenlet.GreenletExit):
    """The process dies here: nothing the actor would still do happens."""


class Actor(greenlet.greenlet):
    """One handler or timer at work."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        super().__init__(work)
        self.name = name
        self.at = "start"

    def step(self) -> None:
        """Go on to just before the next access, or to the end."""
        self.switch()

    def crash(self) -> None:
        """Die before the access it stands at."""
        if not self.dead:
            self.throw(Crash)
