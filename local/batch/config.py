"""The world file: what the emulated Batch account looks like and how fast things happen in it.

A world is an object in JSON or, in a `.yaml` or `.yml` file, YAML; every key has a default. Names in camelCase are
Batch's own properties, names_with_underscores are knobs of the emulator.

    {
      "account": {"name": "localbatch", "key": "<base64>"},     SharedKey is checked against it, any bearer is accepted
      "check_date_skew": false,      refuse SharedKey requests dated more than 15 minutes away
      "root": "batch-nodes",         folder that holds the node directories of the process runner
      "event_log": null,             path of the event log (JSON lines); it is always kept in memory too
      "page_size": 1000,             entries of a list page unless the request asks for fewer
      "quotas": {"active_jobs": 300, "pools": 100, "dedicated_cores": null, "low_priority_cores": null,
                 "family_cores": {"standardNCSv3Family": 24}},    cores of dedicated nodes; null: any number
      "vm_sizes": {"standard_x9": {"cores": 8, "family": "standardXFamily"}},    beside those of local.batch.vm_sizes
      "timings": {                   seconds
        "job_action_seconds": 1.0,     enabling, disabling, terminating
        "job_delete_seconds": 1.0,     deleting a job
        "pool_delete_seconds": 1.0,    deleting a pool
        "resize_seconds": 1.0,         from a resize request to new nodes
        "node_start_seconds": 2.0,     creating plus starting, for pools without start_seconds
        "schedule_seconds": 0.0,       a task created or put back is not started sooner than this
        "node_counts_lag_seconds": 0.0,  node counts may be this old
        "sample_lag_seconds": 60.0,    a sample is visible to autoscale formulas after this
        "forget_completed_seconds": 604800.0   completed tasks are dropped from the job after this
      },
      "assumptions": {               where Azure's behaviour is not documented; the values here are the defaults
        "preempted_task_keeps_node_info": true,      nodeInfo and startTime stay while it waits to run again
        "preemption_counts_as_requeue": false,       requeueCount moves
        "disabled_job_accepts_tasks": true,          else 409 JobDisabled
        "task_lost_while_terminating": "completed",  or "active": the preemption wins over the terminate
        "terminated_task_uploads_outputs": false,    taskcompletion and taskfailure outputs of a terminated task
        "expired_task_uploads_outputs": true,        the same after maxWallClockTime
        "expired_task_category": "servererror"       failureInfo category of TaskEnded after maxWallClockTime
      },
      "images": {"example.azurecr.io/training:2.0.0": "folder with an executable file named entrypoint"},
      "task_environment": {"NAME": "value"},      for every task, before its own settings
      "storage_identity": null,      how an identityReference reaches storage: {"token_url": ..., "secret": ...}, the
                                     managed identity endpoint of App Service, or {"account_key": "<base64>"}
      "faults": [],                  see local.batch.faults
      "events": [],                  what happens by itself: see local.batch.event_script
      "speed": 1.0,                  of a server's clock: at 60 a minute of the service passes in a second
      "pools_from": ["x.snapshot.json"],    outputs of `bicep snapshot`, relative to the world file: their pools, too
      "pool_knobs": {"pool of a snapshot": {"start_seconds": 1}},    the last five keys of `pools`, by pool id
      "pools": [{
        "id": "p", "vmSize": "standard_nc6s_v3", "taskSlotsPerNode": 1, "nodeFillType": "spread",
        "targetDedicatedNodes": 0, "targetLowPriorityNodes": 0, "metadata": [{"name": "n", "value": "v"}],
        "autoscale": {"formula": "a formula of Azure Batch's language", "interval_seconds": 300}, or a plain rule:
                     {"min": 0, "max": 4, "bucket": "lowPriority" or "dedicated", "interval_seconds": 300},
        "properties": {"virtualMachineConfiguration": ...},    more of Batch's properties of a pool, kept and shown
        "start_seconds": null,             null: node_start_seconds
        "return_after_seconds": 60,        a preempted node comes back after this; null: not before it is told to
        "allocations": [{"outcome": "fail" or "timeout", "nodes": 1, "code": "AllocationFailed"}],   its next growths
                                           fail after so many nodes, or time out after the resizeTimeout
        "low_priority_available": null,    how many low-priority nodes Azure has for the pool; null: any number
        "autoscale_speed": 1.0             auto-scale alone lives so many times as fast: at 60 a formula with an
                                           interval of 5 minutes is evaluated every 5 seconds, and finds 10 samples
      }]
    }
"""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from local.batch import bicep_snapshot, formula, shapes
from local.batch.errors import BatchError
from local.batch.event_script import ScriptedEvent, read
from local.batch.state import ScriptedAllocation
from local.batch.vm_sizes import VmSize
from local.batch.world_file_error import WorldFileError

