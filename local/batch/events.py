"""The event log: everything that happened, one JSON object per event, no secrets.

Every event has `seq`, `time` and `event`. From these a reader can tell what was alive at any instant:

    task_created, task_requeued, task_reactivated    the task waits (again); causes of requeues: node, user, retry
    task_started                          run `run` of the task goes on on a node
    run_ended, run_lost                   that run's process is gone: reported by its node, or with its node
    task_completed, task_deleted, task_forgotten    the task has come to its end
    job_state, node_state, pool_resizing, pool_steady, node_removed, autoscale, fault
    scripted_event                        of the world file; `over`: it is undone; `code`: why it came to nothing
    request                               operation, method, decoded path without query, status, code
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from local.batch.iso8601 import format_time

Event = dict[str, Any]


class EventLog:
    """Keeps events in memory and, with a path, appends them to a file as JSON lines."""

    def __init__(self, path: str | None = None) -> None:
        self.entries: list[Event] = []
        self._path = Path(path) if path else None
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, time: datetime, event: str, **facts: Any) -> None:
        """Note one event; facts that are None or empty texts are left out."""
        entry: Event = {"seq": len(self.entries) + 1, "time": format_time(time), "event": event}
        entry.update({name: fact for name, fact in facts.items() if fact is not None and fact != ""})
        self.entries.append(entry)
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def select(self, *events: str, **facts: Any) -> list[Event]:
        """The events of these kinds (none: all) that have these facts."""
        return [
            entry
            for entry in self.entries
            if (not events or entry["event"] in events)
            and all(entry.get(name) == value for name, value in facts.items())
        ]

    def __deepcopy__(self, _memo: dict[int, Any]) -> "EventLog":
        """A copied world goes on from the same history, without writing into the original's file."""
        twin = EventLog()
        twin.entries = list(self.entries)
        return twin
