"""What the rest of the worker knows about a kind of HASTE work: the `Workload` protocol and its values.

Each kind is one module beside this one. A workload knows HASTE's records, configs, command lines and results;
it knows nothing of Batch, SAS, the ledger or retries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.batch.task_spec import TaskSpec
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Run, TaskEnd

JsonObject = dict[str, Any]

#: Of a file on a node, so much is read at once unless a reader asks for less.
MOST_BYTES_OF_FILE = 8 * 1024 * 1024

#: Takes a freshly read HASTE record and returns it changed. Must keep unknown keys and may be called more than once.
Change = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True)
class Shown:
    """What HASTE's record says about this kind of work: its status word, and id and status of the job it names."""

    status: str | None
    task_id: str | None
    job_status: str | None = None


class TaskFiles(Protocol):
    """Files of a running task, read from its node. None = not available now."""

    def read(self, path: str, offset: int = 0, most_bytes: int = MOST_BYTES_OF_FILE) -> bytes | None:
        """Bytes of one file from `offset`, none at or behind its end; None if it cannot be had.

        `path` is relative to the task directory (`wd/logs/x.log`).
        """

    def names(self, prefix: str) -> list[str]:
        """Paths below `prefix` (recursive); empty if they cannot be had."""


class Blobs(Protocol):
    """HASTE's container (records, configs, artifacts). A missing blob is None; every other failure raises."""

    def url(self, name: str) -> str:
        """Plain URL of a blob, no SAS."""

    def reading_url(self, name: str) -> str:
        """URL with HASTE's long-lived, policy-based container read SAS, as stored in HASTE's records."""

    def read(self, name: str) -> bytes | None:
        """Whole content."""

    def read_range(self, name: str, offset: int, length: int) -> bytes | None:
        """Up to `length` bytes from `offset`, none at or behind the end."""

    def size_bytes(self, name: str) -> int | None:
        """Content length; None if the blob does not exist."""

    def write(self, name: str, content: bytes) -> None:
        """Create or overwrite."""

    def create(self, name: str, content: bytes) -> bool:
        """Create; False (and nothing changed) if it exists."""

    def names(self, prefix: str) -> list[str]:
        """Names of blobs directly at this prefix (delimiter `/`), sorted."""


class Workload(Protocol):
    """One kind of HASTE work."""

    kind: Kind

    def record_name(self, entity: Entity) -> str:
        """Blob name of the HASTE record that shows this work."""

    def shown(self, record: JsonObject) -> Shown:
        """What the record says about this kind of work."""

    def check(self, entity: Entity) -> None:
        """Everything the task needs is there. Raises NotThere (own record), NotYet, or Refused (never will be)."""

    def prepare(self, run: Run, resign: Callable[[str], str]) -> TaskSpec:
        """Write the config blobs of this run and describe its task; repeatable.

        `resign` replaces the credentials of one URL that goes into a config file; a URL that is not of the tenant's
        own account comes back as it is. Raises NotThere, NotYet or Refused.
        """

    def submitted(self, run: Run, at: datetime) -> Change:
        """The record once the task is added: in progress, naming job and task."""

    def progress(self, run: Run, files: TaskFiles, at: datetime) -> Change | None:
        """The record with the progress read from the node; None when there is nothing to read."""

    def noted(self, run: Run, sentence: str, at: datetime) -> Change:
        """The record with one more line for users (waiting, preempted, moved), unless it is the last line already."""

    def outcome(self, run: Run, end: TaskEnd) -> Outcome:
        """What a task that ended by itself amounts to, judged by the result blobs it left."""

    def finished(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:
        """The record at the end. May first write what belongs to the result (label project).

        Repeatable: the change applied to its own result changes nothing. `shown_before`: it has been shown, and a late
        save is mended: what follows from it may be over by now.
        """

    def follow_up(self, run: Run, outcome: Outcome) -> Kind | None:
        """The kind of work to start next for the same project and entity, if any (reads HASTE's record)."""

    def to_zip(self, run: Run, outcome: Outcome) -> JsonObject | None:
        """HASTE's record, once it shows this end, if HASTE zips what such a run has left; else None.

        May first write what belongs to a zip's record.
        """
