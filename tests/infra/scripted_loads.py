"""A pool whose tasks and preemptions are told, scaled by a formula in the emulator's interpreter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from local.batch import formula
from local.batch.formula.variables import NODE_METRICS

_SAMPLE = timedelta(seconds=30)
_LAG = timedelta(seconds=60)
_OTHER = {"TargetLowPriorityNodes": "TargetDedicatedNodes", "TargetDedicatedNodes": "TargetLowPriorityNodes"}


class ScriptedPool:
    """`after` lets time pass under a load, evaluates as often as the pool does, and gives the new target.

    Every evaluation must work, leave the other kind of nodes at 0, and take no node from a running task.
    """

    def __init__(self, text: str, bucket: str, interval: timedelta) -> None:
        self._text, self._bucket, self._interval = text, bucket, interval
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._next = self._now + interval
        self._history = formula.History()
        self.target = 0

    def after(self, span: timedelta, *, pending: float = 0, preempted: float = 0, samples: bool = True) -> int:
        """The target at the end of `span`."""
        end = self._now + span
        while self._now < end:
            self._now += _SAMPLE
            if samples:
                values = {"$PendingTasks": float(pending), "$RunningTasks": float(pending), "$ActiveTasks": 0.0}
                self._history.add(self._now, {**values, "$PreemptedNodeCount": float(preempted)})
            if self._now >= self._next:
                self._next += self._interval
                self._evaluate()
        return self.target

    def _evaluate(self) -> None:
        spot = self._bucket == "TargetLowPriorityNodes"
        situation = formula.Situation(
            now=self._now,
            history=self._history,
            lag=_LAG,
            current=dict.fromkeys(NODE_METRICS, 0.0),
            dedicated=0 if spot else self.target,
            low_priority=self.target if spot else 0,
        )
        outcome = formula.evaluate(self._text, situation)
        assert outcome.error is None, outcome.error
        assert outcome.option == "taskcompletion"
        self.target, other = outcome.low_priority, outcome.dedicated
        if not spot:
            self.target, other = other, self.target
        assert other == 0, f"{_OTHER[self._bucket]} is not 0"
