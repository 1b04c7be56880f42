"""Where the worker's Batch task bodies differ from HASTE's in legacy mode, as data. Everything else is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

#: Files that HASTE has all attempts share, by how their names begin.
_SHARED_FILES = ("imageryprep_config_", "experiment_config_", "train_labels_")


@dataclass(frozen=True)
class Difference:
    """`sentence` stands in docs/haste-compatibility.md; `change` makes HASTE's body the worker's."""

    sentence: str
    kinds: tuple[str, ...]
    change: Callable[[Body], None]


def _own_copies(body: Body) -> None:
    for file in body["resourceFiles"]:
        folder, _, name = file["httpUrl"].rpartition("/")
        if name.startswith(_SHARED_FILES):
            file["httpUrl"] = f"{folder}/{body['id']}/inputs/{name}"


def _logs(body: Body) -> None:
    texts = body["outputFiles"][-1]
    assert texts["filePattern"] == "../*.txt"
    container = texts["destination"]["container"]
    logs = {
        "filePattern": "$AZ_BATCH_TASK_WORKING_DIR/logs/*",
        "destination": {"container": container | {"path": f"{container['path']}/logs"}},
        "uploadOptions": texts["uploadOptions"],
    }
    body["outputFiles"].insert(-1, logs)


DIFFERENCES = (
    Difference(
        "a copy for the task alone, `<project>/<task id>/inputs/<same file name>`; the task reads the copy",
        ("imageryprep", "training", "inference"),
        _own_copies,
    ),
    Difference(
        "One more output entry, `$AZ_BATCH_TASK_WORKING_DIR/logs/*` to `<project>/<task id>/logs`, "
        "before the one for `../*.txt`",
        ("imageryprep", "inference"),
        _logs,
    ),
)
