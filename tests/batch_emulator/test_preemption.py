"""Preemption: what Batch shows while a low-priority node is taken away and comes back."""

from datetime import timedelta

import pytest
from azure.batch import BatchClient, models
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError

from local.batch import RunEnd, ScriptedRunner, World, control
from local.batch.errors import BatchError
from tests.batch_emulator.support import (
    POOL,
    make_client,
    make_job,
    make_task,
    make_world,
    refusal,
    runner_of,
    states,
    word,
)


@pytest.fixture(autouse=True)
def task(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    world.advance(100)


def _node(client: BatchClient) -> models.BatchNode:
    (node,) = client.list_nodes(POOL)
    return node


def test_the_task_waits_again_with_its_counters_untouched(client: BatchClient, world: World) -> None:
    before = client.get_task("job", "task")
    control.preempt_task(world, "job", "task")

    task = client.get_task("job", "task")
    assert (task.state, task.previous_state) == (models.BatchTaskState.ACTIVE, models.BatchTaskState.RUNNING)
    assert task.state_transition_time - before.state_transition_time == timedelta(seconds=100)
    info = task.execution_info
    assert info and (info.retry_count, info.requeue_count, info.failure_info, info.end_time) == (0, 0, None, None)
    assert before.execution_info and info.start_time == before.execution_info.start_time
    assert task.node_info and before.node_info and task.node_info.node_id == before.node_info.node_id
    assert task.etag != before.etag
    assert runner_of(world).running() == []


def test_the_node_stays_listed_and_returns_with_a_new_boot_time(client: BatchClient, world: World) -> None:
    before = _node(client)
    control.preempt_task(world, "job", "task", return_after_seconds=60)

    lost = _node(client)
    assert (lost.id, lost.state) == (before.id, models.BatchNodeState.PREEMPTED)
    assert client.get_pool(POOL).current_low_priority_nodes == 1
    world.advance(59)
    assert _node(client).state == models.BatchNodeState.PREEMPTED
    world.advance(1)

    back = _node(client)
    assert (back.id, back.state) == (before.id, models.BatchNodeState.RUNNING)
    assert back.last_boot_time - before.last_boot_time == timedelta(seconds=160)
    assert back.allocation_time == before.allocation_time
    assert states(client) == {"task": "running"}


def test_a_returning_node_is_created_and_started_again() -> None:
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "start_seconds": 10, "return_after_seconds": 5}
    world = World.from_json({"pools": [pool]})
    client = make_client(world)
    world.advance(10)
    control.preempt_node(world, POOL, _node(client).id)

    seen = []
    for _ in range(4):
        seen.append(word(_node(client).state))
        world.advance(5)

    assert seen == ["preempted", "creating", "starting", "idle"]


def test_a_node_need_not_come_back_before_it_is_told_to(client: BatchClient, world: World) -> None:
    control.preempt_task(world, "job", "task", return_after_seconds=None)
    world.advance(30 * 86400)
    node = _node(client)
    assert node.state == models.BatchNodeState.PREEMPTED

    assert control.bring_back(world, POOL, node.id)

    assert states(client) == {"task": "running"}


def test_the_task_runs_on_another_free_node_at_once() -> None:
    world = make_world(nodes=2)
    client = make_client(world)
    make_job(client)
    make_task(client)
    first = client.get_task("job", "task").node_info

    control.preempt_task(world, "job", "task")

    second = client.get_task("job", "task").node_info
    assert first and second and first.node_id != second.node_id
    assert states(client) == {"task": "running"}


def test_a_node_may_be_unusable_first(client: BatchClient, world: World) -> None:
    control.preempt_task(world, "job", "task", via_unusable_seconds=30)

    assert _node(client).state == models.BatchNodeState.UNUSABLE
    assert states(client) == {"task": "running"}
    world.advance(30)
    assert _node(client).state == models.BatchNodeState.PREEMPTED
    assert states(client) == {"task": "active"}


def test_a_task_may_show_as_running_on_a_preempted_node(client: BatchClient, world: World) -> None:
    control.preempt_task(world, "job", "task", requeue_after_seconds=20)

    assert _node(client).state == models.BatchNodeState.PREEMPTED
    assert states(client) == {"task": "running"}
    world.advance(20)
    assert states(client) == {"task": "active"}


