"""HASTE's status words, and the fields of a record that show the state of one kind of work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from shared.haste import log_text, records
from shared.haste.workload import Change, JsonObject
from shared.protocol.outcome import Outcome, Result

QUEUED = "Queued"
IN_PROGRESS = "InProgress"
PROCESSED = "Processed"
FAILED = "Failed"
CANCELLED = "Cancelled"
TERMINAL = frozenset({PROCESSED, FAILED, CANCELLED})

STATUS_OF_RESULT = {Result.COMPLETED: PROCESSED, Result.FAILED: FAILED, Result.CANCELLED: CANCELLED}


@dataclass(frozen=True)
class StatusFields:
    """Names of the five fields that belong together. HASTE's UI calls methods on them: none may ever be null.

    `usual_total` is used for records without a total number of steps. The setters change the record they are given.
    """

    status: str
    log: str
    step: str
    total: str
    percent: str
    usual_total: int

    def set_status(self, record: JsonObject, status: str) -> None:
        """Write the status, and defaults for what a lenient writer has left out."""
        record[self.status] = status
        record[self.log] = records.text(record, self.log)
        self.set_step(record, records.count(record, self.step))

    def set_step(self, record: JsonObject, step: int, total: int | None = None) -> None:
        """Write step, total and percentage together; the step never exceeds the total."""
        total = total or records.count(record, self.total) or self.usual_total
        step = min(step, total)
        record.update({self.step: step, self.total: total, self.percent: round(step / total * 100, 2)})

    def complete_steps(self, record: JsonObject) -> None:
        """All steps done, 100 %."""
        self.set_step(record, records.count(record, self.total) or self.usual_total)

    def add_entries(self, record: JsonObject, entries: Iterable[str]) -> int:
        """Append the log entries that are not there yet; how many these were."""
        record[self.log], new = log_text.append_new(records.text(record, self.log), entries)
        return new

    def add_steps(self, record: JsonObject, entries: Iterable[str]) -> None:
        """Append the log entries that are not there yet; each is a step."""
        new = self.add_entries(record, entries)
        self.set_step(record, records.count(record, self.step) + new)

    def add_line(self, record: JsonObject, text: str, at: datetime) -> None:
        """Append one line to the log, unless it is there already."""
        self.add_entries(record, [log_text.entry(text, at)])

    def set_end(self, record: JsonObject, outcome: Outcome, entries: Iterable[str]) -> None:
        """The end of a run whose log `entries` are its steps: its status, the missing entries, its sentence."""
        self.set_status(record, STATUS_OF_RESULT[outcome.result])
        self.add_steps(record, entries)
        self.add_line(record, outcome.sentence, outcome.at)
        if outcome.result is Result.COMPLETED:
            self.complete_steps(record)

    def noting(self, text: str, at: datetime) -> Change:
        """A change that appends one line about a live job, unless the log ends with that text already.

        An end that is shown is that of an earlier run, as this one goes on: it is queued.
        """

        def change(record: JsonObject) -> JsonObject:
            changed = dict(record)
            if records.text(record, self.status) in TERMINAL:
                self.set_status(changed, QUEUED)
            if log_text.last_text(records.text(record, self.log)) != text:
                self.add_line(changed, text, at)
            return changed

        return change


#: Image layers and the training of models.
MAIN = StatusFields("status", "statusMessage", "currentStep", "totalSteps", "progressPct", usual_total=4)
INFERENCE = StatusFields(
    "inferenceStatus",
    "inferenceStatusMessage",
    "inferenceCurrentStep",
    "inferenceTotalSteps",
    "inferenceProgressPct",
    usual_total=7,
)
