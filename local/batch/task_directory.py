"""A task's directory on a node: where it is, what the task learns about it, what is in it."""

import contextlib
import os
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path

from local.batch.runner import FileEntry, Place, RunOrder

# What a task gets of the emulator's own environment: enough to start programs, nothing that could be a secret.
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "HOME")


class TaskDirectory:
    """`<root>/<node>/workitems/<job>/job-1/<task>` with `stdout.txt`, `stderr.txt` and the working directory `wd`."""

    def __init__(self, root: Path, place: Place) -> None:
        self.node = root.resolve() / place.node
        self.path = self.node / "workitems" / place.job / "job-1" / place.task
        self.work = self.path / "wd"

    def make(self) -> None:
        """Make it anew: what an earlier run of the task left is gone."""
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in (self.work, self.node / "shared", self.node / "startup"):
            folder.mkdir(parents=True, exist_ok=True)
        for name in ("stdout.txt", "stderr.txt"):
            (self.path / name).touch()

    def begin_upload(self) -> None:
        """Batch keeps a log of its uploads beside the task's own output."""
        for name in ("fileuploadout.txt", "fileuploaderr.txt"):
            (self.path / name).touch()

    def wipe(self) -> None:
        """The directory goes, and with the job's last one the job's folders: nobody sees who was here."""
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in (self.path.parent, self.path.parent.parent):
            with contextlib.suppress(OSError):  # other tasks' directories are there
                folder.rmdir()

    def environment(self, order: RunOrder, account_name: str) -> dict[str, str]:
        """The task's environment: a little of the node's, Batch's variables, the task's own."""
        place = order.place
        batch = {
            "AZ_BATCH_ACCOUNT_NAME": account_name,
            "AZ_BATCH_POOL_ID": place.pool,
            "AZ_BATCH_NODE_ID": place.node,
            "AZ_BATCH_NODE_IS_DEDICATED": str(order.dedicated).lower(),
            "AZ_BATCH_NODE_ROOT_DIR": str(self.node),
            "AZ_BATCH_NODE_SHARED_DIR": str(self.node / "shared"),
            "AZ_BATCH_NODE_STARTUP_DIR": str(self.node / "startup"),
            "AZ_BATCH_JOB_ID": place.job,
            "AZ_BATCH_TASK_ID": place.task,
            "AZ_BATCH_TASK_DIR": str(self.path),
            "AZ_BATCH_TASK_WORKING_DIR": str(self.work),
        }
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return inherited | batch | dict(order.environment)

    def entries(self) -> list[FileEntry]:
        """All files and directories in it."""
        return [entry for path in sorted(self.path.rglob("*")) if (entry := self._entry(path))]

    def file(self, path: str) -> Path:
        """A file by its path in the directory; FileNotFoundError for one outside of it."""
        found = (self.path / path).resolve()
        if not found.is_relative_to(self.path):
            raise FileNotFoundError(path)
        return found

    def _entry(self, path: Path) -> FileEntry | None:
        try:
            status = path.stat()
        except OSError:  # the task has removed it meanwhile
            return None
        return FileEntry(
            path.relative_to(self.path).as_posix(),
            stat.S_ISDIR(status.st_mode),
            status.st_size,
            datetime.fromtimestamp(status.st_ctime, UTC),
            datetime.fromtimestamp(status.st_mtime, UTC),
            f"0{status.st_mode:o}",
        )
