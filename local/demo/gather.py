"""Collects the texts that are searched for secrets, and the values to search for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from local.demo.evidence import BatchTask, Record, Secret, Text
from local.stack import Stack
from local.stack.reaper import marked_pids
from local.stack.services import FUNCTION_KEY

_LOG_FIELDS = ("statusMessage", "inferenceStatusMessage")


class CommandLines:
    """The command lines of everything that the stack has started, as anybody on the machine can see them."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._seen: dict[str, None] = {}

    def look(self) -> None:
        """Note those of the processes that live now."""
        for pid in marked_pids(self._mark):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            self._seen.setdefault(line.replace(b"\0", b" ").decode(errors="replace"))

    def texts(self) -> Iterator[Text]:
        """One per command line."""
        for number, line in enumerate(self._seen, 1):
            yield Text(f"command line {number} of the stack's processes", line)


def telling(events: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Without the requests that only read: most of the log, and nothing in it to judge."""
    return tuple(e for e in events if e["event"] != "request" or e.get("method") not in ("GET", "HEAD"))


def task_texts(tasks: Iterable[BatchTask]) -> Iterator[Text]:
    """Command line and environment settings of each task."""
    for task in tasks:
        yield Text(f"command line of task {task.task_id}", task.command_line)
        settings = "\n".join(f"{name}={value}" for name, value in task.environment.items())
        yield Text(f"environment of task {task.task_id}", settings)


def record_texts(*records: Record) -> Iterator[Text]:
    """What HASTE's page shows its users of each record, and the logs that its jobs keep."""
    for number, record in enumerate(records, 1):
        jobs = [record.get("preprocessJob"), record.get("trainingJob"), *(record.get("inferenceJobs") or [])]
        shown = [str(record.get(field) or "") for field in _LOG_FIELDS]
        shown += [str(job.get("logs") or "") for job in jobs if job]
        yield Text(f"status texts of HASTE's record {number}", "\n".join(shown))


def file_texts(paths: Iterable[Path]) -> Iterator[Text]:
    """The stack's log files."""
    for path in paths:
        yield Text(f"log {path.name}", path.read_text(encoding="utf-8", errors="replace"))


def secrets(stack: Stack) -> tuple[Secret, ...]:
    """The keys of this stack. That they are well known does not matter: in Azure they would not be."""
    keys = [Secret(f"the storage key of {name}", account.key) for name, account in stack.accounts.items()]
    return (
        *keys,
        Secret("the Batch account's key", stack.batch.key),
        Secret("the identity endpoint's secret", stack.identity.secret),
        Secret("the function key", FUNCTION_KEY),
    )
