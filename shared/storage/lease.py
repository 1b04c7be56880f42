"""A blob lease: lets one of several timers work at a time. An economy, not a safeguard: leases can be lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shared.storage.blob_container import BlobContainer

#: Longer than a tick takes as a rule, short enough that a killed process does not stop the others for long.
LEASE_SECONDS = 60


class BlobLease:
    """A lease on one blob of the worker's container."""

    def __init__(self, container: BlobContainer, name: str) -> None:
        self._container = container
        self._name = name

    @contextmanager
    def held(self) -> Iterator[bool]:
        """True while the lease is ours; False if somebody else holds it."""
        lease_id = self._container.acquire_lease(self._name, LEASE_SECONDS)
        if lease_id is None:
            yield False
            return
        try:
            yield True
        finally:
            self._container.release_lease(self._name, lease_id)
