"""Messages that cannot be accepted are kept as they came, with the reason, for an operator to look at and replay."""

from __future__ import annotations

import structlog

from shared.storage.blob_container import BlobContainer

log = structlog.get_logger(__name__)

_MOST_REASON_CHARACTERS = 1000


class Rejected:
    """`rejected/<queue>/<message id>` in the worker's container: the body byte for byte, the reason as metadata."""

    def __init__(self, container: BlobContainer) -> None:
        self._container = container

    def keep(self, queue_name: str, message_id: str, body: bytes, reason: str) -> None:
        """Keep a message, once. The body is never logged."""
        ascii_reason = reason.encode("ascii", "backslashreplace").decode()[:_MOST_REASON_CHARACTERS]
        metadata = {"reason": " ".join(ascii_reason.split())}
        self._container.create_with_etag(f"rejected/{queue_name}/{message_id}", body, metadata)
        log.error("message rejected", queue=queue_name, message=message_id, reason=reason, size_bytes=len(body))
