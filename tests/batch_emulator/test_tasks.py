"""Tasks: their life from creation to being forgotten."""

from datetime import timedelta

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from local.batch import Failure, RunEnd, ScriptedRunner, World
from tests.batch_emulator.support import (
    make_client,
    make_job,
    make_task,
    make_world,
    refusal,
    runner_of,
    states,
)


@pytest.fixture(autouse=True)
def job(client: BatchClient) -> None:
    make_job(client)


def _info(client: BatchClient, task_id: str = "task") -> models.BatchTaskExecutionInfo:
    info = client.get_task("job", task_id).execution_info
    assert info
    return info


def test_a_task_starts_runs_and_completes(client: BatchClient, world: World) -> None:
    make_task(client)
    make_task(client, "waiting")
    running, waiting = client.get_task("job", "task"), client.get_task("job", "waiting")
    assert (running.state, running.previous_state) == (models.BatchTaskState.RUNNING, models.BatchTaskState.ACTIVE)
    assert running.node_info and running.node_info.task_root_directory == "workitems/job/job-1/task"
    assert (waiting.state, waiting.node_info) == (models.BatchTaskState.ACTIVE, None)
    assert (waiting.required_slots, waiting.constraints and waiting.constraints.retention_time) == (
        1,
        timedelta(days=7),
    )

    world.advance(60)
    runner_of(world).finish("job", "task")

    done = client.get_task("job", "task")
    assert (done.state, done.previous_state) == (models.BatchTaskState.COMPLETED, models.BatchTaskState.RUNNING)
    info = _info(client)
    assert info.start_time and info.end_time and info.end_time - info.start_time == timedelta(seconds=60)
    assert (info.exit_code, info.result, info.failure_info) == (0, models.BatchTaskExecutionResult.SUCCESS, None)
    assert states(client)["waiting"] == "running"


def test_a_failed_program_is_a_user_s_error(client: BatchClient, world: World) -> None:
    make_task(client)

    runner_of(world).finish("job", "task", 7)

    info = _info(client)
    assert (info.exit_code, info.result) == (7, models.BatchTaskExecutionResult.FAILURE)
    assert info.failure_info and info.failure_info.code == "FailureExitCode"
    assert info.failure_info.category == models.BatchErrorSourceCategory.USER_ERROR


def test_a_failed_upload_fails_the_task_although_the_program_succeeded(client: BatchClient, world: World) -> None:
    make_task(client)
    failure = Failure("FileUploadAccessDenied", "usererror", "the signature is too old", stage="upload")

    runner_of(world).finish("job", "task", RunEnd(exit_code=0, failure=failure))

    info = _info(client)
    assert (info.exit_code, info.result) == (0, models.BatchTaskExecutionResult.FAILURE)
    assert info.failure_info and info.failure_info.code == "FileUploadAccessDenied"


def test_a_task_id_is_used_once_even_after_its_end(client: BatchClient, world: World) -> None:
    make_task(client)
    runner_of(world).finish("job", "task")

    with pytest.raises(ResourceExistsError) as refused:
        make_task(client, "TASK")

    assert refusal(refused.value) == (409, "TaskExists")


def test_missing_jobs_and_tasks_are_404(client: BatchClient) -> None:
    for job_id, code in (("none", "JobNotFound"), ("job", "TaskNotFound")):
        with pytest.raises(ResourceNotFoundError) as missing:
            client.get_task(job_id, "none")
        assert refusal(missing.value) == (404, code)


def test_the_program_is_retried_as_often_as_allowed(client: BatchClient, world: World) -> None:
    make_task(client, constraints=models.BatchTaskConstraints(max_task_retry_count=2))

    for _ in range(2):
        runner_of(world).finish("job", "task", 1)
        assert states(client) == {"task": "running"}
    runner_of(world).finish("job", "task", 1)

    info = _info(client)
    assert (info.retry_count, info.requeue_count, info.exit_code) == (2, 0, 1)
    assert info.last_retry_time and states(client) == {"task": "completed"}


