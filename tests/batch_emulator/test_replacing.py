"""Whole replacement of properties: what is left out goes back to its default."""

from __future__ import annotations

from datetime import timedelta

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError

from local.batch import World
from tests.batch_emulator.support import POOL, act, make_job, make_task, refusal, runner_of, states

_POOL_INFO = models.BatchPoolInfo(pool_id=POOL)
_TAG = models.BatchMetadataItem(name="a", value="b")


def test_pool_properties(client: BatchClient, world: World) -> None:
    start_task = models.BatchStartTask(command_line="setup")
    client.update_pool(POOL, models.BatchPoolUpdateOptions(start_task=start_task, metadata=[_TAG]))
    before = client.get_pool(POOL)
    assert before.start_task and before.metadata

    client.replace_pool_properties(POOL, models.BatchPoolReplaceOptions(application_package_references=[], metadata=[]))

    after = client.get_pool(POOL)
    assert (after.start_task, after.metadata) == (None, None)
    assert (after.vm_size, after.etag == before.etag) == (before.vm_size, False)
    response = world.handle(
        "POST", f"/pools/{POOL}/updateproperties", {"api-version": "x"}, {"authorization": "Bearer x"}, b"{}"
    )
    assert (response.status, response.json()["code"]) == (400, "MissingRequiredProperty")


def test_a_job(client: BatchClient) -> None:
    make_job(client, priority=5, max_parallel_tasks=3, metadata=[_TAG], display_name="shown")

    client.replace_job("job", models.BatchJob(pool_info=_POOL_INFO, priority=7))

    job = client.get_job("job")
    assert (job.priority, job.max_parallel_tasks, job.metadata) == (7, -1, None)
    assert job.display_name == "shown"
    read = client.get_job("job")
    client.replace_job("job", read)
    assert client.get_job("job").priority == 7


def test_a_job_s_new_limits_hold(client: BatchClient, world: World) -> None:
    make_job(client, constraints=models.BatchJobConstraints(max_wall_clock_time=timedelta(minutes=1)))
    client.replace_job("job", models.BatchJob(pool_info=_POOL_INFO))
    world.advance(3600)
    assert client.get_job("job").state == models.BatchJobState.ACTIVE

    limits = models.BatchJobConstraints(max_wall_clock_time=timedelta(hours=2))
    client.replace_job("job", models.BatchJob(pool_info=_POOL_INFO, constraints=limits))
    world.advance(3602)
    assert client.get_job("job").state == models.BatchJobState.COMPLETED


def test_a_job_that_ends_by_itself_cannot_be_told_not_to(client: BatchClient) -> None:
    make_job(client)
    make_task(client)
    client.update_job("job", models.BatchJobUpdateOptions(all_tasks_complete_mode="terminatejob"))

    with pytest.raises(HttpResponseError) as refused:
        client.replace_job("job", models.BatchJob(pool_info=_POOL_INFO))
    assert refusal(refused.value) == (400, "InvalidPropertyValue")
    client.replace_job("job", models.BatchJob(pool_info=_POOL_INFO, all_tasks_complete_mode="terminatejob"))


def test_a_disabled_job_moves_to_another_pool(client: BatchClient, world: World) -> None:
    client.create_pool(models.BatchPoolCreateOptions(id="other", vm_size="standard_d2s_v3", target_dedicated_nodes=1))
    make_job(client)
    make_task(client)
    other = models.BatchJob(pool_info=models.BatchPoolInfo(pool_id="other"))
    with pytest.raises(ResourceExistsError) as refused:
        client.replace_job("job", other)
    assert refusal(refused.value) == (409, "OperationInvalidForCurrentState")
    act(client, "/jobs/job/disable", {"disableTasks": "requeue"})
    world.advance(1)

    client.replace_job("job", other)
    act(client, "/jobs/job/enable")
    world.advance(10)

    info = client.get_task("job", "task").node_info
    assert info and info.pool_id == "other"


def test_a_running_task_s_new_limits_hold(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client, constraints=models.BatchTaskConstraints(max_wall_clock_time=timedelta(minutes=1)))
    world.advance(30)

    hour = models.BatchTaskConstraints(max_wall_clock_time=timedelta(hours=1), max_task_retry_count=2)
    client.replace_task("job", "task", models.BatchTask(constraints=hour))

    world.advance(3600 - 31)
    assert states(client) == {"task": "running"}
    world.advance(1)
    task = client.get_task("job", "task")
    assert task.execution_info and task.execution_info.failure_info
    assert task.execution_info.failure_info.code == "TaskEnded"
    assert task.constraints and task.constraints.max_task_retry_count == 2


def test_a_limit_that_is_over_already_ends_the_task(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    world.advance(3600)

    client.replace_task(
        "job",
        "task",
        models.BatchTask(constraints=models.BatchTaskConstraints(max_wall_clock_time=timedelta(minutes=1))),
    )

    assert states(client) == {"task": "completed"}


def test_a_completed_task_cannot_change(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    runner_of(world).finish("job", "task")

    with pytest.raises(ResourceExistsError) as refused:
        client.replace_task("job", "task", models.BatchTask())
    assert refusal(refused.value) == (409, "TaskCompleted")


def test_what_no_task_or_job_has(client: BatchClient) -> None:
    make_job(client)
    make_task(client)

    assert list(client.list_subtasks("job", "task")) == []
    with pytest.raises(ResourceExistsError) as refused:
        list(client.list_job_preparation_and_release_task_status("job"))
    assert refusal(refused.value) == (409, "JobPreparationTaskNotSpecified")


def test_images_can_be_filtered(client: BatchClient) -> None:
    windows = list(client.list_supported_images(filter="osType eq 'windows'"))

    assert {image.os_type for image in windows} == {models.OSType.WINDOWS}
    assert len(list(client.list_supported_images(max_results=2))) > len(windows)
