"""What the core wants from whatever runs the tasks. `scripted_runner` and `process_runner` do it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True)
class Place:
    """Where a run of a task happens. `boot` counts the node's starts: a node that came back is another place."""

    pool: str
    node: str
    boot: int
    job: str
    task: str


@dataclass(frozen=True)
class RunOrder:
    """One run of a task on a node: the task as it was created, and the environment that it adds to the node's own."""

    run: int
    place: Place
    dedicated: bool
    spec: Mapping[str, Any]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Failure:
    """A task's failureInfo. `stage` says which exit condition applies: program, before (inputs, image) or upload."""

    code: str
    category: str
    message: str
    details: Mapping[str, str] | None = None
    stage: str = "program"


@dataclass(frozen=True)
class RunEnd:
    """How a run ended. `killed`: because `kill` was called, not by itself. `exit_code` None: no process was started."""

    exit_code: int | None = None
    failure: Failure | None = None
    killed: bool = False


@dataclass(frozen=True)
class FileEntry:
    """A file or directory in a task's directory; `path` is relative to it, with slashes."""

    path: str
    is_directory: bool
    size_bytes: int
    created: datetime
    modified: datetime
    mode: str


class Runner(Protocol):
    """Runs tasks. The core calls it while it holds its lock, so every method returns soon.

    `ended(run, end)` is to be called exactly once for each run that was started and not abandoned; `at(seconds, run)`
    asks for a call of `on_time(run)` later, on the world's clock.
    """

    def bind(self, ended: Callable[[int, RunEnd], None], at: Callable[[float, int], None]) -> None: ...

    def start(self, order: RunOrder) -> None: ...

    def kill(self, run: int, upload_outputs: bool) -> None:
        """End the processes of a run; it is reported when they are gone."""

    def abandon(self, run: int) -> None:
        """The node is lost: the processes vanish, nothing is uploaded or reported."""

    def on_time(self, run: int) -> None: ...

    def wipe_node(self, pool: str, node: str) -> None:
        """The node's disk is gone."""

    def wipe_task(self, place: Place) -> None:
        """The task's directory is gone."""

    def files(self, place: Place) -> list[FileEntry]:
        """All that is in the task's directory; empty when there is none."""

    def read_file(self, place: Place, path: str) -> bytes:
        """A file's content; FileNotFoundError when it has gone."""

    def delete_file(self, place: Place, path: str) -> None: ...

    def close(self) -> None:
        """Kill all that runs."""