def test_the_job_s_retry_limit_is_the_default(client: BatchClient, world: World) -> None:
    make_job(client, "patient", constraints=models.BatchJobConstraints(max_task_retry_count=-1))
    make_task(client, job_id="patient")

    for _ in range(20):
        runner_of(world).finish("patient", "task", 1)

    assert client.get_task("patient", "task").execution_info.retry_count == 20  # type: ignore[union-attr]


def test_terminating_a_waiting_task_completes_it_at_once(client: BatchClient, world: World) -> None:
    make_task(client, "first")
    make_task(client)

    client.terminate_task("job", "task")

    info = _info(client)
    assert states(client) == {"first": "running", "task": "completed"}
    assert info.failure_info and info.failure_info.code == "TaskEnded"
    assert (info.start_time, info.exit_code, info.result) == (None, None, models.BatchTaskExecutionResult.FAILURE)
    runner_of(world).finish("job", "first")
    assert runner_of(world).running() == []


def test_terminating_a_running_task_kills_it_first() -> None:
    world = make_world(runner=ScriptedRunner(holds_kills=True))
    client = make_client(world)
    make_job(client)
    make_task(client)

    client.terminate_task("job", "task")
    world.advance(600)
    assert states(client) == {"task": "running"}
    client.terminate_task("job", "task")
    runner_of(world).finish_kill("job", "task")

    info = _info(client)
    assert states(client) == {"task": "completed"}
    assert info.failure_info and info.failure_info.code == "TaskEnded"
    assert info.failure_info.category == models.BatchErrorSourceCategory.USER_ERROR


def test_a_task_that_ends_by_itself_while_being_terminated_keeps_its_outcome() -> None:
    world = make_world(runner=ScriptedRunner(holds_kills=True))
    client = make_client(world)
    make_job(client)
    make_task(client)

    client.terminate_task("job", "task")
    runner_of(world).finish("job", "task", 0)

    assert _info(client).result == models.BatchTaskExecutionResult.SUCCESS


def test_terminating_a_completed_task_is_refused(client: BatchClient, world: World) -> None:
    make_task(client)
    runner_of(world).finish("job", "task")

    with pytest.raises(ResourceExistsError) as refused:
        client.terminate_task("job", "task")

    assert refusal(refused.value) == (409, "TaskCompleted")


def test_the_wall_clock_kills_a_task(client: BatchClient, world: World) -> None:
    make_task(client, constraints=models.BatchTaskConstraints(max_wall_clock_time=timedelta(hours=6)))

    world.advance(6 * 3600 - 1)
    assert states(client) == {"task": "running"}
    world.advance(1)

    info = _info(client)
    assert info.failure_info and info.failure_info.code == "TaskEnded"
    assert info.failure_info.category == models.BatchErrorSourceCategory.SERVER_ERROR


def test_the_sdk_s_unlimited_wall_clock_is_no_limit(client: BatchClient, world: World) -> None:
    make_task(client, constraints=models.BatchTaskConstraints(max_wall_clock_time=timedelta.max))

    world.advance(100 * 86400)

    assert states(client) == {"task": "running"}


def test_only_a_failed_task_can_be_reactivated(client: BatchClient, world: World) -> None:
    make_task(client)
    for finish, code in ((None, "TaskNotCompleted"), (0, "TaskSucceeded")):
        if finish is not None:
            runner_of(world).finish("job", "task", finish)
        with pytest.raises(ResourceExistsError) as refused:
            client.reactivate_task("job", "task")
        assert refusal(refused.value) == (409, code)

    make_task(client, "failed", constraints=models.BatchTaskConstraints(max_task_retry_count=1))
    runner_of(world).finish("job", "failed", 1)
    runner_of(world).finish("job", "failed", 1)
    client.reactivate_task("job", "failed")

    info = _info(client, "failed")
    assert (info.retry_count, info.exit_code, info.failure_info) == (0, None, None)
    assert states(client)["failed"] == "running"


