"""Core quotas and growth that fails."""

from __future__ import annotations

from typing import Any

import pytest
from azure.batch import BatchClient, models

from local.batch import World, control
from local.batch.config import WorldFileError
from local.batch.vm_sizes import VmSize, vm_size
from tests.batch_emulator.support import POOL, act, make_client

_FAMILY = "standardDSv3Family"


def _world(quotas: dict[str, Any], pools: int = 1, **keys: Any) -> World:
    """Pools of machines with four cores each."""
    names = [POOL, "second", "third"][:pools]
    return World.from_json(
        {
            "quotas": quotas,
            "pools": [{"id": name, "vmSize": "STANDARD_D4S_V3", "start_seconds": 0} for name in names],
            **keys,
        }
    )


def _resize(world: World, pool: str = POOL, **targets: int) -> models.BatchPool:
    client = make_client(world)
    names = {"dedicated": "targetDedicatedNodes", "low_priority": "targetLowPriorityNodes"}
    act(client, f"/pools/{pool}/resize", {names[name]: target for name, target in targets.items()})
    world.advance(1)
    return client.get_pool(pool)


def _codes(pool: models.BatchPool) -> list[str | None]:
    return [error.code for error in pool.resize_errors or ()]


@pytest.mark.parametrize(
    ("quotas", "kind", "code"),
    [
        ({"dedicated_cores": 10}, "dedicated", "AccountCoreQuotaReached"),
        ({"family_cores": {_FAMILY.upper(): 10}}, "dedicated", "AccountVMSeriesCoreQuotaReached"),
        ({"dedicated_cores": 20, "family_cores": {_FAMILY: 11}}, "dedicated", "AccountVMSeriesCoreQuotaReached"),
        ({"dedicated_cores": 8, "family_cores": {_FAMILY: 8}}, "dedicated", "AccountCoreQuotaReached"),
        ({"low_priority_cores": 9}, "low_priority", "AccountLowPriorityCoreQuotaReached"),
    ],
)
def test_a_pool_grows_as_far_as_the_quota_lets_it(quotas: dict[str, Any], kind: str, code: str) -> None:
    world = _world(quotas)

    pool = _resize(world, POOL, **{kind: 5})

    assert len(list(make_client(world).list_nodes(POOL))) == 2
    assert _codes(pool) == [code]
    assert pool.allocation_state == models.AllocationState.STEADY
    world.advance(3 * 86400)
    assert _codes(make_client(world).get_pool(POOL)) == [code]
    assert _codes(_resize(world, POOL, **{kind: 1})) == []


def test_quotas_of_other_kinds_do_not_count() -> None:
    world = _world({"dedicated_cores": 4, "family_cores": {"standardFSv2Family": 0}, "low_priority_cores": 8})

    assert _codes(_resize(world, dedicated=1, low_priority=2)) == []


def test_a_family_s_quota_counts_its_own_pools_alone() -> None:
    pools = [{"id": name, "vmSize": f"standard_{name}", "targetDedicatedNodes": 2} for name in ("f8s_v2", "d4s_v3")]
    client = make_client(World.from_json({"quotas": {"family_cores": {_FAMILY: 8}}, "pools": pools}))

    assert [pool.current_dedicated_nodes for pool in client.list_pools()] == [2, 2]


def test_all_pools_share_a_quota() -> None:
    world = _world({"low_priority_cores": 12}, pools=2)
    assert _codes(_resize(world, low_priority=2)) == []

    second = _resize(world, "second", low_priority=2)
    assert (second.current_low_priority_nodes, _codes(second)) == (1, ["AccountLowPriorityCoreQuotaReached"])
    _resize(world, low_priority=1)
    assert _resize(world, "second", low_priority=2).current_low_priority_nodes == 2


def test_a_preempted_node_keeps_its_cores() -> None:
    world = _world({"low_priority_cores": 8}, pools=2)
    _resize(world, low_priority=2)
    control.preempt_node(world, POOL, next(iter(world.pool(POOL).nodes)), return_after_seconds=None)

    assert _codes(_resize(world, "second", low_priority=1)) == ["AccountLowPriorityCoreQuotaReached"]


