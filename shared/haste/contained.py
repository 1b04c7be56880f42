"""A kind of work whose results and records can stop nothing but its own job.

What tasks leave behind and what HASTE's records hold is data of users and of programs that are not ours; some day a
library raises on it what nobody foresaw. Without this, that exception would come again with every run of the timer, and
the job would never end.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import structlog

from shared.batch.task_spec import TaskSpec
from shared.errors import Conflict, JobOver, NeedsOperator, Transient
from shared.haste.workload import Change, JsonObject, Shown, TaskFiles, Workload
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd

log = structlog.get_logger(__name__)

#: A service, this machine or the deployment is at fault, not the job: that passes or is mended, and nothing is decided.
_NOT_THE_JOBS_FAULT = (Conflict, Transient, NeedsOperator, JobOver, OSError, ImportError, MemoryError)


class PlainlyEnding(Workload, Protocol):
    """A workload that can show an end without looking at any result."""

    def plain_end(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:
        """As `finished`, without the fields and log lines that follow from results. Reads nothing."""


class Contained:
    """See `Workload`. An exception that nobody foresaw becomes a sentence about the job, and a line for operators.

    progress, submitted, noted: nothing new is shown. outcome: the job fails with a neutral sentence. finished: the end
    is shown without results. follow_up: nothing follows.
    """

    def __init__(self, workload: PlainlyEnding) -> None:
        self.kind: Kind = workload.kind
        self._workload = workload

    def record_name(self, entity: Entity) -> str:
        """See `Workload`."""
        return self._workload.record_name(entity)

    def shown(self, record: JsonObject) -> Shown:
        """See `Workload`."""
        return self._workload.shown(record)

    def check(self, entity: Entity) -> None:
        """See `Workload`."""
        self._workload.check(entity)

    def prepare(self, run: Run, resign: Callable[[str], str]) -> TaskSpec:
        """See `Workload`."""
        return self._workload.prepare(run, resign)

    def submitted(self, run: Run, at: datetime) -> Change:
        """See `Workload`."""
        return _attempted("submitted", run, lambda: self._workload.submitted(run, at), _unchanged)

    def progress(self, run: Run, files: TaskFiles, at: datetime) -> Change | None:
        """See `Workload`."""
        try:
            change = self._workload.progress(run, files, at)
        except _NOT_THE_JOBS_FAULT:
            raise
        except Exception:  # noqa: BLE001  (told; the task goes on, and its progress is not worth more than that)
            _tell("progress", run)
            return None
        return change and _attempted("progress", run, lambda: change, self.submitted(run, run.placed_at or at))

    def noted(self, run: Run, sentence: str, at: datetime) -> Change:
        """See `Workload`."""
        return _attempted("noted", run, lambda: self._workload.noted(run, sentence, at), _unchanged)

    def outcome(self, run: Run, end: TaskEnd) -> Outcome:
        """See `Workload`."""
        try:
            return self._workload.outcome(run, end)
        except _NOT_THE_JOBS_FAULT:
            raise
        except Exception:  # noqa: BLE001  (told; the task has ended, and nothing else will ever end its job)
            _tell("outcome", run)
        return Outcome(Result.FAILED, f"Its results could not be read (reference {run.task_id})", end.ended_at)

    def finished(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:
        """See `Workload`."""
        plain = lambda: self._workload.plain_end(run, outcome, shown_before=shown_before)  # noqa: E731
        whole = lambda: self._workload.finished(run, outcome, shown_before=shown_before)  # noqa: E731
        return _attempted("finished", run, whole, _attempted("plain end", run, plain, _unchanged))

    def to_zip(self, run: Run, outcome: Outcome) -> JsonObject | None:
        """See `Workload`."""
        try:
            return self._workload.to_zip(run, outcome)
        except _NOT_THE_JOBS_FAULT:
            raise
        except Exception:  # noqa: BLE001  (told; the job that has ended must not wait for its zip)
            _tell("zip", run)
            return None

    def follow_up(self, run: Run, outcome: Outcome) -> Kind | None:
        """See `Workload`."""
        try:
            return self._workload.follow_up(run, outcome)
        except _NOT_THE_JOBS_FAULT:
            raise
        except Exception:  # noqa: BLE001  (told; the job that has ended must not wait for what could follow)
            _tell("follow-up", run)
            return None


def _attempted(part: str, run: Run, make: Callable[[], Change], otherwise: Change) -> Change:
    """The change that `make` returns; `otherwise` where making it, or applying it to a record, raises."""
    try:
        change = make()
    except _NOT_THE_JOBS_FAULT:
        raise
    except Exception:  # noqa: BLE001  (told; another change takes its place)
        _tell(part, run)
        return otherwise

    def attempted(record: JsonObject) -> JsonObject:
        try:
            return change(copy.deepcopy(record))
        except _NOT_THE_JOBS_FAULT:
            raise
        except Exception:  # noqa: BLE001  (as above)
            _tell(part, run)
            return otherwise(record)

    return attempted


def _unchanged(record: JsonObject) -> JsonObject:
    return record


def _tell(part: str, run: Run) -> None:
    """With the traceback, and under the name that operators are alerted by: it may be a fault of ours."""
    log.exception("record not looked at", record=run.entity.key, part=part, task=run.task_id)