def test_deleting_a_task_kills_it_and_frees_its_id(client: BatchClient, world: World) -> None:
    make_task(client)
    make_task(client, "waiting")

    client.delete_task("job", "task")

    assert states(client) == {"waiting": "running"}
    with pytest.raises(ResourceNotFoundError):
        client.delete_task("job", "task")
    make_task(client)


def test_a_task_made_again_does_not_start_beside_its_dying_namesake() -> None:
    world = make_world(nodes=2, runner=ScriptedRunner(holds_kills=True))
    client = make_client(world)
    make_job(client)
    make_task(client)
    client.delete_task("job", "task")

    make_task(client)
    world.advance(60)

    assert states(client) == {"task": "active"}
    runner_of(world).finish_kill("job", "task")
    assert states(client) == {"task": "running"}


def test_completed_tasks_are_forgotten_after_a_week(client: BatchClient, world: World) -> None:
    make_task(client)
    runner_of(world).finish("job", "task")

    world.advance(7 * 86400 - 1)
    assert states(client) == {"task": "completed"}
    world.advance(1)

    assert states(client) == {}
    make_task(client)


def test_a_collection_answers_for_each_task(client: BatchClient) -> None:
    make_task(client)
    tasks = [models.BatchTaskCreateOptions(id=id, command_line="x") for id in ("task", "new")]

    result = client.create_task_collection("job", models.BatchTaskGroup(task_values=tasks))

    old, new = result.result_values or []
    assert (old.task_id, old.status) == ("task", models.BatchTaskAddStatus.CLIENT_ERROR)
    assert old.error and old.error.code == "TaskExists"
    assert (new.task_id, new.status) == ("new", models.BatchTaskAddStatus.SUCCESS)
    assert new.etag == client.get_task("job", "new").etag


def test_a_collection_holds_at_most_a_hundred_tasks(client: BatchClient) -> None:
    tasks = [models.BatchTaskCreateOptions(id=f"t{number}", command_line="x") for number in range(101)]

    with pytest.raises(HttpResponseError) as refused:
        client.create_task_collection("job", models.BatchTaskGroup(task_values=tasks))

    assert refused.value.status_code == 400
    assert states(client) == {}


def test_a_collection_of_more_than_a_megabyte_is_too_large(client: BatchClient) -> None:
    tasks = [models.BatchTaskCreateOptions(id=f"t{n}", command_line="x" * 30000) for n in range(40)]

    with pytest.raises(HttpResponseError) as refused:
        client.create_task_collection("job", models.BatchTaskGroup(task_values=tasks))

    assert refusal(refused.value) == (413, "RequestBodyTooLarge")


def test_a_task_may_not_start_before_the_service_gets_to_it() -> None:
    world = make_world(timings={"schedule_seconds": 5})
    client = make_client(world)
    make_job(client)
    make_task(client)

    world.advance(4)
    assert states(client) == {"task": "active"}
    world.advance(1)
    assert states(client) == {"task": "running"}


def test_what_a_task_was_created_with_is_shown(client: BatchClient) -> None:
    url = "https://account.blob.core.windows.net/in/x"
    make_task(
        client,
        container_settings=models.BatchTaskContainerSettings(image_name="registry/image:1"),
        resource_files=[models.ResourceFile(http_url=url, file_path="in/x")],
        environment_settings=[models.EnvironmentSetting(name="A", value="b")],
    )

    task = client.get_task("job", "task")

    assert task.container_settings and task.container_settings.image_name == "registry/image:1"
    assert task.resource_files and task.resource_files[0].http_url == url
    assert task.environment_settings and task.environment_settings[0].value == "b"


def test_everything_happens_at_its_own_time_however_far_the_clock_jumps() -> None:
    world = make_world(runner=ScriptedRunner(finish_after_seconds=30))
    client = make_client(world)
    make_job(client)
    for name in ("first", "second"):
        make_task(client, name)
    start = world.now

    world.advance(3600)

    ends = [_info(client, name).end_time for name in ("first", "second")]
    assert ends == [start + timedelta(seconds=30), start + timedelta(seconds=60)]
