"""Brings a task's resource files into its working directory."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from local.batch.command import CannotStart
from local.batch.runner import Failure
from local.batch.storage import Storage, StorageRefused, blob_url

# failureInfo code and category by HTTP status: of one blob, and of a container that is listed
_BLOB = {401: "BlobAccessDenied", 403: "BlobAccessDenied", 404: "BlobNotFound"}
_CONTAINER = {
    401: "ResourceContainerAccessDenied",
    403: "ResourceContainerAccessDenied",
    404: "ResourceContainerNotFound",
}


def fetch(spec: Mapping[str, Any], work: Path, storage: Storage, stopping: Callable[[], bool]) -> None:
    """Download all resource files of a task. Raises CannotStart, and Interrupted when `stopping` says yes.

    A file of `httpUrl` becomes `filePath`. Those of a container keep their whole names, below `filePath`.
    """
    for file in spec.get("resourceFiles") or ():
        with_identity = bool(file.get("identityReference"))
        mode = int(file.get("fileMode") or "0770", 8)
        if file.get("httpUrl"):
            target = _inside(work, file["filePath"])
            _download(file["httpUrl"], with_identity, target, mode, storage, stopping)
            continue
        container_url = file["storageContainerUrl"]
        for name in _names(container_url, with_identity, file.get("blobPrefix") or "", storage):
            target = _inside(work, f"{file.get('filePath') or '.'}/{name}")
            _download(blob_url(container_url, name), with_identity, target, mode, storage, stopping)


def _names(container_url: str, with_identity: bool, prefix: str, storage: Storage) -> list[str]:
    try:
        return [name for name in storage.list(container_url, with_identity, prefix) if not name.endswith("/")]
    except StorageRefused as error:
        raise CannotStart(_failure(error, _CONTAINER, "ResourceContainerList")) from None


def _download(
    url: str, with_identity: bool, target: Path, mode: int, storage: Storage, stopping: Callable[[], bool]
) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        storage.download(url, with_identity, target, stopping)
        target.chmod(mode)
    except StorageRefused as error:
        raise CannotStart(_failure(error, _BLOB, "BlobDownload")) from None


def _inside(work: Path, path: str) -> Path:
    target = (work / path).resolve()
    if not target.is_relative_to(work):
        message = f"The resource file {path} would lie outside of the working directory"
        raise CannotStart(Failure("ResourceFileCreateFailed", "usererror", message, stage="before"))
    return target


def _failure(error: StorageRefused, codes: Mapping[int, str], other: str) -> Failure:
    details = {"HttpStatusCode": str(error.status)}
    if error.status in codes:
        return Failure(codes[error.status], "usererror", str(error), details, "before")
    code = f"{other}TimedOut" if error.status < 0 else f"{other}MiscError"
    return Failure(code, "servererror", str(error), details, "before")
