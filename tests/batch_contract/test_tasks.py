"""What the SDK's methods for tasks do, each in a test of its name."""

from __future__ import annotations

from datetime import timedelta

import pytest
from azure.batch import models
from azure.core.exceptions import ResourceNotFoundError

from tests.batch_contract.stand import POOL, Stand


def _task(stand: Stand, task_id: str = "task") -> tuple[models.BatchTask, models.BatchTaskExecutionInfo]:
    task = stand.client.get_task("job", task_id)
    assert task.execution_info
    return task, task.execution_info


def test_create_task(stand: Stand) -> None:
    stand.job()
    container = "https://account.blob.core.windows.net/container"
    identity = models.BatchNodeIdentityReference(resource_id="/subscriptions/s/identity")
    stand.client.create_task(
        "job",
        models.BatchTaskCreateOptions(
            id="task",
            display_name="A task",
            command_line="/bin/bash -c 'echo hi'",
            container_settings=models.BatchTaskContainerSettings(
                image_name="registry/image:1",
                container_run_options="--rm --gpus all",
                registry=models.ContainerRegistryReference(registry_server="registry", identity_reference=identity),
            ),
            environment_settings=[models.EnvironmentSetting(name="A", value="b")],
            resource_files=[
                models.ResourceFile(http_url=f"{container}/x", file_path="in/x"),
                models.ResourceFile(storage_container_url=container, blob_prefix="p/", identity_reference=identity),
            ],
            output_files=[
                models.OutputFile(
                    file_pattern="../std*.txt",
                    destination=models.OutputFileDestination(
                        container=models.OutputFileBlobContainerDestination(container_url=container, path="logs")
                    ),
                    upload_options=models.OutputFileUploadConfiguration(
                        upload_condition=models.OutputFileUploadCondition.TASK_COMPLETION
                    ),
                )
            ],
            constraints=models.BatchTaskConstraints(
                max_wall_clock_time=timedelta(hours=6), retention_time=timedelta(days=1), max_task_retry_count=2
            ),
            exit_conditions=models.ExitConditions(default=models.ExitOptions(dependency_action="satisfy")),
            required_slots=2,
            user_identity=models.UserIdentity(
                auto_user=models.AutoUserSpecification(scope="task", elevation_level="admin")
            ),
        ),
    )

    task = stand.client.get_task("job", "task")
    assert (task.id, task.display_name, task.required_slots) == ("task", "A task", 2)
    assert task.command_line == "/bin/bash -c 'echo hi'"
    assert task.container_settings
    assert task.container_settings.registry
    assert task.container_settings.registry.identity_reference == identity
    assert task.resource_files
    assert [file.blob_prefix for file in task.resource_files] == [None, "p/"]
    assert task.output_files
    assert task.output_files[0].upload_options.upload_condition == models.OutputFileUploadCondition.TASK_COMPLETION
    assert task.constraints
    assert task.constraints.max_wall_clock_time == timedelta(hours=6)
    assert task.constraints.retention_time == timedelta(days=1)
    assert task.user_identity
    assert task.user_identity.auto_user
    assert task.user_identity.auto_user.elevation_level == models.ElevationLevel.ADMIN


def test_create_task_collection(stand: Stand) -> None:
    stand.job(max_parallel_tasks=1)
    stand.task("old")
    tasks = [models.BatchTaskCreateOptions(id=id, command_line="program") for id in ("new", "old")]

    answer = stand.client.create_task_collection("job", models.BatchTaskGroup(task_values=tasks))

    new, old = sorted(answer.result_values or (), key=lambda result: result.task_id)
    assert (new.status, new.error) == (models.BatchTaskAddStatus.SUCCESS, None)
    assert new.etag == stand.client.get_task("job", "new").etag
    assert new.last_modified == stand.world.now
    assert new.location
    assert new.location.endswith("/jobs/job/tasks/new")
    assert old.status == models.BatchTaskAddStatus.CLIENT_ERROR
    assert old.error
    assert old.error.code == "TaskExists"
    assert old.error.message
    assert old.error.message.value


