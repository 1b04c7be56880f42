"""Pools: what requests do to them, and how nodes come and go."""

from datetime import timedelta
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from local.batch import World, control
from tests.batch_emulator.support import (
    INSTANT,
    POOL,
    act,
    make_client,
    make_job,
    make_task,
    make_world,
    refusal,
    runner_of,
    states,
    word,
)


def _options(pool_id: str = "new", **options: Any) -> models.BatchPoolCreateOptions:
    return models.BatchPoolCreateOptions(id=pool_id, vm_size="standard_d2s_v3", **options)


def _node_states(client: BatchClient, pool_id: str) -> list[str]:
    return [word(node.state) for node in client.list_nodes(pool_id)]


def test_a_created_pool_resizes_and_its_nodes_start(client: BatchClient, world: World) -> None:
    client.create_pool(_options(target_dedicated_nodes=1, target_low_priority_nodes=2))

    assert client.get_pool("new").allocation_state == models.AllocationState.RESIZING
    assert _node_states(client, "new") == []
    world.advance(1)
    pool = client.get_pool("new")
    assert pool.allocation_state == models.AllocationState.STEADY
    assert (pool.current_dedicated_nodes, pool.current_low_priority_nodes) == (1, 2)
    assert _node_states(client, "new") == ["creating"] * 3
    world.advance(1)
    assert _node_states(client, "new") == ["starting"] * 3
    world.advance(1)
    assert _node_states(client, "new") == ["idle"] * 3
    assert sorted(node.id[-2:] for node in client.list_nodes("new")) == ["_d", "_p", "_p"]


def test_a_pool_id_is_used_once_whatever_its_case(client: BatchClient) -> None:
    with pytest.raises(ResourceExistsError) as refused:
        client.create_pool(_options(POOL.upper()))

    assert refusal(refused.value) == (409, "PoolExists")


def test_the_number_of_pools_is_limited() -> None:
    client = make_client(make_world(quotas={"pools": 1}))

    with pytest.raises(ResourceExistsError) as refused:
        client.create_pool(_options())

    assert refusal(refused.value) == (409, "PoolQuotaReached")


def test_an_auto_scale_pool_needs_a_formula_and_no_targets(client: BatchClient) -> None:
    for options in ({"enable_auto_scale": True}, {"auto_scale_formula": "$TargetDedicatedNodes = 1;"}):
        with pytest.raises(HttpResponseError) as refused:
            client.create_pool(_options(**options))
        assert refused.value.status_code == 400
    with pytest.raises(HttpResponseError) as refused:
        client.create_pool(_options(enable_auto_scale=True, auto_scale_formula="f", target_dedicated_nodes=1))
    assert refusal(refused.value) == (400, "InvalidPropertyValue")


def test_get_list_and_exists(client: BatchClient) -> None:
    pool = client.get_pool(POOL)

    assert (pool.id, pool.vm_size, pool.task_slots_per_node) == (POOL, "standard_d2s_v3", 1)
    assert (pool.target_low_priority_nodes, pool.enable_auto_scale) == (1, False)
    assert [listed.id for listed in client.list_pools()] == [POOL]
    assert client.pool_exists(POOL)
    with pytest.raises(ResourceNotFoundError):
        client.pool_exists("none")
    with pytest.raises(ResourceNotFoundError) as missing:
        client.get_pool("none")
    assert refusal(missing.value) == (404, "PoolNotFound")


def test_patch_changes_metadata_and_the_etag(client: BatchClient) -> None:
    before = client.get_pool(POOL)

    client.update_pool(
        POOL, models.BatchPoolUpdateOptions(metadata=[models.BatchMetadataItem(name="class", value="gpu")])
    )

    after = client.get_pool(POOL)
    assert after.metadata and after.metadata[0].value == "gpu"
    assert before.etag != after.etag


def test_slots_change_only_in_an_empty_pool(client: BatchClient) -> None:
    with pytest.raises(ResourceExistsError) as refused:
        client.update_pool(POOL, models.BatchPoolUpdateOptions(task_slots_per_node=4))

    assert refusal(refused.value) == (409, "OperationNotValidOnPool")