def test_pools_of_the_world_file_have_quotas_too() -> None:
    pools = [{"id": name, "vmSize": "standard_d4s_v3", "targetDedicatedNodes": 2} for name in ("a", "b")]
    client = make_client(World.from_json({"quotas": {"dedicated_cores": 12}, "pools": pools}))

    assert [pool.current_dedicated_nodes for pool in client.list_pools()] == [2, 1]
    assert [_codes(pool) for pool in client.list_pools()] == [[], ["AccountCoreQuotaReached"]]


def test_a_formula_stays_within_the_quota() -> None:
    scaled = {"id": POOL, "vmSize": "standard_d4s_v3", "autoscale": {"formula": "$TargetLowPriorityNodes = 9;"}}
    world = World.from_json({"quotas": {"low_priority_cores": 8}, "pools": [scaled]})

    pool = make_client(world).get_pool(POOL)

    assert (pool.target_low_priority_nodes, pool.current_low_priority_nodes) == (9, 2)
    assert _codes(pool) == ["AccountLowPriorityCoreQuotaReached"]


def test_sizes() -> None:
    known = {"standard_x9": VmSize(3, "mine")}

    assert vm_size("Standard_D3_v2", known) == VmSize(4, "standardDv2Family")
    assert vm_size("standard_nc40ads_h100_v5", known).cores == 40
    assert vm_size("standard_X9", known) == VmSize(3, "mine")
    assert vm_size("standard_d16as_v6", known) == VmSize(16, "standardDasv6Family")
    assert vm_size("colour", known) == VmSize(4, "colour")


def test_sizes_of_the_world_file_count() -> None:
    world = _world({"dedicated_cores": 20}, vm_sizes={"standard_D4s_v3": {"cores": 10, "family": "big"}})

    assert _resize(world, dedicated=3).current_dedicated_nodes == 2


@pytest.mark.parametrize(("outcome", "code"), [("fail", "AllocationFailed"), ("timeout", "AllocationTimedout")])
def test_growth_fails_on_request(client: BatchClient, world: World, outcome: str, code: str) -> None:
    control.script_allocations(world, POOL, [{"outcome": outcome, "nodes": 2}])

    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 9, "resizeTimeout": "PT6M"})
    world.advance(1)
    assert client.get_pool(POOL).current_low_priority_nodes == 3
    if outcome == "timeout":
        world.advance(358)
        assert client.get_pool(POOL).allocation_state == models.AllocationState.RESIZING
        world.advance(1)
    pool = client.get_pool(POOL)
    assert (pool.allocation_state, _codes(pool)) == (models.AllocationState.STEADY, [code])

    pool = _resize(world, low_priority=9)
    assert (pool.current_low_priority_nodes, _codes(pool)) == (9, [])


def test_a_resize_that_would_time_out_can_be_stopped(client: BatchClient, world: World) -> None:
    control.script_allocations(world, POOL, [{"outcome": "timeout"}])
    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 2})
    world.advance(60)

    act(client, f"/pools/{POOL}/stopresize")
    world.advance(3600)

    assert _codes(client.get_pool(POOL)) == ["ResizeStopped"]


def test_growth_that_stops_counts_nodes_of_both_kinds(client: BatchClient, world: World) -> None:
    control.script_allocations(world, POOL, [{"outcome": "fail", "nodes": 4}])

    pool = _resize(world, dedicated=3, low_priority=4)

    assert (pool.current_dedicated_nodes, pool.current_low_priority_nodes) == (3, 2)


def test_shrinking_uses_up_no_scripted_failure(client: BatchClient, world: World) -> None:
    control.script_allocations(world, POOL, [{"outcome": "fail", "code": "UnsupportedVMSize"}])

    assert _codes(_resize(world, low_priority=0)) == []
    assert _codes(_resize(world, low_priority=1)) == ["UnsupportedVMSize"]
    assert _codes(_resize(world, low_priority=1)) == []


def test_failures_of_the_world_file() -> None:
    pool = {"id": POOL, "allocations": [{"outcome": "fail", "nodes": 1}, {"outcome": "fail"}]}
    world = World.from_json({"pools": [pool]})

    grown = [_resize(world, dedicated=3).current_dedicated_nodes for _ in range(3)]

    assert grown == [1, 1, 3]
    with pytest.raises(WorldFileError, match="soon"):
        World.from_json({"pools": [{"id": POOL, "allocations": [{"outcome": "soon"}]}]})
