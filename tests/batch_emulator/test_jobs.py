"""Jobs: their states, their quota, what may change when."""

from datetime import timedelta
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from local.batch import ScriptedRunner, World
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


def _state(client: BatchClient) -> str:
    return word(client.get_job("job").state)


def _refused(client: BatchClient, path: str, body: dict[str, str] | None = None, method: str = "POST") -> str:
    with pytest.raises(HttpResponseError) as refused:
        act(client, path, body, method)
    assert refused.value.status_code == 409
    response: Any = refused.value.response
    return str(response.json()["code"])


def test_a_new_job_shows_the_service_s_defaults(client: BatchClient) -> None:
    make_job(client, "Job-1", metadata=[models.BatchMetadataItem(name="tenant", value="t")])

    job = client.get_job("job-1")

    assert (job.id, job.state, job.priority) == ("Job-1", models.BatchJobState.ACTIVE, 0)
    assert (job.max_parallel_tasks, job.all_tasks_complete_mode) == (-1, models.BatchAllTasksCompleteMode.NO_ACTION)
    assert job.pool_info.pool_id == POOL
    assert job.execution_info and job.execution_info.pool_id == POOL
    assert job.metadata and job.metadata[0].value == "t"


def test_a_job_id_is_used_once_whatever_its_case(client: BatchClient) -> None:
    make_job(client, "Job")

    with pytest.raises(ResourceExistsError) as refused:
        make_job(client, "JOB")

    assert refusal(refused.value) == (409, "JobExists")


def test_a_job_may_name_a_pool_that_does_not_exist_yet(client: BatchClient, world: World) -> None:
    make_job(client, pool_id="later")
    make_task(client)
    world.advance(60)
    assert states(client) == {"task": "active"}

    client.create_pool(models.BatchPoolCreateOptions(id="later", vm_size="standard_d2s_v3", target_dedicated_nodes=1))
    world.advance(60)

    assert states(client) == {"task": "running"}


def test_the_quota_counts_every_job_that_is_not_completed() -> None:
    world = make_world(quotas={"active_jobs": 2})
    client = make_client(world)
    make_job(client, "one")
    make_job(client, "two")
    act(client, "/jobs/two/disable", {"disableTasks": "requeue"})
    world.advance(1)

    with pytest.raises(ResourceExistsError) as refused:
        make_job(client, "three")
    assert refusal(refused.value) == (409, "ActiveJobAndScheduleQuotaReached")
    act(client, "/jobs/one/terminate")
    with pytest.raises(ResourceExistsError):
        make_job(client, "three")
    world.advance(1)
    make_job(client, "three")


def test_a_missing_job_is_404(client: BatchClient) -> None:
    with pytest.raises(ResourceNotFoundError) as missing:
        client.get_job("none")

    assert refusal(missing.value) == (404, "JobNotFound")


def test_patch_changes_what_it_names_only(client: BatchClient) -> None:
    make_job(client, metadata=[models.BatchMetadataItem(name="tenant", value="t")])

    client.update_job("job", models.BatchJobUpdateOptions(priority=500))

    job = client.get_job("job")
    assert job.priority == 500
    assert job.metadata and job.metadata[0].value == "t"


def test_the_pool_changes_only_while_the_job_is_disabled(client: BatchClient, world: World) -> None:
    make_job(client)
    move = models.BatchJobUpdateOptions(pool_info=models.BatchPoolInfo(pool_id="other"))

    with pytest.raises(ResourceExistsError) as refused:
        client.update_job("job", move)
    assert refusal(refused.value) == (409, "OperationInvalidForCurrentState")
    act(client, "/jobs/job/disable", {"disableTasks": "requeue"})
    world.advance(1)
    client.update_job("job", move)

    assert client.get_job("job").pool_info.pool_id == "other"


