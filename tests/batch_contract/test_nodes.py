"""What the SDK's methods for nodes do, each in a test of its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from azure.batch import models

from tests.batch_contract.stand import POOL, Stand, wait

#: The SDK exports no model for the options of these actions, and it sends nothing when they are left out.
_OPTIONS: dict[str, Any] = {
    "reboot": {"nodeRebootOption": "requeue"},
    "reimage": {"nodeReimageOption": "requeue"},
    "deallocate": {"nodeDeallocateOption": "requeue"},
}


def _busy_node(stand: Stand) -> str:
    stand.job()
    stand.task()
    task = stand.client.get_task("job", "task")
    assert task.node_info
    assert task.node_info.node_id
    return task.node_info.node_id


def test_list_nodes(stand: Stand) -> None:
    first, second = stand.client.list_nodes(POOL)

    assert first.id != second.id
    assert first.id.startswith("tvmps_")
    assert first.id.endswith("_p")
    assert [node.id for node in stand.client.list_nodes(POOL, filter="state eq 'running'")] == []


def test_get_node(stand: Stand) -> None:
    node = stand.client.get_node(POOL, _busy_node(stand))

    assert (node.state, node.scheduling_state) == (models.BatchNodeState.RUNNING, models.SchedulingState.ENABLED)
    assert (node.is_dedicated, node.vm_size) == (False, "standard_d2s_v3")
    assert (node.running_tasks_count, node.running_task_slots_count, node.total_tasks_run) == (1, 1, 1)
    assert node.recent_tasks
    recent = node.recent_tasks[0]
    assert (recent.job_id, recent.task_id, recent.task_state) == ("job", "task", models.BatchTaskState.RUNNING)
    assert recent.execution_info
    assert recent.execution_info.start_time == stand.world.now
    assert node.last_boot_time == node.allocation_time == node.state_transition_time == stand.world.now


def test_disable_node_scheduling(stand: Stand) -> None:
    node_id = _busy_node(stand)

    stand.client.disable_node_scheduling(
        POOL, node_id, models.BatchNodeDisableSchedulingOptions(node_disable_scheduling_option="requeue")
    )

    node = stand.client.get_node(POOL, node_id)
    assert (node.state, node.scheduling_state) == (models.BatchNodeState.OFFLINE, models.SchedulingState.DISABLED)
    task = stand.client.get_task("job", "task")
    assert task.node_info
    assert task.node_info.node_id != node_id
    assert task.execution_info
    assert task.execution_info.requeue_count == 1


def test_enable_node_scheduling(stand: Stand) -> None:
    node_id = stand.node()
    stand.client.disable_node_scheduling(
        POOL, node_id, models.BatchNodeDisableSchedulingOptions(node_disable_scheduling_option="terminate")
    )

    stand.client.enable_node_scheduling(POOL, node_id)

    node = stand.client.get_node(POOL, node_id)
    assert (node.state, node.scheduling_state) == (models.BatchNodeState.IDLE, models.SchedulingState.ENABLED)


def _started_anew(stand: Stand, action: str) -> None:
    node_id = _busy_node(stand)
    before = stand.client.get_node(POOL, node_id)
    stand.world.advance(60)

    begin = getattr(stand.client, f"begin_{action}_node")
    wait(begin(POOL, node_id, _OPTIONS[action], polling_interval=1))

    node = stand.client.get_node(POOL, node_id)
    assert (node.id, node.allocation_time) == (before.id, before.allocation_time)
    assert before.last_boot_time
    assert node.last_boot_time == before.last_boot_time + timedelta(seconds=60)
    task = stand.client.get_task("job", "task")
    assert task.state == models.BatchTaskState.RUNNING
    assert task.execution_info
    assert task.execution_info.start_time == stand.world.now


def test_begin_reboot_node(stand: Stand) -> None:
    _started_anew(stand, "reboot")


def test_begin_reimage_node(stand: Stand) -> None:
    _started_anew(stand, "reimage")


def test_begin_deallocate_node(stand: Stand) -> None:
    node_id = _busy_node(stand)

    wait(stand.client.begin_deallocate_node(POOL, node_id, _OPTIONS["deallocate"], polling_interval=1))

    assert stand.client.get_node(POOL, node_id).state == models.BatchNodeState.DEALLOCATED
    task = stand.client.get_task("job", "task")
    assert task.node_info
    assert task.node_info.node_id != node_id


def test_begin_start_node(stand: Stand) -> None:
    node_id = stand.node()
    wait(stand.client.begin_deallocate_node(POOL, node_id, _OPTIONS["deallocate"], polling_interval=1))

    wait(stand.client.begin_start_node(POOL, node_id, polling_interval=1))

    assert stand.client.get_node(POOL, node_id).state == models.BatchNodeState.IDLE