def test_a_resize_grows_the_pool_and_refuses_a_second_one(client: BatchClient, world: World) -> None:
    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 3})

    with pytest.raises(HttpResponseError) as refused:
        act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 4})
    assert "PoolBeingResized" in refused.value.response.text()  # type: ignore[union-attr]
    world.advance(1)
    pool = client.get_pool(POOL)
    assert (pool.allocation_state, pool.current_low_priority_nodes) == (models.AllocationState.STEADY, 3)


@pytest.mark.parametrize(
    ("option", "task_state", "requeue_count"), [("requeue", "active", 1), ("terminate", "completed", 0)]
)
def test_shrinking_deals_with_running_tasks_as_asked(
    client: BatchClient, world: World, option: str, task_state: str, requeue_count: int
) -> None:
    make_job(client)
    make_task(client)

    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 0, "nodeDeallocationOption": option})
    world.advance(1)

    task = client.get_task("job", "task")
    assert task.state == task_state
    assert task.execution_info and task.execution_info.requeue_count == requeue_count
    assert client.get_pool(POOL).current_low_priority_nodes == 0


def test_shrinking_with_taskcompletion_waits_and_blocks_other_resizes(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)

    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 0, "nodeDeallocationOption": "taskcompletion"})
    world.advance(3600)

    assert client.get_pool(POOL).allocation_state == models.AllocationState.RESIZING
    make_task(client, "late")
    runner_of(world).finish("job", "task")
    assert client.get_pool(POOL).allocation_state == models.AllocationState.STEADY
    assert states(client) == {"task": "completed", "late": "active"}


def test_stop_resize_keeps_the_nodes(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 0, "nodeDeallocationOption": "taskcompletion"})

    act(client, f"/pools/{POOL}/stopresize")

    assert client.get_pool(POOL).allocation_state == models.AllocationState.STOPPING
    world.advance(1)
    pool = client.get_pool(POOL)
    assert (pool.allocation_state, pool.current_low_priority_nodes) == (models.AllocationState.STEADY, 1)
    assert [error.code for error in pool.resize_errors or ()] == ["ResizeStopped"]
    with pytest.raises(HttpResponseError) as refused:
        act(client, f"/pools/{POOL}/stopresize")
    assert refused.value.status_code == 409


def test_a_short_resize_timeout_is_refused(client: BatchClient) -> None:
    with pytest.raises(HttpResponseError) as refused:
        act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 2, "resizeTimeout": "PT1M"})

    assert refused.value.status_code == 400


def test_the_sdk_s_own_pollers_see_the_end() -> None:
    world = make_world(timings=INSTANT)
    client = make_client(world)

    client.begin_resize_pool(POOL, models.BatchPoolResizeOptions(target_low_priority_nodes=2)).wait(5)
    assert len(list(client.list_nodes(POOL))) == 2
    client.begin_delete_pool(POOL).wait(5)

    with pytest.raises(ResourceNotFoundError):
        client.get_pool(POOL)


def test_deleting_a_pool_puts_its_tasks_back_and_keeps_the_job(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)

    act(client, f"/pools/{POOL}", method="DELETE")
    assert client.get_pool(POOL).state == models.BatchPoolState.DELETING
    with pytest.raises(ResourceExistsError) as refused:
        client.create_pool(_options(POOL))
    assert refusal(refused.value) == (409, "PoolBeingDeleted")
    world.advance(1)

    assert list(client.list_pools()) == []
    assert states(client) == {"task": "active"}
    client.create_pool(_options(POOL, target_dedicated_nodes=1))
    world.advance(10)
    assert states(client) == {"task": "running"}


def test_resize_errors_stay_until_the_next_resize(client: BatchClient, world: World) -> None:
    errors = [{"code": "AllocationTimedout", "message": "no machines"}]
    control.set_resize_errors(world, POOL, errors, now=False, later=True)

    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 3})
    assert not client.get_pool(POOL).resize_errors
    world.advance(3 * 86400)
    pool = client.get_pool(POOL)
    assert [error.code for error in pool.resize_errors or ()] == ["AllocationTimedout"]
    assert (pool.current_low_priority_nodes, pool.allocation_state) == (1, models.AllocationState.STEADY)

    control.set_resize_errors(world, POOL, [], now=False)
    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 2})
    world.advance(1)
    assert not client.get_pool(POOL).resize_errors
    assert client.get_pool(POOL).current_low_priority_nodes == 2


