"""A runner without processes: the test says when and how a run ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from local.batch.runner import FileEntry, Place, RunEnd, RunOrder

_SOME_TIME = datetime(2026, 1, 5, tzinfo=UTC)
_KILLED = 137


@dataclass
class _Live:
    order: RunOrder
    kill_asked: bool = False


@dataclass
class ScriptedRunner:
    """Runs nothing. `finish`, `finish_kill` and `put_file` are the test's side.

    finish_after_seconds: every run ends by itself with exit code 0 after this many seconds of the world's clock;
        None: only `finish` ends a run.
    holds_kills: a killed run goes on until `finish_kill`, as a process that takes its time to die.
    """

    finish_after_seconds: float | None = None
    holds_kills: bool = False
    live: dict[int, _Live] = field(default_factory=dict)
    stored: dict[Place, dict[str, bytes]] = field(default_factory=dict)
    _ended: Callable[[int, RunEnd], None] = lambda _run, _end: None
    _at: Callable[[float, int], None] = lambda _seconds, _run: None

    # the test's side

    def running(self) -> list[tuple[str, str]]:
        """(job, task) of every live run, in the order of their start."""
        return [(live.order.place.job, live.order.place.task) for live in self.live.values()]

    def finish(self, job: str, task: str, end: RunEnd | int = 0) -> None:
        """The run of this task ends by itself, with an exit code or a whole `RunEnd`. KeyError when it does not run."""
        number = self._find(job, task)
        del self.live[number]
        self._ended(number, end if isinstance(end, RunEnd) else RunEnd(exit_code=end))

    def finish_kill(self, job: str, task: str) -> None:
        """The process of a run that was asked to end is gone now."""
        number = self._find(job, task)
        if not self.live[number].kill_asked:
            raise KeyError(f"nobody has asked for the end of {job}/{task}")
        del self.live[number]
        self._ended(number, RunEnd(exit_code=_KILLED, killed=True))

    def put_file(self, job: str, task: str, path: str, content: bytes) -> None:
        """The running task writes a file; `path` is relative to the task's directory, e.g. `wd/logs/x.log`."""
        place = self.live[self._find(job, task)].order.place
        self.stored.setdefault(place, {})[path] = content

    def _find(self, job: str, task: str) -> int:
        for number, live in self.live.items():
            if (live.order.place.job.lower(), live.order.place.task.lower()) == (job.lower(), task.lower()):
                return number
        raise KeyError(f"{job}/{task} does not run")

    # the core's side

    def bind(self, ended: Callable[[int, RunEnd], None], at: Callable[[float, int], None]) -> None:
        self._ended, self._at = ended, at

    def start(self, order: RunOrder) -> None:
        self.live[order.run] = _Live(order)
        self.stored[order.place] = {"stdout.txt": b"", "stderr.txt": b""}
        if self.finish_after_seconds is not None:
            self._at(self.finish_after_seconds, order.run)

    def kill(self, run: int, upload_outputs: bool) -> None:  # noqa: ARG002 - nothing is uploaded here
        live = self.live.get(run)
        if live is None or live.kill_asked:
            return
        live.kill_asked = True
        if not self.holds_kills:
            self._at(0.0, run)

    def abandon(self, run: int) -> None:
        self.live.pop(run, None)

    def on_time(self, run: int) -> None:
        live = self.live.get(run)
        if live is None or (live.kill_asked and self.holds_kills):
            return
        del self.live[run]
        self._ended(run, RunEnd(exit_code=_KILLED, killed=True) if live.kill_asked else RunEnd(exit_code=0))

    def wipe_node(self, pool: str, node: str) -> None:
        self.stored = {place: files for place, files in self.stored.items() if (place.pool, place.node) != (pool, node)}

    def wipe_task(self, place: Place) -> None:
        self.stored.pop(place, None)

    def files(self, place: Place) -> list[FileEntry]:
        files = self.stored.get(place, {})
        folders = {"wd"} if files else set()
        for path in files:
            parts = path.split("/")[:-1]
            folders.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
        entries = [FileEntry(path, True, 0, _SOME_TIME, _SOME_TIME, "") for path in folders]
        entries += [
            FileEntry(path, False, len(body), _SOME_TIME, _SOME_TIME, "0100644") for path, body in files.items()
        ]
        return sorted(entries, key=lambda entry: entry.path)

    def read_file(self, place: Place, path: str) -> bytes:
        try:
            return self.stored[place][path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def delete_file(self, place: Place, path: str) -> None:
        files = self.stored.get(place, {})
        self.stored[place] = {
            name: body for name, body in files.items() if name != path and not name.startswith(path + "/")
        }

    def close(self) -> None:
        self.live.clear()
