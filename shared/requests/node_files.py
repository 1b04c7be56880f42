"""Files of a running task, read from its node."""

from __future__ import annotations

from shared.haste.workload import MOST_BYTES_OF_FILE
from shared.worker import Worker


class NodeFiles:
    """`TaskFiles` of one attempt, served by its node through Batch."""

    def __init__(self, worker: Worker, job_id: str, task_id: str) -> None:
        self._worker = worker
        self._job_id = job_id
        self._task_id = task_id

    def read(self, path: str, offset: int = 0, most_bytes: int = MOST_BYTES_OF_FILE) -> bytes | None:
        """See `TaskFiles.read`."""
        content = self._worker.batch.read_task_file(self._job_id, self._task_id, path, offset, most_bytes)
        if content is None:
            self._worker.memory.file_names.forget(self._task_id)  # it may run anew, with other files
        return content

    def names(self, prefix: str) -> list[str]:
        """See `TaskFiles.names`. What is there is remembered for a while: files come seldom, they grow."""
        memory, now = self._worker.memory.file_names, self._worker.now()
        names = memory.names(self._task_id, prefix, now)
        if not names:
            names = tuple(self._worker.batch.task_file_names(self._job_id, self._task_id, prefix))
            memory.remember(self._task_id, prefix, names, now)
        return list(names)
