"""Uploads a task's output files after its process has ended."""

import glob
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from local.batch.runner import Failure
from local.batch.storage import Interrupted, Storage, StorageRefused

_WILDCARDS = re.compile(r"[*?\[]")
_CODES = {
    401: "FileUploadAccessDenied",
    403: "FileUploadAccessDenied",
    404: "FileUploadContainerNotFound",
    409: "FileUploadConflict",
    412: "FileUploadConflict",
}


def upload(
    spec: Mapping[str, Any],
    succeeded: bool,
    work: Path,
    environment: Mapping[str, str],
    storage: Storage,
    stopping: Callable[[], bool],
) -> Failure | None:
    """Upload what the conditions and patterns name; the first failure ends it and is returned.

    Raises Interrupted when `stopping` says yes.
    """
    conditions = ("taskcompletion", "tasksuccess" if succeeded else "taskfailure")
    for output in spec.get("outputFiles") or ():
        if output["uploadOptions"]["uploadCondition"].lower() not in conditions:
            continue
        destination = output["destination"]["container"]
        for file, name in matches(output["filePattern"], destination.get("path") or "", work, environment):
            if stopping():
                raise Interrupted
            try:
                storage.upload(file, destination["containerUrl"], bool(destination.get("identityReference")), name)
            except StorageRefused as error:
                return _failure(error)
    return None


def matches(pattern: str, path: str, work: Path, environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """The files that a pattern names, with their blob names.

    `$NAME` is expanded, a relative pattern starts in the working directory. Without wildcards `path` is the blob's
    name; otherwise it is a prefix, and files keep their names relative to the part of the pattern before the first
    wildcard. Names that begin with a dot are matched only by a pattern that says so.
    """
    expanded = re.sub(r"\$\{?(\w+)\}?", lambda found: environment.get(found[1], found[0]), pattern)
    parts = expanded.split("/")
    fixed = next((index for index, part in enumerate(parts) if _WILDCARDS.search(part)), None)
    if fixed is None:
        file = work / expanded
        if file.is_file():
            yield file, path or file.name
        return
    base = work / "/".join(parts[:fixed]) if fixed else work
    if parts[0] == "" and fixed == 1:
        base = Path("/")
    prefix = f"{path.rstrip('/')}/" if path else ""
    found = glob.glob("/".join(parts[fixed:]), root_dir=base, recursive=True)  # noqa: PTH207 - Path.glob takes dot files
    for name in sorted(set(found)):
        if (base / name).is_file():
            yield base / name, prefix + name


def _failure(error: StorageRefused) -> Failure:
    details = {"HttpStatusCode": str(error.status)}
    if error.status in _CODES:
        return Failure(_CODES[error.status], "usererror", str(error), details, "upload")
    code = "FileUploadTimedOut" if error.status < 0 else "FileUploadMiscError"
    return Failure(code, "servererror", str(error), details, "upload")
