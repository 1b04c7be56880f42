"""The pools as they are deployed, in the Batch emulator: tasks, nodes, samples, and the formula as it is deployed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from azure.batch import BatchClient, models

from local.batch import World, WorldConfig, control
from local.batch.config import WorldFileError
from tests.batch_emulator.support import make_client, make_job, make_task, runner_of
from tests.infra.snapshots import SNAPSHOTS, load, metadata, names, pools

_MINUTE = 60.0
_START_SECONDS = 120.0


class Account:
    """An account with the pools of one snapshot, whose nodes start in two minutes, and one job on one of them."""

    def __init__(self, snapshot: str, pool_id: str, **keys: Any) -> None:
        self.pool_id = pool_id
        file = str(SNAPSHOTS / f"{snapshot}.snapshot.json")
        knobs = {pool_id: {"start_seconds": _START_SECONDS, "return_after_seconds": None}}
        self.world = World.from_json({"pools_from": [file], "pool_knobs": knobs, **keys})
        self.client: BatchClient = make_client(self.world)
        make_job(self.client, pool_id=pool_id)
        self.evaluation_seconds = self.pool().auto_scale_evaluation_interval.total_seconds()  # type: ignore[union-attr]
        self._tasks = 0

    def submit(self, number: int) -> list[str]:
        """Their ids."""
        ids = [f"t{self._tasks + index}" for index in range(number)]
        self._tasks += number
        for task_id in ids:
            make_task(self.client, task_id)
        return ids

    def finish(self, *ids: str) -> None:
        for task_id in ids:
            runner_of(self.world).finish("job", task_id)

    def pass_evaluations(self, number: int = 1) -> None:
        """Time for so many evaluations, for the samples they need, and for the nodes they order to start."""
        self.world.advance(number * self.evaluation_seconds + _START_SECONDS + 2)

    def pass_until_before_evaluation(self, seconds: float) -> None:
        """So many seconds before the next one that is at least so far away."""
        created = self.pool().creation_time
        assert created
        elapsed = (self.world.now - created).total_seconds()
        self.world.advance(-(elapsed + seconds) % self.evaluation_seconds)

    def pool(self) -> models.BatchPool:
        return self.client.get_pool(self.pool_id)

    def nodes(self) -> int:
        """Those that the pool has, lost ones included, of both kinds; the other kind never has any."""
        pool = self.pool()
        assert 0 in (pool.current_dedicated_nodes, pool.current_low_priority_nodes)
        return (pool.current_dedicated_nodes or 0) + (pool.current_low_priority_nodes or 0)

    def most_nodes(self) -> int:
        """The most that were there at any time."""
        most = present = 0
        for event in self.world.events.entries:
            if event.get("pool") == self.pool_id:
                present += (event["event"], event.get("state")) == ("node_state", "creating")
                present -= event["event"] == "node_removed"
                most = max(most, present)
        return most

    def running(self) -> set[str]:
        return {task.id for task in self.client.list_tasks("job") if task.state == models.BatchTaskState.RUNNING}


SPOT, FOUR_SLOTS = ("pools-autoscale-spot", "haste-shared-dev-t4-pool"), ("pool-four-slots", "example-pool")
FORMULAS = {
    (name, pool_id): pool["properties"]["scaleSettings"]["autoScale"]["formula"]
    for name in names("pool")
    for pool_id, pool in pools(load(name)).items()
    if "autoScale" in pool["properties"]["scaleSettings"]
}
FROM_ZERO = [known for known, formula in FORMULAS.items() if formula.startswith("minimum = 0;")]


def _maximum(name: str, pool_id: str) -> int:
    return int(metadata(pools(load(name))[pool_id])["maximumNodes"])


@pytest.mark.parametrize(("name", "pool_id"), FROM_ZERO)
def test_from_zero_for_one_task_and_back_to_zero_when_idle(name: str, pool_id: str) -> None:
    account = Account(name, pool_id)
    account.pass_evaluations()
    assert account.nodes() == 0

    (task,) = account.submit(1)
    account.pass_evaluations()
    assert (account.nodes(), account.running()) == (1, {task})
    account.pass_evaluations(6)
    assert (account.nodes(), account.running()) == (1, {task}), "a running task keeps its node"

    account.finish(task)
    account.pass_evaluations(2)
    assert account.nodes() == 0
    account.pass_evaluations(6)
    assert account.most_nodes() == 1


@pytest.mark.parametrize(("name", "pool_id"), FORMULAS)
def test_never_above_the_maximum(name: str, pool_id: str) -> None:
    account = Account(name, pool_id)
    maximum = _maximum(name, pool_id)
    slots = account.pool().task_slots_per_node or 1
    tasks = account.submit(5 * maximum * slots)
    for _ in range(6):
        account.pass_evaluations()
        account.finish(*sorted(account.running())[:slots])
    assert (account.nodes(), account.most_nodes()) == (maximum, maximum)

    account.pass_evaluations()
    while running := account.running():
        account.finish(*running)
    ended = [task for task in account.client.list_tasks("job") if task.state == models.BatchTaskState.COMPLETED]
    assert len(ended) == len(tasks), "all is done all the same"


@pytest.mark.parametrize(("tasks", "nodes"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (12, 3), (13, 3)])
def test_tasks_are_divided_by_slots_and_rounded_up(tasks: int, nodes: int) -> None:
    account = Account(*FOUR_SLOTS)
    account.submit(tasks)
    account.pass_evaluations()
    assert (account.nodes(), len(account.running())) == (nodes, min(tasks, 4 * nodes))


def test_a_pool_with_a_minimum_keeps_it() -> None:
    account = Account(*FOUR_SLOTS)
    assert account.nodes() == 1, "before there is any sample"
    tasks = account.submit(9)
    account.pass_evaluations()
    assert account.nodes() == 3
    account.finish(*tasks)
    account.pass_evaluations(3)
    assert account.nodes() == 1


def test_nodes_that_are_busy_stay_when_the_others_go() -> None:
    """The service takes idle nodes first, and with `taskcompletion` it waits for the others."""
    account = Account("pools-autoscale-spot", "haste-shared-dev-h100-pool")
    tasks = account.submit(3)
    account.pass_evaluations()
    assert (account.nodes(), account.running()) == (3, set(tasks))

    account.finish(tasks[0])
    account.pass_evaluations(2)
    assert (account.nodes(), account.running()) == (2, set(tasks[1:]))
    retries = [task.execution_info.requeue_count for task in account.client.list_tasks("job") if task.execution_info]
    assert retries == [0, 0, 0]


def test_a_shrinking_pool_ends_no_running_task() -> None:
    """Two nodes run a task each where one would do: one leaves, but only when its task has ended."""
    account = Account(*FOUR_SLOTS)
    account.submit(8)
    account.pass_evaluations()
    by_node: dict[str, str] = {}
    for task in account.client.list_tasks("job"):
        assert task.id and task.node_info and task.node_info.node_id
        by_node[task.node_info.node_id] = task.id
    assert len(by_node) == 2
    staying = set(by_node.values())
    account.finish(*sorted(account.running() - staying))

    account.pass_evaluations(4)
    assert (account.pool().target_low_priority_nodes, account.running()) == (1, staying)
    requeues = [task.execution_info.requeue_count for task in account.client.list_tasks("job") if task.execution_info]
    assert requeues == [0] * 8

    account.finish(*staying)
    account.world.advance(1)
    assert account.nodes() == 1


def test_an_evaluation_in_a_gap_keeps_the_node_for_the_next_task() -> None:
    """Else a pool that is used all the time, by one task after the other, would wait for a new node each time."""
    account = Account(*SPOT)
    (task,) = account.submit(1)
    account.pass_evaluations()
    for _ in range(3):
        assert account.running() == {task}
        account.pass_until_before_evaluation(120)
        account.finish(task)
        account.world.advance(121)
        (task,) = account.submit(1)
    assert (account.most_nodes(), account.running()) == (1, {task})
    assert account.world.events.select("node_removed", pool=account.pool_id) == []


def test_a_preempted_node_is_replaced() -> None:
    account = Account(*SPOT)
    (task,) = account.submit(1)
    account.pass_evaluations()
    lost = control.preempt_task(account.world, "job", task)
    assert account.running() == set()

    account.pass_evaluations()
    assert account.running() == {task}
    info = account.client.get_task("job", task).node_info
    assert info and info.node_id != lost
    assert account.nodes() == 2, "the lost one holds its place"

    account.finish(task)
    account.pass_evaluations(2)
    assert account.nodes() == 0, "nothing to do, nothing to replace"


def test_an_idle_node_that_is_lost_is_not_replaced() -> None:
    account = Account(*SPOT)
    (task,) = account.submit(1)
    account.pass_evaluations()
    account.pass_until_before_evaluation(1)
    account.world.advance(2)
    account.finish(task)
    (idle,) = account.client.list_nodes(account.pool_id)
    control.preempt_node(account.world, account.pool_id, idle.id)

    account.pass_evaluations(3)
    assert (account.nodes(), account.most_nodes()) == (0, 1)


def test_lost_nodes_and_their_replacements_stay_within_the_maximum() -> None:
    account = Account(*SPOT)
    tasks = account.submit(3)
    account.pass_evaluations()
    for task in sorted(account.running()):
        control.preempt_task(account.world, "job", task)
    account.pass_evaluations(4)
    assert (account.nodes(), account.most_nodes()) == (2, 2)

    for node in account.client.list_nodes(account.pool_id):
        assert control.bring_back(account.world, account.pool_id, node.id)
    account.pass_evaluations()
    assert account.running() < set(tasks) and len(account.running()) == 2


def test_a_pool_at_its_quota_says_so_and_keeps_what_it_has() -> None:
    account = Account(*SPOT, quotas={"low_priority_cores": 16})
    account.submit(2)
    account.pass_evaluations()
    errors = account.pool().resize_errors or []
    assert [error.code for error in errors] == ["AccountLowPriorityCoreQuotaReached"]
    assert (account.nodes(), len(account.running())) == (1, 1)


def test_the_settings_are_the_snapshot_s() -> None:
    account = Account(*SPOT)
    deployed = pools(load(SPOT[0]))[SPOT[1]]["properties"]
    shown = account.pool()
    machine = shown.virtual_machine_configuration
    assert machine and machine.container_configuration

    assert shown.vm_size == deployed["vmSize"]
    assert shown.auto_scale_formula == deployed["scaleSettings"]["autoScale"]["formula"]
    assert shown.auto_scale_evaluation_interval and shown.auto_scale_evaluation_interval.total_seconds() == 300
    assert {item.name: item.value for item in shown.metadata or []} == metadata(pools(load(SPOT[0]))[SPOT[1]])
    assert shown.task_scheduling_policy
    assert shown.task_scheduling_policy.node_fill_type == models.BatchNodeFillType.PACK
    assert shown.enable_inter_node_communication is False
    deployed_machine = deployed["deploymentConfiguration"]["virtualMachineConfiguration"]
    assert machine.node_agent_sku_id == deployed_machine["nodeAgentSkuId"]
    assert machine.image_reference.sku == deployed_machine["imageReference"]["sku"]
    assert machine.container_configuration.type == models.ContainerType.DOCKER_COMPATIBLE
    images = deployed_machine["containerConfiguration"]["containerImageNames"]
    assert machine.container_configuration.container_image_names == images


def test_fixed_pools_and_subnets() -> None:
    name, pool_id = "pools-fixed-spot-vnet", "haste-shared-dev-h100-pool"
    deployed = pools(load(name))[pool_id]["properties"]
    fixed = deployed["scaleSettings"]["fixedScale"]
    world = World.from_json({"pools_from": [str(SNAPSHOTS / f"{name}.snapshot.json")]})
    shown = make_client(world).get_pool(pool_id)

    assert fixed["targetLowPriorityNodes"] > 0
    assert (shown.target_dedicated_nodes, shown.target_low_priority_nodes) == (0, fixed["targetLowPriorityNodes"])
    assert (shown.current_low_priority_nodes, shown.enable_auto_scale) == (fixed["targetLowPriorityNodes"], False)
    assert shown.resize_timeout and shown.resize_timeout.total_seconds() == 15 * _MINUTE
    assert shown.network_configuration
    assert shown.network_configuration.subnet_id == deployed["networkConfiguration"]["subnetId"]


@pytest.mark.parametrize("name", names("pool"))
def test_every_snapshot_with_pools_can_be_read(name: str) -> None:
    config = WorldConfig.from_json({"pools_from": [str(SNAPSHOTS / f"{name}.snapshot.json")]})
    assert {pool.id for pool in config.pools} == set(pools(load(name)))


def test_auto_scale_can_live_faster_than_all_else() -> None:
    """The same formula comes to the same targets, in a sixtieth of the time; the account's clock is as it was."""
    account = Account(*SPOT)
    knobs = {SPOT[1]: {"autoscale_speed": 60, "start_seconds": 1}}
    fast = Account(*SPOT, pool_knobs=knobs)
    started, targets = fast.world.now, []
    for one, speed in ((account, 1), (fast, 60)):
        seen: list[int] = []
        (task,) = one.submit(1)
        for minute in range(20):
            if minute == 8:
                one.finish(task)
            one.world.advance(_MINUTE / speed)
            seen.append(one.pool().target_low_priority_nodes or 0)
        targets.append(seen)
    assert targets[0] == targets[1]
    assert set(targets[0]) == {0, 1}
    assert (fast.world.now - started).total_seconds() == 20
    assert fast.pool().auto_scale_evaluation_interval == account.pool().auto_scale_evaluation_interval


