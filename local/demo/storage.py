"""The demo's own view of a tenant's storage account, with the account's key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient

from local.demo.evidence import Text
from local.stack.settings import CONTAINER, WORKER_CONTAINER


class Storage:
    """HASTE's container, and the worker's own."""

    def __init__(self, connection_string: str) -> None:
        self._haste = ContainerClient.from_connection_string(connection_string, CONTAINER)
        self._worker = ContainerClient.from_connection_string(connection_string, WORKER_CONTAINER)
        self._seen_live: dict[str, None] = {}

    def record(self, blob_name: str) -> dict[str, Any]:
        """One of HASTE's records; empty if there is none."""
        try:
            record: dict[str, Any] = json.loads(self._haste.download_blob(blob_name).readall())
        except ResourceNotFoundError:
            return {}
        return record

    def names(self) -> tuple[str, ...]:
        """Every blob of HASTE's container."""
        return tuple(self._haste.list_blob_names())

    def task_logs(self) -> Iterator[Text]:
        """What the tasks wrote to their streams and logs."""
        for name in self.names():
            if name.endswith((".txt", ".log")):
                content = self._haste.download_blob(name).readall()
                yield Text(f"blob {name}", content.decode(errors="replace"))

    def worker_texts(self) -> Iterator[Text]:
        """To be searched for secrets: every blob of the worker's container with its metadata, and every live record
        that was seen on the way.
        """
        for blob in self._worker.list_blobs(include=["metadata"]):
            content = self._content(blob.name).decode(errors="replace")
            yield Text(f"worker blob {blob.name}", f"{json.dumps(blob.metadata)}\n{content}")
        for number, seen in enumerate(self._seen_live, 1):
            yield Text(f"live record {number}", seen)

    def live_records(self) -> list[dict[str, Any]]:
        """The worker's live records. For the table only: nothing is judged by them."""
        names = self._worker.list_blob_names(name_starts_with="active/")
        contents = [content.decode() for name in names if (content := self._content(name))]
        self._seen_live.update(dict.fromkeys(contents))
        return [json.loads(content) for content in contents]

    def download(self, folder: Path) -> None:
        """Copy HASTE's container below `folder`."""
        for name in self.names():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._haste.download_blob(name).readall())

    def _content(self, name: str) -> bytes:
        try:
            return self._worker.download_blob(name).readall()
        except ResourceNotFoundError:  # it has gone since it was listed
            return b""