__all__ = ["ACCOUNT_KEY", "PoolConfig", "WorldConfig", "WorldFileError"]

ACCOUNT_KEY = "bG9jYWwtYmF0Y2gta2V5LXRoYXQtZXZlcnlib2R5LW1heS1rbm93IQ=="

#: What a pool's own keys say, so that its `properties` cannot.
_SAID_ELSEWHERE = frozenset(
    (
        *("id", "vmSize", "taskSlotsPerNode", "taskSchedulingPolicy", "metadata", "targetDedicatedNodes"),
        *("targetLowPriorityNodes", "enableAutoScale", "autoScaleFormula", "autoScaleEvaluationInterval"),
    )
)


@dataclass(frozen=True)
class Account:
    name: str = "localbatch"
    key: str = ACCOUNT_KEY

    def __post_init__(self) -> None:
        try:
            valid = bool(self.name and base64.b64decode(self.key, validate=True))
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise WorldFileError("an account has a name, and a key in base64")


@dataclass(frozen=True)
class Quotas:
    active_jobs: int = 300
    pools: int = 100
    dedicated_cores: int | None = None
    low_priority_cores: int | None = None
    family_cores: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Timings:
    job_action_seconds: float = 1.0
    job_delete_seconds: float = 1.0
    pool_delete_seconds: float = 1.0
    resize_seconds: float = 1.0
    node_start_seconds: float = 2.0
    schedule_seconds: float = 0.0
    node_counts_lag_seconds: float = 0.0
    sample_lag_seconds: float = 60.0
    forget_completed_seconds: float = 7 * 86400.0


@dataclass(frozen=True)
class Assumptions:
    preempted_task_keeps_node_info: bool = True
    preemption_counts_as_requeue: bool = False
    disabled_job_accepts_tasks: bool = True
    task_lost_while_terminating: str = "completed"
    terminated_task_uploads_outputs: bool = False
    expired_task_uploads_outputs: bool = True
    expired_task_category: str = "servererror"


@dataclass(frozen=True)
class StorageIdentity:
    token_url: str = ""
    secret: str = ""
    account_key: str = ""


@dataclass(frozen=True)
class AutoScaleConfig:
    formula: str = ""
    min: int = 0
    max: int = 10
    bucket: str = "lowPriority"
    interval_seconds: float = 300.0

    def __post_init__(self) -> None:
        if self.bucket not in ("lowPriority", "dedicated"):
            raise WorldFileError(f"autoscale.bucket is lowPriority or dedicated, not {self.bucket!r}")
        if self.formula:
            try:
                formula.parse(self.formula)
            except ValueError as error:
                raise WorldFileError(f"autoscale.formula: {error}") from None


@dataclass(frozen=True)
class PoolConfig:
    id: str
    vmSize: str = "standard_d2s_v3"
    taskSlotsPerNode: int = 1
    nodeFillType: str = "spread"
    targetDedicatedNodes: int = 0
    targetLowPriorityNodes: int = 0
    metadata: tuple[Mapping[str, str], ...] = ()
    autoscale: AutoScaleConfig | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    start_seconds: float | None = None
    return_after_seconds: float | None = 60.0
    low_priority_available: int | None = None
    allocations: tuple[ScriptedAllocation, ...] = ()
    autoscale_speed: float = 1.0

    def __post_init__(self) -> None:
        if self.autoscale_speed <= 0:
            raise WorldFileError(f"pool {self.id}: autoscale_speed is more than 0, not {self.autoscale_speed!r}")
        said_elsewhere = sorted(set(self.properties) & _SAID_ELSEWHERE)
        if said_elsewhere:
            raise WorldFileError(f"pool {self.id}: {said_elsewhere[0]} has no place in its properties")
        try:
            shapes.NEW_POOL("", {**self.properties, "id": self.id, "vmSize": self.vmSize})
        except BatchError as error:
            raise WorldFileError(f"pool {self.id}: {error.message} {error.details}") from None


