"""What the SDK's methods for pools do, each in a test of its name."""

from __future__ import annotations

from datetime import timedelta

import pytest
from azure.batch import models
from azure.core.exceptions import ResourceNotFoundError

from tests.batch_contract.stand import AUTO, FORMULA, POOL, Stand, wait


def test_get_pool(stand: Stand) -> None:
    pool = stand.client.get_pool(POOL)

    assert (pool.id, pool.vm_size, pool.task_slots_per_node) == (POOL, "standard_d2s_v3", 2)
    assert (pool.state, pool.allocation_state) == (models.BatchPoolState.ACTIVE, models.AllocationState.STEADY)
    assert (pool.target_dedicated_nodes, pool.target_low_priority_nodes) == (0, 2)
    assert (pool.current_dedicated_nodes, pool.current_low_priority_nodes) == (0, 2)
    assert (pool.enable_auto_scale, pool.auto_scale_formula, pool.resize_errors) == (False, None, None)
    assert pool.resize_timeout == timedelta(minutes=15)
    assert pool.creation_time == pool.state_transition_time == pool.allocation_state_transition_time == stand.world.now
    assert pool.metadata == [models.BatchMetadataItem(name="class", value="gpu")]
    assert pool.url
    assert pool.url.endswith(f"/pools/{POOL}")


def test_list_pools(stand: Stand) -> None:
    stand.client.create_pool(models.BatchPoolCreateOptions(id="second", vm_size="standard_d2s_v3"))

    assert [pool.id for pool in stand.client.list_pools()] == [POOL, "second"]
    assert [pool.id for pool in stand.client.list_pools(filter="startswith(id,'sec')")] == ["second"]


def test_pool_exists(stand: Stand) -> None:
    assert stand.client.pool_exists(POOL) is True


def test_create_pool(stand: Stand) -> None:
    image = models.BatchVmImageReference(publisher="p", offer="o", sku="s")
    machine = models.VirtualMachineConfiguration(image_reference=image, node_agent_sku_id="batch.node.ubuntu 24.04")
    stand.client.create_pool(
        models.BatchPoolCreateOptions(
            id="new",
            display_name="A new pool",
            vm_size="standard_d2s_v3",
            virtual_machine_configuration=machine,
            task_slots_per_node=4,
            task_scheduling_policy=models.BatchTaskSchedulingPolicy(node_fill_type="pack"),
            target_dedicated_nodes=1,
            target_low_priority_nodes=1,
            start_task=models.BatchStartTask(command_line="prepare", wait_for_success=True),
        )
    )

    pool = stand.client.get_pool("new")
    assert (pool.display_name, pool.task_slots_per_node) == ("A new pool", 4)
    assert (pool.current_dedicated_nodes, pool.current_low_priority_nodes) == (1, 1)
    assert pool.task_scheduling_policy
    assert pool.task_scheduling_policy.node_fill_type == models.BatchNodeFillType.PACK
    assert pool.start_task
    assert pool.start_task.command_line == "prepare"
    assert pool.virtual_machine_configuration
    assert pool.virtual_machine_configuration.node_agent_sku_id == "batch.node.ubuntu 24.04"
    assert {node.state for node in stand.client.list_nodes("new")} == {models.BatchNodeState.IDLE}


def test_update_pool(stand: Stand) -> None:
    stand.client.update_pool(POOL, models.BatchPoolUpdateOptions(display_name="Renamed"))

    pool = stand.client.get_pool(POOL)
    assert pool.display_name == "Renamed"
    assert pool.metadata == [models.BatchMetadataItem(name="class", value="gpu")]


def test_replace_pool_properties(stand: Stand) -> None:
    stand.client.replace_pool_properties(
        POOL,
        models.BatchPoolReplaceOptions(
            application_package_references=[],
            metadata=[],
            start_task=models.BatchStartTask(command_line="prepare"),
        ),
    )

    pool = stand.client.get_pool(POOL)
    assert not pool.metadata
    assert pool.start_task
    assert pool.start_task.command_line == "prepare"
    stand.client.replace_pool_properties(
        POOL, models.BatchPoolReplaceOptions(application_package_references=[], metadata=[])
    )
    assert stand.client.get_pool(POOL).start_task is None


def test_begin_delete_pool(stand: Stand) -> None:
    wait(stand.client.begin_delete_pool(POOL, polling_interval=1))

    with pytest.raises(ResourceNotFoundError):
        stand.client.get_pool(POOL)


