"""Nodes: how they show, and closing them to new tasks."""

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from local.batch import World, control
from tests.batch_emulator.support import POOL, act, make_job, make_task, refusal, runner_of, states


def _node(client: BatchClient) -> models.BatchNode:
    (node,) = client.list_nodes(POOL)
    return client.get_node(POOL, node.id)


def test_a_node_shows_its_load_and_recent_tasks(client: BatchClient, world: World) -> None:
    make_job(client)
    assert _node(client).state == models.BatchNodeState.IDLE
    make_task(client)

    node = _node(client)
    assert (node.state, node.running_tasks_count, node.running_task_slots_count) == ("running", 1, 1)
    assert node.is_dedicated is False
    assert node.recent_tasks and node.recent_tasks[0].task_id == "task"
    runner_of(world).finish("job", "task")

    node = _node(client)
    assert (node.state, node.total_tasks_run, node.total_tasks_succeeded) == ("idle", 1, 1)
    assert node.recent_tasks and node.recent_tasks[0].task_state == models.BatchTaskState.COMPLETED


def test_a_missing_node_is_404(client: BatchClient) -> None:
    with pytest.raises(ResourceNotFoundError) as missing:
        client.get_node(POOL, "tvmps_none")

    assert refusal(missing.value) == (404, "NodeNotFound")


@pytest.mark.parametrize(
    ("option", "task_state"), [("requeue", "active"), ("terminate", "completed"), ("taskcompletion", "running")]
)
def test_a_node_closed_to_tasks_takes_none(client: BatchClient, world: World, option: str, task_state: str) -> None:
    make_job(client)
    make_task(client)
    node = _node(client)

    act(client, f"/pools/{POOL}/nodes/{node.id}/disablescheduling", {"nodeDisableSchedulingOption": option})

    assert states(client) == {"task": task_state}
    with pytest.raises(HttpResponseError) as refused:
        act(client, f"/pools/{POOL}/nodes/{node.id}/disablescheduling")
    assert refused.value.status_code == 409
    if option == "taskcompletion":
        runner_of(world).finish("job", "task")
    make_task(client, "next")
    shown = _node(client)
    assert (shown.state, shown.scheduling_state) == ("offline", models.SchedulingState.DISABLED)
    assert states(client)["next"] == "active"

    client.enable_node_scheduling(POOL, node.id)
    assert "running" in states(client).values()
    with pytest.raises(ResourceExistsError) as again:
        client.enable_node_scheduling(POOL, node.id)
    assert refusal(again.value) == (409, "NodeAlreadyInTargetSchedulingState")


def test_a_lost_node_cannot_be_closed(client: BatchClient, world: World) -> None:
    node = _node(client)
    control.preempt_node(world, POOL, node.id)

    with pytest.raises(HttpResponseError) as refused:
        act(client, f"/pools/{POOL}/nodes/{node.id}/disablescheduling")

    assert refused.value.status_code == 409