def test_paths_are_relative_to_the_world_file(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/x.snapshot.json").write_text(json.dumps(load(SPOT[0])))
    world = {
        "pools_from": ["templates/x.snapshot.json"],
        "pool_knobs": {SPOT[1].upper(): {"low_priority_available": 0}},
        "pools": [{"id": "another"}],
    }
    (tmp_path / "world.json").write_text(json.dumps(world))

    found = {pool.id: pool for pool in WorldConfig.from_file(tmp_path / "world.json").pools}

    assert set(found) == {"another", *pools(load(SPOT[0]))}
    assert found[SPOT[1]].low_priority_available == 0


def _changed(**properties: Any) -> str:
    snapshot = load(SPOT[0])
    changed = next(iter(pools(snapshot).values()))["properties"]
    for name, value in properties.items():
        changed[name] = value
        if value is None:
            del changed[name]
    return json.dumps(snapshot)


def test_a_fixed_pool_keeps_its_own_resize_timeout(tmp_path: Path) -> None:
    fixed = {"targetDedicatedNodes": 2, "resizeTimeout": "PT20M", "nodeDeallocationOption": "TaskCompletion"}
    (tmp_path / "x.snapshot.json").write_text(_changed(scaleSettings={"fixedScale": fixed}))
    world = World(WorldConfig.from_json({"pools_from": ["x.snapshot.json"]}, tmp_path))
    shown = make_client(world).get_pool("haste-shared-dev-h100-pool")
    assert (shown.target_dedicated_nodes, shown.target_low_priority_nodes) == (2, 0)
    assert shown.resize_timeout and shown.resize_timeout.total_seconds() == 20 * _MINUTE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no json", "x.snapshot.json is not a Bicep snapshot: it is not JSON"),
        ("[]", "is not a Bicep snapshot: it has no list predictedResources"),
        ('{"resources": []}', "is not a Bicep snapshot: it has no list predictedResources"),
        ('{"predictedResources": []}', "has no pools"),
        (json.dumps(load("main-legacy")), "has no pools"),
        (_changed(vmSize=None), "pool 'haste-shared-dev-h100-pool' cannot be read: KeyError 'vmSize'"),
        (_changed(colour="red"), "pool haste-shared-dev-h100-pool.*colour"),
        (_changed(taskSlotsPerNode=None, scaleSettings={"autoScale": {"formula": "$x = ;"}}), "formula"),
        (_changed(scaleSettings={"autoScale": {}}), "formula"),
        (_changed(scaleSettings={"autoScale": {"formula": "", "evaluationInterval": "soon"}}), "not an ISO 8601"),
    ],
)
def test_a_file_that_is_no_snapshot_of_pools(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "x.snapshot.json").write_text(text)
    with pytest.raises(WorldFileError, match=reason):
        WorldConfig.from_json({"pools_from": ["x.snapshot.json"]}, tmp_path)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"pools_from": ["absent.json"]}, "absent.json cannot be read"),
        ({"pools_from": "x.snapshot.json"}, "list of paths"),
        ({"pool_knobs": {"other": {}}}, "has a pool 'other'"),
        ({"pool_knobs": ["other"]}, "pool_knobs is an object"),
        ({"pool_knobs": {SPOT[1]: {"vmSize": "standard_d2s_v3"}}}, "'vmSize' is not one of"),
        ({"pool_knobs": {SPOT[1]: {"autoscale_speed": 0}}}, "autoscale_speed is more than 0"),
        ({"pools": [{"id": SPOT[1]}]}, "two pools are called 'haste-shared-dev-t4-pool'"),
        ({"pools": [{"id": "p", "properties": {"colour": "red"}}]}, "colour"),
        ({"pools": [{"id": "p", "properties": {"vmSize": "x"}}]}, "vmSize has no place"),
    ],
)
def test_what_a_world_file_may_not_say_of_pools(keys: dict[str, Any], reason: str) -> None:
    world = {"pools_from": [str(SNAPSHOTS / f"{SPOT[0]}.snapshot.json")], **keys}
    with pytest.raises(WorldFileError, match=reason):
        WorldConfig.from_json(world)
