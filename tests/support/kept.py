"""The worker's container as far as rejected messages go, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from shared.storage.blob_container import BlobContainer
from shared.storage.rejected import Rejected


class KeptBlobs:
    """Name -> (content, metadata); created if absent, never overwritten."""

    def __init__(self) -> None:
        self.blobs: dict[str, tuple[bytes, dict[str, str]]] = {}

    def create_with_etag(self, name: str, content: bytes, metadata: Mapping[str, str]) -> str | None:
        if name in self.blobs:
            return None
        self.blobs[name] = (content, dict(metadata))
        return '"1"'

    def rejected(self) -> Rejected:
        return Rejected(cast(BlobContainer, self))
