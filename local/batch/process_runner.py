"""Runs tasks as processes on this computer."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from local.batch import command, output_files, resource_files
from local.batch.config import WorldConfig
from local.batch.runner import Failure, FileEntry, Place, RunEnd, RunOrder
from local.batch.storage import Interrupted, Storage
from local.batch.task_directory import TaskDirectory

_KILLED = 137
_DEATH_SECONDS = 10.0


class ProcessRunner:
    """Each run is a thread that fetches inputs, runs the process, uploads outputs and reports.

    The processes of a run are one process group and are killed as one. A process that leaves the group outlives it.
    """

    def __init__(self, config: WorldConfig) -> None:
        self._config = config
        self._root = Path(config.root)
        self._storage = Storage(config.storage_identity)
        self._runs: dict[int, _ProcessRun] = {}
        self._ended: Callable[[int, RunEnd], None] = lambda _run, _end: None

    def bind(self, ended: Callable[[int, RunEnd], None], _at: Callable[[float, int], None]) -> None:
        self._ended = ended

    def start(self, order: RunOrder) -> None:
        directory = TaskDirectory(self._root, order.place)
        run = _ProcessRun(order, directory, self._config, self._storage, self._report)
        self._runs[order.run] = run
        run.thread.start()

    def _report(self, run: int, end: RunEnd) -> None:
        self._runs.pop(run, None)
        self._ended(run, end)

    def kill(self, run: int, upload_outputs: bool) -> None:
        found = self._runs.get(run)
        if found:
            found.end("killed, uploading" if upload_outputs else "killed")

    def abandon(self, run: int) -> None:
        found = self._runs.pop(run, None)
        if found:
            found.end("abandoned")

    def on_time(self, run: int) -> None:
        pass

    def wipe_node(self, pool: str, node: str) -> None:  # noqa: ARG002 - a node's id is unique in itself
        shutil.rmtree(self._root / node, ignore_errors=True)

    def wipe_task(self, place: Place) -> None:
        TaskDirectory(self._root, place).wipe()

    def files(self, place: Place) -> list[FileEntry]:
        return TaskDirectory(self._root, place).entries()

    def read_file(self, place: Place, path: str) -> bytes:
        return TaskDirectory(self._root, place).file(path).read_bytes()

    def delete_file(self, place: Place, path: str) -> None:
        file = TaskDirectory(self._root, place).file(path)
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        for run in list(self._runs):
            self.abandon(run)


class _ProcessRun:
    """One run. `wish` is how it is to end before its time: "", killed, "killed, uploading" or abandoned."""

    def __init__(
        self,
        order: RunOrder,
        directory: TaskDirectory,
        config: WorldConfig,
        storage: Storage,
        report: Callable[[int, RunEnd], None],
    ) -> None:
        self._order = order
        self._directory = directory
        self._config = config
        self._storage = storage
        self._report = report
        self._lock = threading.Lock()
        self._wish = ""
        self._killed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = directory.environment(order, config.account.name)
        self.thread = threading.Thread(target=self._live, name=f"task-{order.place.task}", daemon=True)

    def end(self, wish: str) -> None:
        """Kill the processes; on return they are gone."""
        with self._lock:
            self._wish = wish
            process = self._process
            if process and process.poll() is None:
                self._killed = True
                _kill_group(process)
        if process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_DEATH_SECONDS)

    def _live(self) -> None:
        # What nobody has foreseen is reported too, before it shows up as the thread's traceback: a run without a
        # report would show as running for ever.
        end = RunEnd(failure=Failure("Unknown", "servererror", "The emulator's own fault", stage="before"))
        try:
            end = self._run()
        except Interrupted:
            end = RunEnd(killed=True)
        except command.CannotStart as error:
            end = RunEnd(failure=error.failure)
        except OSError as error:
            message = f"The node's disk fails: {error.strerror}"
            end = RunEnd(failure=Failure("ResourceDirectoryCreateFailed", "servererror", message, stage="before"))
        finally:
            with self._lock:
                abandoned = self._wish == "abandoned"
            if not abandoned:
                self._report(self._order.run, end)

    def _run(self) -> RunEnd:
        spec, work = self._order.spec, self._directory.work
        self._directory.make()
        resource_files.fetch(spec, work, self._storage, self._stopping)
        exit_code = self._execute(command.arguments(spec, self._config.images))
        if self._killed and self._wish != "killed, uploading":
            return RunEnd(exit_code=_KILLED, killed=True)
        succeeded = exit_code == 0 and not self._killed
        self._directory.begin_upload()
        upload_failure = output_files.upload(spec, succeeded, work, self._environment, self._storage, self._giving_up)
        return RunEnd(exit_code=exit_code, failure=upload_failure if succeeded else None, killed=self._killed)

    def _execute(self, arguments: list[str]) -> int:
        with (
            (self._directory.path / "stdout.txt").open("ab") as out,
            (self._directory.path / "stderr.txt").open("ab") as err,
        ):
            with self._lock:
                if self._wish:
                    raise Interrupted
                try:
                    self._process = subprocess.Popen(
                        arguments,
                        cwd=self._directory.work,
                        env=self._environment,
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        start_new_session=True,
                    )
                except (OSError, ValueError) as error:
                    raise command.CannotStart(command.not_started(error)) from None
            code = self._process.wait()
        _kill_group(self._process)
        return 128 - code if code < 0 else code

    def _stopping(self) -> bool:
        return bool(self._wish)

    def _giving_up(self) -> bool:
        return self._wish in ("killed", "abandoned")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
