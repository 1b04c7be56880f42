"""The demo runs on the pools that the templates deploy, with their settings."""

from __future__ import annotations

import json
from pathlib import Path

from local.batch import World
from local.demo.deployed_pools import SNAPSHOT, demo_world, deployed_pools
from shared.settings.load import setting_names

PROJECT = Path(__file__).resolve().parents[2]
DEPLOYED = {
    resource["name"].split("/")[1]: resource["properties"]
    for resource in json.loads((PROJECT / SNAPSHOT).read_text("utf-8"))["predictedResources"]
}


def test_the_pools_of_the_demo_are_the_deployed_ones() -> None:
    pools = deployed_pools()
    world = World.from_json(demo_world(pools, 1.0))
    assert {pool.id for pool in world.pools.values()} == set(DEPLOYED) == {pools.h100, pools.t4}
    for pool in world.pools.values():
        deployed = DEPLOYED[pool.id]
        assert pool.spec["autoScaleFormula"] == deployed["scaleSettings"]["autoScale"]["formula"]
        assert pool.autoscale_seconds == 300
        assert pool.spec["vmSize"] == deployed["vmSize"]
        assert pool.spec["metadata"] == deployed["metadata"]


def test_the_quota_is_one_node_of_each() -> None:
    pools = deployed_pools()
    assert demo_world(pools, 1.0)["quotas"] == {"low_priority_cores": 40 + 16}


def test_the_app_is_told_of_them() -> None:
    pools = deployed_pools()
    assert set(pools.settings) <= set(setting_names())
    assert pools.settings["AZURE_BATCH_TRAINING_POOL_IDS"] == f"{pools.h100},{pools.t4}"
    assert pools.settings["AZURE_BATCH_IMAGERYPREP_POOL_IDS"] == f"{pools.t4},{pools.h100}"
    assert pools.candidates["inference"] == (pools.h100, pools.t4)
