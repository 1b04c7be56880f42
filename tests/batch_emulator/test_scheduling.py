"""Which task starts where."""

import copy
from typing import Any

import pytest
from azure.batch import BatchClient, models

from local.batch import World, control
from tests.batch_emulator.support import POOL, act, make_client, make_job, make_task, make_world, runner_of, states


def _world(**pool: Any) -> tuple[World, BatchClient]:
    world = World.from_json({"pools": [{"id": POOL, "start_seconds": 0, **pool}]})
    client = make_client(world)
    make_job(client)
    return world, client


def _drain(world: World) -> list[str]:
    """Finish what runs, one task at a time, and return the tasks in the order of their starts."""
    runner = runner_of(world)
    order = []
    while runner.running():
        job, task = runner.running()[0]
        order.append(task)
        runner.finish(job, task)
    return order


def test_equal_priorities_are_served_in_the_order_of_creation() -> None:
    world, client = _world(targetDedicatedNodes=1)
    make_job(client, "second")
    names = ["t9", "t1", "t5", "t3"]
    for number, name in enumerate(names):
        make_task(client, name, "job" if number % 2 else "second")

    assert _drain(world) == names


def test_a_higher_priority_starts_first_but_does_not_push_out() -> None:
    world, client = _world(targetDedicatedNodes=1)
    make_job(client, "urgent", priority=100)
    for name in ("a", "b"):
        make_task(client, name)
    make_task(client, "u", "urgent")

    assert states(client) == {"a": "running", "b": "active"}
    assert _drain(world) == ["a", "u", "b"]


def test_a_changed_priority_counts() -> None:
    world, client = _world(targetDedicatedNodes=1)
    make_job(client, "later")
    for name, job in (("a", "job"), ("b", "job"), ("c", "later")):
        make_task(client, name, job)

    client.update_job("later", models.BatchJobUpdateOptions(priority=1))

    assert _drain(world) == ["a", "c", "b"]


def test_a_preempted_task_keeps_its_place() -> None:
    world, client = _world(targetLowPriorityNodes=1)
    for name in ("a", "b"):
        make_task(client, name)

    control.preempt_task(world, "job", "a", return_after_seconds=0)

    assert _drain(world) == ["a", "b"]


def test_slots_are_shared_and_never_oversubscribed() -> None:
    world, client = _world(targetDedicatedNodes=1, taskSlotsPerNode=4)
    make_task(client, "three", required_slots=3)
    make_task(client, "two", required_slots=2)
    make_task(client, "one")

    assert states(client) == {"three": "running", "two": "active", "one": "running"}
    runner_of(world).finish("job", "three")
    assert states(client) == {"three": "completed", "two": "running", "one": "running"}


def test_a_task_that_fits_no_node_waits_for_ever_and_blocks_nobody() -> None:
    world, client = _world(targetDedicatedNodes=1)
    make_task(client, "big", required_slots=2)
    make_task(client, "small")
    world.advance(86400)

    assert states(client) == {"big": "active", "small": "running"}


@pytest.mark.parametrize(("fill", "nodes"), [("spread", 2), ("pack", 1)])
def test_nodes_are_filled_as_the_pool_says(fill: str, nodes: int) -> None:
    _, client = _world(targetDedicatedNodes=2, taskSlotsPerNode=4, nodeFillType=fill)
    for number in range(2):
        make_task(client, f"t{number}")

    used = {task.node_info.node_id for task in client.list_tasks("job") if task.node_info}

    assert len(used) == nodes


def test_a_job_s_parallel_limit_holds_and_can_be_raised() -> None:
    _, client = _world(targetDedicatedNodes=4)
    make_job(client, "capped", max_parallel_tasks=1)
    for number in range(3):
        make_task(client, f"t{number}", "capped")
    assert sorted(states(client, "capped").values()) == ["active", "active", "running"]

    client.update_job("capped", models.BatchJobUpdateOptions(max_parallel_tasks=2))

    assert sorted(states(client, "capped").values()) == ["active", "running", "running"]


def test_tasks_stay_in_their_pool() -> None:
    world = World.from_json(
        {"pools": [{"id": "full", "start_seconds": 0}, {"id": "free", "targetDedicatedNodes": 1, "start_seconds": 0}]}
    )
    client = make_client(world)
    make_job(client, pool_id="full")
    make_task(client)
    world.advance(60)

    assert states(client) == {"task": "active"}


def test_a_disabled_job_moves_to_another_pool() -> None:
    world = World.from_json(
        {"pools": [{"id": "full", "start_seconds": 0}, {"id": "free", "targetDedicatedNodes": 1, "start_seconds": 0}]}
    )
    client = make_client(world)
    make_job(client, pool_id="full")
    make_task(client)
    act(client, "/jobs/job/disable", {"disableTasks": "requeue"})
    world.advance(1)
    client.update_job("job", models.BatchJobUpdateOptions(pool_info=models.BatchPoolInfo(pool_id="free")))
    act(client, "/jobs/job/enable")
    world.advance(1)

    assert states(client) == {"task": "running"}


def test_a_twin_world_goes_its_own_way() -> None:
    world = make_world()
    client = make_client(world)
    make_job(client)
    make_task(client)
    twin = copy.deepcopy(world)

    runner_of(twin).finish("job", "task", 1)
    twin.advance(10)

    assert states(client) == {"task": "running"}
    assert states(make_client(twin)) == {"task": "completed"}
    assert world.now != twin.now
    assert not world.events.select("task_completed")