def test_a_stuck_task_can_only_be_deleted_or_noticed(client: BatchClient, world: World) -> None:
    control.preempt_task(world, "job", "task", stuck=True)
    world.advance(10 * 86400)
    client.terminate_task("job", "task")
    world.advance(60)
    assert states(client) == {"task": "running"}

    control.notice_stuck(world, "job", "task")
    assert states(client) == {"task": "completed"}

    make_task(client, "other")
    control.preempt_task(world, "job", "other", stuck=True)
    other = client.get_task("job", "other")
    client.delete_task("job", "other", etag=other.etag, match_condition=MatchConditions.IfNotModified)
    assert states(client) == {"task": "completed"}


def test_nothing_can_be_preempted_twice_or_when_dedicated(client: BatchClient, world: World) -> None:
    node = control.preempt_task(world, "job", "task")
    with pytest.raises(BatchError):
        control.preempt_node(world, POOL, node)
    with pytest.raises(BatchError):
        control.preempt_task(world, "job", "task")

    dedicated = World.from_json({"pools": [{"id": POOL, "targetDedicatedNodes": 1}]})
    with pytest.raises(BatchError):
        control.preempt_node(dedicated, POOL, next(iter(dedicated.pool(POOL).nodes)))


@pytest.mark.parametrize(("choice", "state"), [("completed", "completed"), ("active", "active")])
def test_a_task_preempted_while_it_is_terminated(choice: str, state: str) -> None:
    world = make_world(runner=ScriptedRunner(holds_kills=True), assumptions={"task_lost_while_terminating": choice})
    client = make_client(world)
    make_job(client)
    make_task(client)
    client.terminate_task("job", "task")

    control.preempt_task(world, "job", "task", return_after_seconds=None)

    assert states(client) == {"task": state}


def test_other_assumptions_about_preemption() -> None:
    assumptions = {"preempted_task_keeps_node_info": False, "preemption_counts_as_requeue": True}
    world = make_world(assumptions=assumptions)
    client = make_client(world)
    make_job(client)
    make_task(client)

    control.preempt_task(world, "job", "task", return_after_seconds=None)

    task = client.get_task("job", "task")
    assert task.execution_info
    assert (task.node_info, task.execution_info.start_time, task.execution_info.requeue_count) == (None, None, 1)


def test_the_wall_clock_starts_again_with_the_next_run(client: BatchClient, world: World) -> None:
    runner_of(world).finish("job", "task")
    make_task(client, "limited", constraints=models.BatchTaskConstraints(max_wall_clock_time=timedelta(hours=1)))
    world.advance(3000)
    control.preempt_task(world, "job", "limited", return_after_seconds=0)

    world.advance(3000)
    assert states(client)["limited"] == "running"
    world.advance(600)
    assert states(client)["limited"] == "completed"


def test_no_machine_no_return(client: BatchClient, world: World) -> None:
    control.set_low_priority_available(world, POOL, 0)
    control.preempt_task(world, "job", "task", return_after_seconds=10)

    world.advance(3600)
    assert _node(client).state == models.BatchNodeState.PREEMPTED
    control.set_low_priority_available(world, POOL, 1)
    world.advance(1)

    assert _node(client).state == models.BatchNodeState.RUNNING


def test_a_node_of_another_kind_of_loss(client: BatchClient, world: World) -> None:
    control.preempt_task(world, "job", "task", state="starttaskfailed", return_after_seconds=None)

    assert _node(client).state == models.BatchNodeState.START_TASK_FAILED
    assert states(client) == {"task": "active"}


def test_files_are_gone_with_the_node(client: BatchClient, world: World) -> None:
    runner_of(world).put_file("job", "task", "wd/x", b"1")
    runner_of(world).finish("job", "task")
    assert [file.name for file in client.list_task_files("job", "task")] == ["stderr.txt", "stdout.txt", "wd"]

    control.preempt_node(world, POOL, _node(client).id, return_after_seconds=10)

    for _ in range(2):
        with pytest.raises(ResourceExistsError) as refused:
            list(client.list_task_files("job", "task"))
        assert refusal(refused.value) == (409, "TaskFilesUnavailable")
        world.advance(60)


def test_a_report_of_a_process_that_has_gone_with_its_node_counts_for_nothing(
    client: BatchClient, world: World
) -> None:
    (run,) = world.runs
    control.preempt_task(world, "job", "task", requeue_after_seconds=20, return_after_seconds=None)

    world.run_ended(run, RunEnd(exit_code=0))

    assert states(client) == {"task": "running"}
    world.advance(20)
    assert states(client) == {"task": "active"}
    world.run_ended(run, RunEnd(exit_code=0))
    assert states(client) == {"task": "active"}