def test_capacity_limits_low_priority_nodes(client: BatchClient, world: World) -> None:
    control.set_low_priority_available(world, POOL, 2)

    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 5})
    world.advance(10)

    pool = client.get_pool(POOL)
    assert pool.current_low_priority_nodes == 2
    assert [error.code for error in pool.resize_errors or ()] == ["AllocationFailed"]
    control.set_low_priority_available(world, POOL, None)
    world.advance(10)
    assert client.get_pool(POOL).current_low_priority_nodes == 5


def test_auto_scale_follows_waiting_and_running_tasks() -> None:
    pool = {"id": POOL, "taskSlotsPerNode": 2, "autoscale": {"max": 3, "interval_seconds": 300}}
    world = World.from_json({"pools": [pool]})
    client = make_client(world)
    make_job(client)
    for number in range(5):
        make_task(client, f"t{number}")

    shown = client.get_pool(POOL)
    assert shown.auto_scale_formula and shown.enable_auto_scale
    assert shown.auto_scale_evaluation_interval == timedelta(minutes=5)
    assert shown.current_low_priority_nodes == 0
    world.advance(310)
    assert client.get_pool(POOL).current_low_priority_nodes == 3
    assert sorted(states(client).values()) == ["running"] * 5
    run = client.get_pool(POOL).auto_scale_run
    assert run and run.results and "$TargetLowPriorityNodes=3" in run.results

    for number in range(5):
        runner_of(world).finish("job", f"t{number}")
    world.advance(301)
    assert client.get_pool(POOL).current_low_priority_nodes == 0


def test_an_auto_scale_pool_refuses_a_resize() -> None:
    client = make_client(World.from_json({"pools": [{"id": POOL, "autoscale": {}}]}))

    with pytest.raises(HttpResponseError) as refused:
        act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 1})

    assert refused.value.status_code == 409


def test_enabling_auto_scale_evaluates_at_once_and_not_too_often(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client, "one")
    make_task(client, "two")
    formula = "$TargetLowPriorityNodes = 2;"

    client.enable_pool_auto_scale(POOL, models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=formula))
    world.advance(5)

    assert client.get_pool(POOL).auto_scale_formula == formula
    assert states(client) == {"one": "running", "two": "running"}
    with pytest.raises(HttpResponseError) as refused:
        client.enable_pool_auto_scale(POOL, models.BatchPoolEnableAutoScaleOptions(auto_scale_formula=formula))
    assert refusal(refused.value) == (503, "TooManyEnableAutoScaleRequests")
    client.disable_pool_auto_scale(POOL)
    assert client.get_pool(POOL).enable_auto_scale is False


def test_node_counts_tell_every_state(client: BatchClient, world: World) -> None:
    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 3, "targetDedicatedNodes": 1})
    world.advance(10)
    make_job(client)
    make_task(client)
    make_task(client, "second")
    control.preempt_node(world, POOL, return_after_seconds=None)

    (counts,) = client.list_pool_node_counts(filter=f"poolId eq '{POOL}'")

    assert counts.dedicated and counts.low_priority
    assert (counts.low_priority.total, counts.low_priority.preempted) == (3, 1)
    assert counts.dedicated.total == 1
    busy = counts.low_priority.running + counts.dedicated.running
    assert (busy, counts.low_priority.idle + counts.dedicated.idle) == (2, 1)


def test_node_counts_may_lag() -> None:
    world = make_world(timings={"node_counts_lag_seconds": 30})
    client = make_client(world)

    def idle() -> int:
        (counts,) = client.list_pool_node_counts()
        return counts.low_priority.idle if counts.low_priority else -1

    assert idle() == 1
    make_job(client)
    make_task(client)
    assert idle() == 1
    world.advance(30)
    assert idle() == 0