@dataclass(frozen=True)
class WorldConfig:
    account: Account = Account()
    check_date_skew: bool = False
    root: str = "batch-nodes"
    event_log: str | None = None
    page_size: int = 1000
    quotas: Quotas = Quotas()
    vm_sizes: Mapping[str, VmSize] = field(default_factory=dict)
    timings: Timings = Timings()
    assumptions: Assumptions = Assumptions()
    images: Mapping[str, str] = field(default_factory=dict)
    task_environment: Mapping[str, str] = field(default_factory=dict)
    storage_identity: StorageIdentity | None = None
    faults: tuple[Mapping[str, Any], ...] = ()
    events: tuple[ScriptedEvent, ...] = ()
    speed: float = 1.0
    pools_from: tuple[str, ...] = ()
    pool_knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pools: tuple[PoolConfig, ...] = ()

    def __post_init__(self) -> None:
        if self.speed <= 0:
            raise WorldFileError(f"speed is more than 0, not {self.speed!r}")

    @classmethod
    def from_json(cls, world: Mapping[str, Any], folder: Path = Path()) -> "WorldConfig":
        """Read a parsed world file; `pools_from` is relative to `folder`. WorldFileError names what is wrong."""
        known = _checked(cls, world, "world")
        parts: dict[str, Any] = {"account": Account, "quotas": Quotas, "timings": Timings, "assumptions": Assumptions}
        for name, part in parts.items():
            if name in known:
                known[name] = part(**_checked(part, known[name], name))
        if known.get("storage_identity") is not None:
            known["storage_identity"] = StorageIdentity(
                **_checked(StorageIdentity, known["storage_identity"], "storage_identity")
            )
        known["vm_sizes"] = {
            name.lower(): VmSize(**_checked(VmSize, size, f"vm_sizes.{name}"))
            for name, size in known.get("vm_sizes", {}).items()
        }
        snapshots = bicep_snapshot.pools_from(known.get("pools_from", []), known.get("pool_knobs", {}), folder)
        known["pools_from"] = tuple(known.get("pools_from", ()))
        known["pools"] = tuple(_pool(pool) for pool in (*known.get("pools", ()), *snapshots))
        _refuse_twins(known["pools"])
        known["faults"] = tuple(known.get("faults", ()))
        known["events"] = tuple(read(event) for event in known.get("events", ()))
        return cls(**known)

    @classmethod
    def from_file(cls, path: Path) -> "WorldConfig":
        """Read a world file, as YAML if it is named so. Raises OSError and WorldFileError."""
        language = "YAML" if path.suffix in (".yaml", ".yml") else "JSON"
        try:
            text = path.read_text(encoding="utf-8")
            world = _from_yaml(text) if language == "YAML" else json.loads(text)
        except (ValueError, TypeError, yaml.YAMLError) as error:
            raise WorldFileError(f"{path} is not {language}: {error}") from error
        return cls.from_json(world, path.parent)


def _from_yaml(text: str) -> Any:
    """By way of JSON, so that it holds nothing that JSON could not: a date without quotes is refused, not served."""
    return json.loads(json.dumps(yaml.safe_load(text)))


def _checked(part: Any, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise WorldFileError(f"{where} is not an object")
    unknown = set(value) - {known.name for known in fields(part)}
    if unknown:
        raise WorldFileError(f"{where} has an unknown key {sorted(unknown)[0]!r}")
    return dict(value)


def _pool(value: Any) -> PoolConfig:
    known = _checked(PoolConfig, value, "pools[]")
    if "id" not in known:
        raise WorldFileError("a pool has no id")
    if known.get("autoscale") is not None:
        known["autoscale"] = AutoScaleConfig(**_checked(AutoScaleConfig, known["autoscale"], f"pool {known['id']}"))
    known["metadata"] = tuple(known.get("metadata", ()))
    known["allocations"] = tuple(scripted_allocation(one) for one in known.get("allocations", ()))
    return PoolConfig(**known)


def _refuse_twins(pools: Iterable[PoolConfig]) -> None:
    ids = Counter(pool.id.lower() for pool in pools)
    twins = [id for id, number in ids.items() if number > 1]
    if twins:
        raise WorldFileError(f"two pools are called {twins[0]!r}")


def scripted_allocation(value: Any) -> ScriptedAllocation:
    """How one growth of a pool goes. Raises WorldFileError."""
    known = _checked(ScriptedAllocation, value, "allocations[]")
    if known.get("outcome") not in ("fail", "timeout"):
        raise WorldFileError(f"an allocation's outcome is fail or timeout, not {known.get('outcome')!r}")
    return ScriptedAllocation(**known)
