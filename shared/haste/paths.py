"""Names of HASTE's blobs, and which blob a URL in one of HASTE's records points to."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import SplitResult, urlsplit

from shared.haste.workload import Blobs

#: Characters that need no escaping in a URL: readers of HASTE's records parse URLs without percent-decoding.
SAFE_NAME = re.compile(r"[A-Za-z0-9._~/-]+")


def project_folder(project_id: str) -> str:
    """First part of every blob name of a project: SHA-256 of its id, 64 hex digits."""
    return hashlib.sha256(project_id.encode()).hexdigest()


def project_record(project_id: str) -> str:
    """Blob name of a Project."""
    return f"{project_folder(project_id)}/project_{project_id}.json"


def layer_record(project_id: str, layer_id: str) -> str:
    """Blob name of an ImageLayer."""
    return f"{project_folder(project_id)}/imagelayer_{layer_id}.json"


def model_record(project_id: str, model_id: str) -> str:
    """Blob name of a Model."""
    return f"{project_folder(project_id)}/model_{model_id}.json"


def artifacts_record(project_id: str, model_id: str) -> str:
    """Blob name of the ModelArtifacts of a model."""
    return f"{project_folder(project_id)}/artifacts_model_{model_id}.json"


def label_project_prefix(project_id: str) -> str:
    """What the names of all label projects of a project start with. Store nothing else there: HASTE lists it."""
    return f"{project_folder(project_id)}/labels_"


def label_project_record(project_id: str, label_project_id: str) -> str:
    """Blob name of a LabelProject."""
    return f"{label_project_prefix(project_id)}{label_project_id}.json"


def labels_export(project_id: str, label_project_id: str) -> str:
    """Blob name of the GeoJSON export of a label project."""
    return f"{project_folder(project_id)}/artifacts/labels_{label_project_id}.geojson"


def shared_input(project_id: str, file_name: str) -> str:
    """Blob name under which HASTE keeps a config or label file, one for all attempts."""
    return f"{project_folder(project_id)}/{file_name}"


def task_folder(project_id: str, task_id: str) -> str:
    """Prefix (without a slash at the end) of everything a task leaves."""
    return f"{project_folder(project_id)}/{task_id}"


def task_input(project_id: str, task_id: str, file_name: str) -> str:
    """Blob name of the copy of a config or label file that belongs to one task alone."""
    return f"{task_folder(project_id, task_id)}/inputs/{file_name}"


def blob_name(url: str, blobs: Blobs) -> str | None:
    """Name of the blob in HASTE's container that a stored URL, with or without query, points to; None for others.

    Takes both host styles (`<account>.blob.<domain>/<container>/<blob>` and `<host>/<account>/<container>/<blob>`)
    and compares account and container, not the host. Nothing is percent-decoded.
    """
    container = _path_with_account(blobs.url("x"))
    path = _path_with_account(url)
    if container is None or path is None:
        return None
    folder = container.removesuffix("x")
    name = path.removeprefix(folder)
    return name if path.startswith(folder) and is_safe_name(name) else None


def is_safe_name(name: str) -> bool:
    """A blob name that needs no escaping and that cannot climb out of a folder when it is used as a file path."""
    return SAFE_NAME.fullmatch(name) is not None and not {"", ".", ".."} & set(name.split("/"))


def _path_with_account(url: str) -> str | None:
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    account, dot, _ = parts.hostname.partition(".blob.")
    return f"/{account}{parts.path}" if dot else parts.path


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:  # such as an unfinished IPv6 address
        return None
