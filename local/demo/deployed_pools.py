"""The demo's pools: those that `infra/shared-pools.bicep` deploys, as Bicep itself predicts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.batch import WorldConfig
from local.batch.vm_sizes import vm_size
from local.stack.settings import pool_settings
from local.stack.world import default_world

_PROJECT_FOLDER = Path(__file__).resolve().parents[2]
#: Spot pools that scale between zero and a maximum by the template's formula.
SNAPSHOT = "infra/snapshots/pools-autoscale-spot.snapshot.json"
#: The formula is evaluated every 5 minutes, which a demo has not got: here they pass in 3 seconds, for it alone.
_AUTOSCALE_SPEED = 100


@dataclass(frozen=True)
class DeployedPools:
    """Ids of the two pools, and the cores of one node of each."""

    h100: str
    t4: str
    h100_cores: int
    t4_cores: int

    @property
    def candidates(self) -> dict[str, tuple[str, ...]]:
        """The pools of each kind of work, best first."""
        training = (self.h100, self.t4)
        return {"training": training, "inference": training, "imageryprep": (self.t4, self.h100)}

    @property
    def settings(self) -> dict[str, str]:
        """The app settings that name them."""
        return pool_settings(",".join(self.candidates["training"]), ",".join(self.candidates["imageryprep"]))

    @property
    def short_names(self) -> Mapping[str, str]:
        """What people see instead of the ids."""
        return {self.h100: "h100", self.t4: "t4"}

    @property
    def spot_cores(self) -> int:
        """A quota that one node of each pool fills."""
        return self.h100_cores + self.t4_cores


def deployed_pools() -> DeployedPools:
    """The pools of the snapshot by their tier. Raises WorldFileError, or KeyError without one of the tiers."""
    config = WorldConfig.from_json({"pools_from": [SNAPSHOT]}, _PROJECT_FOLDER)
    tiers = {item["value"]: pool for pool in config.pools for item in pool.metadata if item["name"] == "tier"}
    cores = {tier: vm_size(pool.vmSize, {}).cores for tier, pool in tiers.items()}
    return DeployedPools(tiers["h100"].id, tiers["t4"].id, cores["h100"], cores["t4"])


def demo_world(pools: DeployedPools, task_seconds: float) -> dict[str, Any]:
    """The local stack's world with the deployed pools, and a quota that one node of each fills."""
    knobs = {"autoscale_speed": _AUTOSCALE_SPEED, "return_after_seconds": None}
    return {
        **default_world(task_seconds),
        "quotas": {"low_priority_cores": pools.spot_cores},
        "pools": [],
        "pools_from": [str(_PROJECT_FOLDER / SNAPSHOT)],
        "pool_knobs": {pools.h100: knobs, pools.t4: knobs},
    }
