"""The pools that infra/ deploys, by their committed predictions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from shared.batch import read
from tests.infra import expectations
from tests.infra.snapshots import PROJECT, load, metadata, names, pools, text

SHARED = names("pools-")
#: scale mode of the H100 pool x node type x subnet, as the names of the snapshots tell.
COMBINATIONS = [
    f"pools-{mode}-{nodes}{network}"
    for mode in ("autoscale", "fixed")
    for nodes in ("spot", "dedicated")
    for network in ("", "-vnet")
]
SIZES = {"h100": "Standard_NC40ads_H100_v5", "t4": "Standard_NC16as_T4_v3"}


def test_every_combination_has_a_snapshot() -> None:
    assert set(SHARED) == {*COMBINATIONS, "pools-demo-group"}


@pytest.mark.parametrize("name", SHARED)
def test_names_sizes_and_metadata(name: str) -> None:
    group = "demo" if name == "pools-demo-group" else "dev"
    found = pools(load(name))
    assert set(found) == {f"haste-shared-{group}-{tier}-pool" for tier in SIZES}
    for pool_id, pool in found.items():
        tier = metadata(pool)["tier"]
        assert tier in pool_id
        assert pool["properties"]["vmSize"] == SIZES[tier]
        assert pool["properties"]["taskSlotsPerNode"] == 1
        assert pool["properties"]["taskSchedulingPolicy"] == {"nodeFillType": "Pack"}
        assert set(metadata(pool)) == {"tier", "group", "maximumNodes"}
        assert metadata(pool)["group"] == group


@pytest.mark.parametrize("name", SHARED)
def test_routing_reads_the_maximum(name: str) -> None:
    """What the worker makes of the pool when Batch shows it."""
    for pool_id, pool in pools(load(name)).items():
        shown: Any = SimpleNamespace(
            id=pool_id,
            state="active",
            allocation_state="steady",
            enable_auto_scale="autoScale" in pool["properties"]["scaleSettings"],
            target_dedicated_nodes=0,
            target_low_priority_nodes=0,
            current_dedicated_nodes=0,
            current_low_priority_nodes=0,
            task_slots_per_node=1,
            resize_errors=[],
            allocation_state_transition_time=None,
            auto_scale_formula=None,
            auto_scale_evaluation_interval=None,
            auto_scale_run=None,
            metadata=[SimpleNamespace(**item) for item in pool["properties"]["metadata"]],
        )
        maximum = {"h100": 3 if "-fixed-" in name else 4, "t4": 2}[metadata(pool)["tier"]]
        assert read.pool(shown).maximum_nodes == maximum


@pytest.mark.parametrize("name", COMBINATIONS)
def test_scale_and_node_type(name: str) -> None:
    spot = "-spot" in name
    for pool_id, pool in pools(load(name)).items():
        scale = pool["properties"]["scaleSettings"]
        if "-fixed-" in name and "h100" in pool_id:
            assert scale == {
                "fixedScale": {
                    "targetDedicatedNodes": 0 if spot else 3,
                    "targetLowPriorityNodes": 3 if spot else 0,
                    "resizeTimeout": "PT15M",
                    "nodeDeallocationOption": "TaskCompletion",
                }
            }
        else:  # no node targets, or each deployment would resize the pool
            assert set(scale) == {"autoScale"}
            assert set(scale["autoScale"]) == {"formula", "evaluationInterval"}
            assert scale["autoScale"]["evaluationInterval"] == "PT5M"


@pytest.mark.parametrize("name", COMBINATIONS)
def test_subnet(name: str) -> None:
    for pool in pools(load(name)).values():
        network = pool["properties"].get("networkConfiguration")
        if name.endswith("-vnet"):
            assert network["subnetId"].endswith("/virtualNetworks/platform/subnets/batch")
        else:
            assert "networkConfiguration" not in pool["properties"]


@pytest.mark.parametrize("name", names("pool"))
def test_containers(name: str) -> None:
    """Both images are there before the first task, pulled by the one identity of the pool."""
    for pool in pools(load(name)).values():
        containers = pool["properties"]["deploymentConfiguration"]["virtualMachineConfiguration"][
            "containerConfiguration"
        ]
        assert containers["type"] == "DockerCompatible"
        assert containers["containerImageNames"] == [
            "exampleregistry.azurecr.io/hastetraining:2.0.0",
            "exampleregistry.azurecr.io/hasteimageryprep:2.0.0",
        ]
        (registry,) = containers["containerRegistries"]
        assert pool["identity"]["type"] == "UserAssigned"
        assert list(pool["identity"]["userAssignedIdentities"]) == [registry["identityReference"]["resourceId"]]
        assert "password" not in registry
        assert "mountConfiguration" not in pool["properties"]


@pytest.mark.parametrize("name", names("pool"))
def test_nothing_is_about_to_be_retired(name: str) -> None:
    expectations.nothing_retired(load(name))


def test_groups_differ_in_names_only() -> None:
    assert text("pools-demo-group").replace("demo", "dev") == text("pools-autoscale-spot")


def test_every_value_gets_to_its_place() -> None:
    """None of them is the default, and no two numbers are the same."""
    snapshot = load("shared-other-values")
    found = pools(snapshot)
    assert set(found) == set(snapshot["outputs"].values()) == {f"acme-shared-north-{tier}-pool" for tier in SIZES}
    for pool_id, (least, most) in {"acme-shared-north-h100-pool": (2, 5), "acme-shared-north-t4-pool": (3, 7)}.items():
        pool = found[pool_id]
        assert pool["name"].startswith("otherbatch/")
        assert metadata(pool)["group"] == "north"
        assert metadata(pool)["maximumNodes"] == str(most)
        (identity,) = pool["identity"]["userAssignedIdentities"]
        assert identity.endswith("/other-pull")
        machine = pool["properties"]["deploymentConfiguration"]["virtualMachineConfiguration"]
        assert machine["nodeAgentSkuId"] == "batch.node.ubuntu 26.04"
        assert list(machine["imageReference"].values()) == ["other-publisher", "other-offer", "2604", "1.2.3"]
        images = machine["containerConfiguration"]["containerImageNames"]
        assert images == ["otherregistry.azurecr.io/training:3.1", "otherregistry.azurecr.io/imagery:3.2"]
        assert pool["properties"]["networkConfiguration"]["subnetId"].endswith("/other/subnets/nodes")
        scale = pool["properties"]["scaleSettings"]["autoScale"]
        assert scale["evaluationInterval"] == "PT10M"
        expectations.formula_scales(
            scale["formula"], "TargetDedicatedNodes", slots=1, minimum=least, maximum=most, minutes=10
        )


def test_what_shared_pools_leave_at_their_default() -> None:
    (pool,) = pools(load("pool-four-slots")).values()
    assert pool["properties"]["taskSlotsPerNode"] == 4
    assert pool["properties"]["taskSchedulingPolicy"] == {"nodeFillType": "Spread"}
    assert pool["properties"]["scaleSettings"]["autoScale"]["evaluationInterval"] == "PT10M"


def test_the_module_says_that_a_subnet_stays() -> None:
    assert "Cannot be changed later" in (PROJECT / "infra/modules/batchPool.bicep").read_text("utf-8")