def test_begin_resize_pool(stand: Stand) -> None:
    wait(
        stand.client.begin_resize_pool(
            POOL,
            models.BatchPoolResizeOptions(
                target_dedicated_nodes=1, target_low_priority_nodes=3, resize_timeout=timedelta(minutes=5)
            ),
            polling_interval=1,
        )
    )

    pool = stand.client.get_pool(POOL)
    assert (pool.current_dedicated_nodes, pool.current_low_priority_nodes) == (1, 3)
    assert pool.allocation_state == models.AllocationState.STEADY
    assert pool.resize_timeout == timedelta(minutes=5)


def test_begin_stop_pool_resize(stand: Stand) -> None:
    stand.leaving()

    wait(stand.client.begin_stop_pool_resize(POOL, polling_interval=1))

    pool = stand.client.get_pool(POOL)
    assert pool.allocation_state == models.AllocationState.STEADY
    assert [error.code for error in pool.resize_errors or ()] == ["ResizeStopped"]
    assert stand.client.get_task("job", "task").state == models.BatchTaskState.RUNNING


def test_begin_remove_nodes(stand: Stand) -> None:
    first, second = (node.id for node in stand.client.list_nodes(POOL))

    wait(
        stand.client.begin_remove_nodes(
            POOL,
            models.BatchNodeRemoveOptions(node_ids=[first], node_deallocation_option="terminate"),
            polling_interval=1,
        )
    )

    assert [node.id for node in stand.client.list_nodes(POOL)] == [second]
    pool = stand.client.get_pool(POOL)
    assert (pool.target_low_priority_nodes, pool.current_low_priority_nodes) == (1, 1)


def test_enable_pool_auto_scale(stand: Stand) -> None:
    stand.client.enable_pool_auto_scale(
        POOL,
        models.BatchPoolEnableAutoScaleOptions(
            auto_scale_formula="$TargetLowPriorityNodes = 3;", auto_scale_evaluation_interval=timedelta(minutes=5)
        ),
    )

    pool = stand.client.get_pool(POOL)
    assert (pool.enable_auto_scale, pool.auto_scale_formula) == (True, "$TargetLowPriorityNodes = 3;")
    assert pool.auto_scale_evaluation_interval == timedelta(minutes=5)


def test_disable_pool_auto_scale(stand: Stand) -> None:
    stand.auto_scaling()

    stand.client.disable_pool_auto_scale(AUTO)

    pool = stand.client.get_pool(AUTO)
    assert (pool.enable_auto_scale, pool.auto_scale_formula) == (False, None)
    assert pool.current_dedicated_nodes == 1


def test_evaluate_pool_auto_scale(stand: Stand) -> None:
    stand.auto_scaling()

    run = stand.client.evaluate_pool_auto_scale(
        AUTO, models.BatchPoolEvaluateAutoScaleOptions(auto_scale_formula="$TargetDedicatedNodes = 2 + 3;")
    )

    assert run.error is None
    assert run.results
    assert "$TargetDedicatedNodes=5" in run.results.replace(" ", "")
    assert run.timestamp == stand.world.now
    pool = stand.client.get_pool(AUTO)
    assert (pool.auto_scale_formula, pool.target_dedicated_nodes) == (FORMULA, 1)


def test_list_pool_node_counts(stand: Stand) -> None:
    stand.client.create_pool(models.BatchPoolCreateOptions(id="second", vm_size="standard_d2s_v3"))
    stand.job()
    stand.task()

    first, second = stand.client.list_pool_node_counts()

    assert (first.pool_id, second.pool_id) == (POOL, "second")
    assert first.low_priority
    assert first.dedicated
    low = first.low_priority
    assert (low.idle, low.running, low.preempted, low.total) == (1, 1, 0, 2)
    assert (low.creating, low.starting, low.offline, low.unusable, low.leaving_pool) == (0, 0, 0, 0, 0)
    assert first.dedicated.total == 0
    assert [one.pool_id for one in stand.client.list_pool_node_counts(filter="poolId eq 'second'")] == ["second"]


def test_list_supported_images(stand: Stand) -> None:
    images = list(stand.client.list_supported_images())

    assert images
    assert all(image.node_agent_sku_id and image.image_reference for image in images)
    assert {image.os_type for image in images} <= set(models.OSType)
