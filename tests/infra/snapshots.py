"""The committed predictions of what the templates deploy, as the tests read them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
SNAPSHOTS = PROJECT / "infra/snapshots"

Json = dict[str, Any]

#: What Azure would put in for the parts of an expression that only it knows.
_KNOWN_TO_AZURE: tuple[tuple[str, str], ...] = (
    (r"environment\(\)\.suffixes\.storage", "'core.windows.net'"),
    (r"listKeys\([^()]*\)\.(?:keys\[0\]\.value|primary)", "'c2VjcmV0LWtleQ=='"),
    (r"reference\('[^']*/([^/']+)', '[^']*'\)\.accountEndpoint", r"'\1.westus2.batch.azure.com'"),
    (r"reference\([^()]*\)\.ConnectionString", "'InstrumentationKey=0'"),
)


def names(prefix: str = "") -> list[str]:
    """Names of the snapshots that begin with `prefix`."""
    return sorted(path.name.removesuffix(".snapshot.json") for path in SNAPSHOTS.glob(f"{prefix}*.snapshot.json"))


def load(name: str) -> Json:
    """One snapshot."""
    return dict(json.loads(text(name)))


def text(name: str) -> str:
    """One snapshot as it is committed."""
    return (SNAPSHOTS / f"{name}.snapshot.json").read_text("utf-8")


def resources(snapshot: Json, kind: str) -> list[Json]:
    """The resources of a type, such as `Microsoft.Batch/batchAccounts/pools`."""
    return [resource for resource in snapshot["predictedResources"] if resource["type"] == kind]


def pools(snapshot: Json) -> dict[str, Json]:
    """Pools by id."""
    found = resources(snapshot, "Microsoft.Batch/batchAccounts/pools")
    return {resource["name"].split("/")[1]: resource for resource in found}


def metadata(pool: Json) -> dict[str, str]:
    """A pool's metadata as routing reads it."""
    return {item["name"]: item["value"] for item in pool["properties"]["metadata"]}


def app_settings(snapshot: Json) -> dict[str, str]:
    """The settings of the app, with what only Azure knows made up."""
    (found,) = resources(snapshot, "Microsoft.Web/sites/config")
    return {name: resolve(value) for name, value in found["properties"].items()}


def resolve(value: str) -> str:
    """The text of an expression that is made of texts, `format`, and what only Azure knows."""
    if not value.startswith("["):
        return value
    expression = value[1:-1]
    for pattern, replacement in _KNOWN_TO_AZURE:
        expression = re.sub(pattern, replacement, expression)
    form: Callable[..., str] = str.format
    return str(eval(expression, {"__builtins__": {}, "format": form}))
