"""Batch jobs of version 0.1.0 without a live record: whose they are, the requests that have ended in them tell.

That version wrote the tenant into a job, and not the storage account. A job that nobody claims is never ended, and
counts against the account's quota. The ended requests are many, so a run of the timer reads a part of them, as long as
there is such a job.
"""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from shared.batch.types import BatchService
from shared.errors import Unreadable
from shared.ledger.blob_ledger import done_entry
from shared.storage.blob_container import BlobContainer

log = structlog.get_logger(__name__)

_MOST_READ = 200


class PastJobs:
    """Goes through the ended requests once per process."""

    def __init__(self, container: BlobContainer) -> None:
        self._container = container
        self._read_up_to = ""
        self._found: set[str] = set()
        self._has_read_all = False

    def claim(self, batch: BatchService) -> None:
        """Claim jobs of ours among those that nobody claims."""
        unclaimed = batch.unclaimed()
        if not unclaimed:
            return
        self._found.update(self._further())
        for job in unclaimed:
            if job.job_id in self._found:
                batch.claim(job)

    def _further(self) -> Iterator[str]:
        """Batch jobs that the next ended requests have run in."""
        read = 0
        for name, _metadata, _version in () if self._has_read_all else self._container.list_with_metadata("done/"):
            if name <= self._read_up_to:
                continue
            if read == _MOST_READ:
                return
            read += 1
            self._read_up_to = name
            content = self._container.read(name)
            try:
                run = None if content is None else done_entry(content, name).run
            except Unreadable as error:
                log.warning("an ended request tells no Batch job", error=str(error))
                continue
            if run is not None and run.job_id is not None:
                yield run.job_id
        self._has_read_all = True