def test_create_tasks(stand: Stand) -> None:
    stand.job()
    tasks = [models.BatchTaskCreateOptions(id=f"t{number:03}", command_line="program") for number in range(250)]

    answer = stand.client.create_tasks("job", tasks, max_concurrency=2)

    assert {result.status for result in answer.result_values or ()} == {models.BatchTaskAddStatus.SUCCESS}
    assert sorted(task.id for task in stand.client.list_tasks("job")) == [task.id for task in tasks]


def test_get_task(stand: Stand) -> None:
    stand.job()
    stand.task()
    running, info = _task(stand)
    assert (running.state, running.previous_state) == (models.BatchTaskState.RUNNING, models.BatchTaskState.ACTIVE)
    assert (info.retry_count, info.requeue_count, info.exit_code, info.result) == (0, 0, None, None)
    assert info.start_time == running.state_transition_time == stand.world.now
    assert running.node_info
    assert running.node_info.pool_id == POOL
    assert running.node_info.node_id in {node.id for node in stand.client.list_nodes(POOL)}
    assert running.node_info.task_root_directory == "workitems/job/job-1/task"
    assert running.constraints
    assert running.constraints.retention_time == timedelta(days=7)
    stand.world.advance(60)
    stand.runner.finish("job", "task", 3)

    failed, info = _task(stand)

    assert (failed.state, failed.previous_state) == (models.BatchTaskState.COMPLETED, models.BatchTaskState.RUNNING)
    assert (info.exit_code, info.result) == (3, models.BatchTaskExecutionResult.FAILURE)
    assert info.start_time
    assert info.end_time == info.start_time + timedelta(seconds=60)
    assert info.failure_info
    assert info.failure_info.category == models.BatchErrorSourceCategory.USER_ERROR
    assert info.failure_info.code == "FailureExitCode"


def test_list_tasks(stand: Stand) -> None:
    stand.job()
    for name in ("b", "a", "c"):
        stand.task(name)
    stand.runner.finish("job", "a")

    assert [task.id for task in stand.client.list_tasks("job")] == ["b", "a", "c"]
    done = list(stand.client.list_tasks("job", filter="state eq 'completed'", select=["id", "executionInfo"]))
    assert [task.id for task in done] == ["a"]
    assert done[0].execution_info
    assert done[0].execution_info.exit_code == 0
    assert done[0].state is None


def test_list_subtasks(stand: Stand) -> None:
    stand.job()
    stand.task()

    assert list(stand.client.list_subtasks("job", "task")) == []


def test_replace_task(stand: Stand) -> None:
    stand.job(max_parallel_tasks=1)
    stand.task("first")
    stand.task(constraints=models.BatchTaskConstraints(max_wall_clock_time=timedelta(hours=1)))

    stand.client.replace_task(
        "job", "task", models.BatchTask(constraints=models.BatchTaskConstraints(max_task_retry_count=2))
    )

    task, _ = _task(stand)
    assert task.constraints
    assert task.constraints.max_task_retry_count == 2
    assert task.constraints.max_wall_clock_time
    assert task.constraints.max_wall_clock_time > timedelta(days=10_000)


def test_terminate_task(stand: Stand) -> None:
    stand.job()
    stand.task()

    stand.client.terminate_task("job", "task")

    task, info = _task(stand)
    assert (task.state, info.result) == (models.BatchTaskState.COMPLETED, models.BatchTaskExecutionResult.FAILURE)
    assert info.failure_info
    assert info.failure_info.code == "TaskEnded"


def test_reactivate_task(stand: Stand) -> None:
    stand.ended(exit_code=1)

    stand.client.reactivate_task("job", "task")

    task, info = _task(stand)
    assert task.state == models.BatchTaskState.RUNNING
    assert (info.exit_code, info.failure_info, info.result, info.end_time) == (None, None, None, None)


def test_delete_task(stand: Stand) -> None:
    stand.job()
    stand.task()

    stand.client.delete_task("job", "task")

    with pytest.raises(ResourceNotFoundError):
        stand.client.get_task("job", "task")
    assert stand.runner.running() == []