@pytest.mark.parametrize(
    ("option", "task_state", "requeue_count"), [("requeue", "active", 1), ("terminate", "completed", 0)]
)
def test_disabling_deals_with_running_tasks_and_stops_new_ones(
    client: BatchClient, world: World, option: str, task_state: str, requeue_count: int
) -> None:
    make_job(client)
    make_task(client)
    make_task(client, "waiting")

    act(client, "/jobs/job/disable", {"disableTasks": option})
    assert _state(client) == "disabling"
    world.advance(1)

    assert _state(client) == "disabled"
    assert states(client) == {"task": task_state, "waiting": "active"}
    info = client.get_task("job", "task").execution_info
    assert info and info.requeue_count == requeue_count
    assert _refused(client, "/jobs/job/disable", {"disableTasks": option}) == "JobDisabled"

    act(client, "/jobs/job/enable")
    assert _state(client) == "enabling"
    world.advance(1)
    assert _state(client) == "active"
    assert "running" in states(client).values()


def test_disabling_with_wait_ends_with_the_last_running_task(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    act(client, "/jobs/job/disable", {"disableTasks": "wait"})
    world.advance(3600)
    assert _state(client) == "disabling"

    runner_of(world).finish("job", "task")

    assert _state(client) == "disabled"


def test_only_a_disabled_job_can_be_enabled(client: BatchClient) -> None:
    make_job(client)

    assert _refused(client, "/jobs/job/enable") == "OperationInvalidForCurrentState"


@pytest.mark.parametrize("accepts", [True, False])
def test_whether_a_disabled_job_takes_tasks_is_an_assumption(accepts: bool) -> None:
    world = make_world(assumptions={"disabled_job_accepts_tasks": accepts}, timings=INSTANT)
    client = make_client(world)
    make_job(client)
    act(client, "/jobs/job/disable", {"disableTasks": "requeue"})

    if accepts:
        make_task(client)
        assert states(client) == {"task": "active"}
    else:
        with pytest.raises(ResourceExistsError) as refused:
            make_task(client)
        assert refusal(refused.value) == (409, "JobDisabled")


def test_terminating_ends_running_tasks_and_leaves_waiting_ones(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    make_task(client, "waiting")

    act(client, "/jobs/job/terminate", {"terminateReason": "WeekIsOver"})
    assert _state(client) == "terminating"
    assert _refused(client, "/jobs/job/terminate") == "JobBeingTerminated"
    with pytest.raises(ResourceExistsError) as refused:
        make_task(client, "late")
    assert refusal(refused.value) == (409, "JobBeingTerminated")
    world.advance(1)

    job = client.get_job("job")
    assert job.state == models.BatchJobState.COMPLETED
    assert job.execution_info and job.execution_info.termination_reason == "WeekIsOver"
    assert states(client) == {"task": "completed", "waiting": "active"}
    info = client.get_task("job", "task").execution_info
    assert info and info.failure_info and info.failure_info.code == "TaskEnded"
    with pytest.raises(ResourceExistsError) as refused:
        make_task(client, "late")
    assert refusal(refused.value) == (409, "JobCompleted")
    assert _refused(client, "/jobs/job/terminate") == "JobCompleted"
    assert _refused(client, "/jobs/job/disable", {"disableTasks": "wait"}) == "JobCompleted"


def test_a_job_is_not_completed_before_its_processes_are_gone() -> None:
    world = make_world(runner=ScriptedRunner(holds_kills=True))
    client = make_client(world)
    make_job(client)
    make_task(client)

    act(client, "/jobs/job/terminate")
    world.advance(3600)
    assert _state(client) == "terminating"
    runner_of(world).finish_kill("job", "task")

    assert _state(client) == "completed"


def test_deleting_takes_a_while_and_frees_the_id(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)

    act(client, "/jobs/job", method="DELETE")

    assert _state(client) == "deleting"
    assert _refused(client, "/jobs/job", method="DELETE") == "JobBeingDeleted"
    for make in (make_job, make_task):
        with pytest.raises(ResourceExistsError) as refused:
            make(client)
        assert refusal(refused.value) == (409, "JobBeingDeleted")
    world.advance(1)
    with pytest.raises(ResourceNotFoundError):
        client.get_job("job")
    make_job(client)
    assert states(client) == {}


def test_the_sdk_s_own_pollers_see_the_end() -> None:
    client = make_client(make_world(timings=INSTANT))
    make_job(client)

    client.begin_disable_job("job", models.BatchJobDisableOptions(disable_tasks="requeue")).wait(5)
    assert _state(client) == "disabled"
    client.begin_enable_job("job").wait(5)
    assert _state(client) == "active"
    client.begin_terminate_job("job", options={"terminateReason": "done"}).wait(5)  # type: ignore[arg-type]
    assert _state(client) == "completed"
    client.begin_delete_job("job").wait(5)
    assert list(client.list_jobs()) == []


def test_terminatejob_ends_an_empty_job_and_cannot_be_undone(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    ends = models.BatchJobUpdateOptions(all_tasks_complete_mode=models.BatchAllTasksCompleteMode.TERMINATE_JOB)
    client.update_job("job", ends)

    with pytest.raises(HttpResponseError) as refused:
        client.update_job("job", models.BatchJobUpdateOptions(all_tasks_complete_mode="noaction"))
    assert refused.value.status_code == 400
    assert _state(client) == "active"
    runner_of(world).finish("job", "task")
    world.advance(1)
    job = client.get_job("job")
    assert job.state == models.BatchJobState.COMPLETED
    assert job.execution_info and job.execution_info.termination_reason == "AllTasksComplete"

    make_job(client, "empty", all_tasks_complete_mode=models.BatchAllTasksCompleteMode.TERMINATE_JOB)
    assert client.get_job("empty").state == models.BatchJobState.TERMINATING


def test_the_job_s_wall_clock_includes_waiting(client: BatchClient, world: World) -> None:
    limit = models.BatchJobConstraints(max_wall_clock_time=timedelta(hours=1))
    make_job(client, constraints=limit)
    make_task(client)
    make_task(client, "waiting")

    world.advance(3602)

    job = client.get_job("job")
    assert job.state == models.BatchJobState.COMPLETED
    assert job.execution_info and job.execution_info.termination_reason == "MaxWallClockTimeExpiry"
    assert states(client) == {"task": "completed", "waiting": "active"}


def test_a_longer_wall_clock_replaces_a_shorter_one(client: BatchClient, world: World) -> None:
    make_job(client, constraints=models.BatchJobConstraints(max_wall_clock_time=timedelta(hours=1)))
    longer = models.BatchJobConstraints(max_wall_clock_time=timedelta(hours=2))
    client.update_job("job", models.BatchJobUpdateOptions(constraints=longer))

    world.advance(3700)
    assert _state(client) == "active"
    world.advance(3600)
    assert _state(client) == "completed"


@pytest.mark.parametrize(("action", "state"), [("terminate", "completed"), ("disable", "disabled"), ("none", "active")])
def test_exit_conditions_act_on_the_job(client: BatchClient, world: World, action: str, state: str) -> None:
    make_job(client, task_failure_mode=models.BatchTaskFailureMode.PERFORM_EXIT_OPTIONS_JOB_ACTION)
    options = models.ExitOptions(job_action=action)
    conditions = models.ExitConditions(exit_codes=[models.ExitCodeMapping(code=3, exit_options=options)])
    make_task(client, exit_conditions=conditions)

    runner_of(world).finish("job", "task", 3)
    world.advance(1)

    assert _state(client) == state


def test_a_job_action_needs_on_task_failure(client: BatchClient) -> None:
    make_job(client)
    conditions = models.ExitConditions(default=models.ExitOptions(job_action="terminate"))

    with pytest.raises(HttpResponseError) as refused:
        make_task(client, exit_conditions=conditions)

    assert refused.value.status_code == 400


def test_task_counts_tell_results_and_slots() -> None:
    world = make_world(slots=4)
    client = make_client(world)
    make_job(client)
    for name in ("good", "bad", "running"):
        make_task(client, name)
    make_task(client, "big", required_slots=4)
    runner_of(world).finish("job", "good")
    runner_of(world).finish("job", "bad", 1)

    result = client.get_job_task_counts("job")

    tasks, slots = result.task_counts, result.task_slot_counts
    assert (tasks.active, tasks.running, tasks.completed, tasks.succeeded, tasks.failed) == (1, 1, 2, 1, 1)
    assert (slots.active, slots.running, slots.completed) == (4, 1, 2)
