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
        self._lease_id: str | None = None

    @contextmanager
    def held(self) -> Iterator[bool]:
        """True while the lease is ours; False if somebody else holds it."""
        lease_id = self._container.acquire_lease(self._name, LEASE_SECONDS)
        if lease_id is None:
            yield False
            return
        self._lease_id = lease_id
        try:
            yield True
        finally:
            self._lease_id = None
            self._container.release_lease(self._name, lease_id)

    def renew(self) -> bool:
        """Let the lease begin anew while it is held; False if it is somebody else's by now."""
        return self._lease_id is not None and self._container.renew_lease(self._name, self._lease_id)
