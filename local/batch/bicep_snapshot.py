"""Pools as a Bicep template deploys them, read from what `bicep snapshot` predicts of it.

A snapshot lists resources in the shape of Azure Resource Manager. Its pools become entries of the world file's `pools`:
sizes, slots, scale settings with the text of the formula, and metadata take effect; images, disks and networks are kept
and shown. What only Resource Manager knows (identities, the deallocation option of a fixed pool) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.batch.iso8601 import parse_duration
from local.batch.world_file_error import WorldFileError

Entry = dict[str, Any]

_TYPE = "Microsoft.Batch/batchAccounts/pools"
#: What an entry of `pool_knobs` may say: the emulator's own, nothing that the template says.
_KNOBS = frozenset(
    ("start_seconds", "return_after_seconds", "allocations", "low_priority_available", "autoscale_speed")
)
#: Resource Manager and Batch write some names and words differently; Batch writes the words of these in lower case.
_NAMES = {"nodeAgentSkuId": "nodeAgentSKUId"}
_LOWER_CASE = frozenset(("nodeFillType", "policy", "caching", "storageAccountType", "provision"))


def pools_from(files: Any, knobs: Any, folder: Path) -> list[Entry]:
    """The pools of a list of snapshots, whose paths may be relative to `folder`, each with its `knobs` by pool id.

    Raises WorldFileError for a file that is no snapshot, that has no pools, or with a pool that cannot be read, and for
    knobs of a pool that is not there.
    """
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise WorldFileError("pools_from is a list of paths")
    if not isinstance(knobs, Mapping) or not all(isinstance(values, Mapping) for values in knobs.values()):
        raise WorldFileError("pool_knobs is an object with an object for each pool")
    entries = [entry for file in files for entry in _pools(folder / file)]
    by_id = {str(entry["id"]).lower(): entry for entry in entries}
    for pool_id, values in knobs.items():
        if pool_id.lower() not in by_id:
            raise WorldFileError(f"pool_knobs: no snapshot of pools_from has a pool {pool_id!r}")
        unknown = sorted(set(values) - _KNOBS)
        if unknown:
            raise WorldFileError(f"pool_knobs of {pool_id}: {unknown[0]!r} is not one of {', '.join(sorted(_KNOBS))}")
        by_id[pool_id.lower()].update(values)
    return entries


def _pools(path: Path) -> list[Entry]:
    try:
        snapshot = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorldFileError(f"pools_from: {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WorldFileError(f"pools_from: {path} is not a Bicep snapshot: it is not JSON ({error})") from error
    resources = snapshot.get("predictedResources") if isinstance(snapshot, Mapping) else None
    if not isinstance(resources, list):
        raise WorldFileError(f"pools_from: {path} is not a Bicep snapshot: it has no list predictedResources")
    found = [one for one in resources if isinstance(one, Mapping) and one.get("type") == _TYPE]
    if not found:
        raise WorldFileError(f"pools_from: {path} has no pools, that is no resource of type {_TYPE}")
    return [_entry(resource, path) for resource in found]


def _entry(resource: Mapping[str, Any], path: Path) -> Entry:
    pool_id = str(resource.get("name", "")).rpartition("/")[2]
    try:
        return _read(pool_id, dict(resource["properties"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__} {error}"
        raise WorldFileError(f"pools_from: {path}: pool {pool_id!r} cannot be read: {why}") from error


def _read(pool_id: str, properties: dict[str, Any]) -> Entry:
    entry: Entry = {"id": pool_id, "vmSize": properties.pop("vmSize")}
    for name in ("taskSlotsPerNode", "metadata"):
        if name in properties:
            entry[name] = properties.pop(name)
    if "taskSchedulingPolicy" in properties:
        entry |= _as_batch(properties.pop("taskSchedulingPolicy"))
    scale = properties.pop("scaleSettings", {})
    kept: Entry = {}
    if "autoScale" in scale:
        interval = parse_duration(scale["autoScale"].get("evaluationInterval", "PT15M"))
        entry["autoscale"] = {
            "formula": scale["autoScale"]["formula"],
            "interval_seconds": interval.total_seconds(),
        }
    elif "fixedScale" in scale:
        fixed = scale["fixedScale"]
        for name in ("targetDedicatedNodes", "targetLowPriorityNodes"):
            entry[name] = fixed.get(name, 0)
        if "resizeTimeout" in fixed:
            kept["resizeTimeout"] = fixed["resizeTimeout"]
    if "interNodeCommunication" in properties:
        kept["enableInterNodeCommunication"] = properties.pop("interNodeCommunication").lower() == "enabled"
    if "deploymentConfiguration" in properties:
        machine = _as_batch(properties.pop("deploymentConfiguration")["virtualMachineConfiguration"])
        containers = machine.get("containerConfiguration")
        if containers:
            containers["type"] = containers["type"][:1].lower() + containers["type"][1:]
        kept["virtualMachineConfiguration"] = machine
    entry["properties"] = kept | _as_batch(properties)
    return entry


def _as_batch(value: Any) -> Any:
    """Names and words as Batch writes them."""
    if isinstance(value, list):
        return [_as_batch(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        _NAMES.get(name, name): one.lower() if name in _LOWER_CASE and isinstance(one, str) else _as_batch(one)
        for name, one in value.items()
    }
