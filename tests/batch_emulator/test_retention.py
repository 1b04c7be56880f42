"""How long a task's files stay, and that they go where and when the service would remove them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError

from local.batch import ManualClock, World, control
from tests.batch_emulator.process_support import add_task, finished, process_world
from tests.batch_emulator.support import POOL, act, make_client, make_job, make_task, make_world, refusal, runner_of

_HOUR = models.BatchTaskConstraints(retention_time=timedelta(hours=1))


def _stored(world: World) -> set[tuple[str, str]]:
    """(node, task) of every directory that is left."""
    return {(place.node, place.task) for place in runner_of(world).stored}


def test_a_later_run_s_own_time_counts(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client, constraints=_HOUR)
    runner_of(world).finish("job", "task", 1)
    world.advance(1800)
    client.reactivate_task("job", "task")
    runner_of(world).finish("job", "task", 0)

    world.advance(3599)
    assert list(client.list_task_files("job", "task"))
    world.advance(1)
    with pytest.raises(HttpResponseError) as refused:
        list(client.list_task_files("job", "task"))
    assert refusal(refused.value) == (409, "TaskFilesCleanedup")
    assert _stored(world) == set()


def test_a_requeued_task_s_directory_on_its_former_node_goes_too() -> None:
    world = make_world(nodes=2)
    client = make_client(world)
    make_job(client)
    make_task(client, constraints=_HOUR)
    first = client.get_task("job", "task").node_info
    assert first and first.node_id
    act(client, f"/pools/{POOL}/nodes/{first.node_id}/disablescheduling", {"nodeDisableSchedulingOption": "requeue"})
    second = client.get_task("job", "task").node_info
    assert second and second.node_id != first.node_id
    assert len(_stored(world)) == 2

    world.advance(3600)

    assert _stored(world) == {(second.node_id, "task")}


@pytest.mark.parametrize("by", ["task", "job"])
def test_a_deleted_task_leaves_nothing_on_any_node(by: str) -> None:
    world = make_world(nodes=2)
    client = make_client(world)
    make_job(client)
    make_task(client)
    node = client.get_task("job", "task").node_info
    assert node
    act(client, f"/pools/{POOL}/nodes/{node.node_id}/disablescheduling", {"nodeDisableSchedulingOption": "requeue"})
    assert len(_stored(world)) == 2

    if by == "task":
        client.delete_task("job", "task")
    else:
        act(client, "/jobs/job", method="DELETE")
    world.advance(10)

    assert _stored(world) == set()


@pytest.mark.parametrize("how", ["preempt", "reimage", "deallocate", "remove", "shrink", "delete pool"])
def test_a_node_s_disk_goes_with_its_machine(client: BatchClient, world: World, how: str) -> None:
    make_job(client)
    make_task(client)
    runner_of(world).finish("job", "task")
    node = next(iter(world.pool(POOL).nodes))
    assert _stored(world) == {(node, "task")}

    if how == "preempt":
        control.preempt_node(world, POOL, node)
    elif how == "remove":
        act(client, f"/pools/{POOL}/removenodes", {"nodeList": [node]})
    elif how == "shrink":
        act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 0})
    elif how == "delete pool":
        act(client, f"/pools/{POOL}", method="DELETE")
    else:
        act(client, f"/pools/{POOL}/nodes/{node}/{how}")
    world.advance(60)

    assert _stored(world) == set()


def test_a_reboot_keeps_directories_and_their_time(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client, constraints=_HOUR)
    runner_of(world).finish("job", "task")
    node = next(iter(world.pool(POOL).nodes))

    act(client, f"/pools/{POOL}/nodes/{node}/reboot")
    world.advance(3599)
    assert _stored(world) == {(node, "task")}
    world.advance(1)
    assert _stored(world) == set()


def test_folders_of_real_nodes_come_and_go(tmp_path: Path) -> None:
    """The shared directory lives as long as the node, a task's as long as its retention; then not even its job's name
    is left for the next tenant to see."""
    clock = ManualClock()
    world = process_world(tmp_path, clock)
    client = make_client(world)
    make_job(client)
    shared = "/bin/sh -c 'echo kept > $AZ_BATCH_NODE_SHARED_DIR/note'"
    for task in ("first", "second"):
        add_task(client, task, commandLine=shared, constraints={"retentionTime": "PT1H"})
        assert finished(client, task).exit_code == 0
    (node,) = tmp_path.iterdir()
    assert {path.name for path in (node / "workitems" / "job" / "job-1").iterdir()} == {"first", "second"}

    client.delete_task("job", "first")
    assert {path.name for path in (node / "workitems" / "job" / "job-1").iterdir()} == {"second"}
    world.advance(3601)
    assert list((node / "workitems").iterdir()) == []
    assert (node / "shared" / "note").read_text() == "kept\n"
    act(client, f"/pools/{POOL}/nodes/{node.name}/reimage")
    world.advance(1)
    assert list(tmp_path.iterdir()) == []
