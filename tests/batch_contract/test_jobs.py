"""What the SDK's methods for jobs do, each in a test of its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from azure.batch import models
from azure.core.exceptions import ResourceNotFoundError

from tests.batch_contract.stand import POOL, Stand, wait

_TENANT = models.BatchMetadataItem(name="tenant", value="t")


def _state(stand: Stand) -> Any:
    return stand.client.get_job("job").state


def test_create_job(stand: Stand) -> None:
    stand.client.create_job(
        models.BatchJobCreateOptions(
            id="Job-1_x",
            display_name="A job",
            pool_info=models.BatchPoolInfo(pool_id=POOL),
            priority=-1000,
            max_parallel_tasks=3,
            all_tasks_complete_mode=models.BatchAllTasksCompleteMode.NO_ACTION,
            task_failure_mode=models.BatchTaskFailureMode.PERFORM_EXIT_OPTIONS_JOB_ACTION,
            constraints=models.BatchJobConstraints(max_wall_clock_time=timedelta(hours=12), max_task_retry_count=3),
            metadata=[_TENANT],
            common_environment_settings=[models.EnvironmentSetting(name="A", value="b")],
            uses_task_dependencies=False,
        )
    )

    job = stand.client.get_job("Job-1_x")
    assert (job.id, job.display_name, job.priority, job.max_parallel_tasks) == ("Job-1_x", "A job", -1000, 3)
    assert job.task_failure_mode == models.BatchTaskFailureMode.PERFORM_EXIT_OPTIONS_JOB_ACTION
    assert job.constraints
    assert job.constraints.max_wall_clock_time == timedelta(hours=12)
    assert job.constraints.max_task_retry_count == 3
    assert job.metadata == [_TENANT]
    assert job.common_environment_settings
    assert job.common_environment_settings[0].value == "b"


def test_get_job(stand: Stand) -> None:
    stand.job()

    job = stand.client.get_job("job")

    assert (job.state, job.previous_state) == (models.BatchJobState.ACTIVE, None)
    assert (job.priority, job.max_parallel_tasks, job.allow_task_preemption) == (0, -1, False)
    assert job.all_tasks_complete_mode == models.BatchAllTasksCompleteMode.NO_ACTION
    assert job.task_failure_mode == models.BatchTaskFailureMode.NO_ACTION
    assert job.constraints
    assert job.constraints.max_task_retry_count == 0
    assert job.constraints.max_wall_clock_time == timedelta(10675199, 10085, 477581)
    assert job.execution_info
    assert (job.execution_info.pool_id, job.execution_info.start_time) == (POOL, stand.world.now)
    assert job.execution_info.end_time is None
    assert job.creation_time == job.last_modified == job.state_transition_time == stand.world.now


def test_list_jobs(stand: Stand) -> None:
    for name in ("one", "two", "three"):
        stand.job(name)

    assert [job.id for job in stand.client.list_jobs()] == ["one", "two", "three"]
    assert [job.id for job in stand.client.list_jobs(filter="startswith(id,'t')")] == ["two", "three"]


def test_update_job(stand: Stand) -> None:
    stand.job(metadata=[_TENANT])

    stand.client.update_job(
        "job",
        models.BatchJobUpdateOptions(
            priority=7,
            max_parallel_tasks=2,
            constraints=models.BatchJobConstraints(max_task_retry_count=1),
            all_tasks_complete_mode=models.BatchAllTasksCompleteMode.NO_ACTION,
        ),
    )

    job = stand.client.get_job("job")
    assert (job.priority, job.max_parallel_tasks, job.metadata) == (7, 2, [_TENANT])
    assert job.constraints
    assert job.constraints.max_task_retry_count == 1


def test_replace_job(stand: Stand) -> None:
    stand.job(priority=7, metadata=[_TENANT], constraints=models.BatchJobConstraints(max_task_retry_count=1))

    stand.client.replace_job("job", models.BatchJob(pool_info=models.BatchPoolInfo(pool_id=POOL), max_parallel_tasks=2))

    job = stand.client.get_job("job")
    assert (job.priority, job.max_parallel_tasks) == (0, 2)
    assert not job.metadata
    assert job.constraints
    assert job.constraints.max_task_retry_count == 0


def test_begin_disable_job(stand: Stand) -> None:
    stand.job()
    stand.task()

    wait(
        stand.client.begin_disable_job(
            "job", models.BatchJobDisableOptions(disable_tasks=models.DisableBatchJobOption.REQUEUE), polling_interval=1
        )
    )

    assert _state(stand) == models.BatchJobState.DISABLED
    assert stand.client.get_task("job", "task").state == models.BatchTaskState.ACTIVE


def test_begin_enable_job(stand: Stand) -> None:
    stand.job()
    stand.task()
    wait(
        stand.client.begin_disable_job(
            "job", models.BatchJobDisableOptions(disable_tasks="requeue"), polling_interval=1
        )
    )

    wait(stand.client.begin_enable_job("job", polling_interval=1))

    assert _state(stand) == models.BatchJobState.ACTIVE
    assert stand.client.get_task("job", "task").state == models.BatchTaskState.RUNNING


def test_begin_terminate_job(stand: Stand) -> None:
    stand.job()
    stand.task()
    reason: Any = {"terminateReason": "WeekIsOver"}  # the SDK exports no model for it, and it fails without one

    wait(stand.client.begin_terminate_job("job", options=reason, force=True, polling_interval=1))

    job = stand.client.get_job("job")
    assert job.state == models.BatchJobState.COMPLETED
    assert job.execution_info
    assert job.execution_info.termination_reason == "WeekIsOver"
    assert job.execution_info.end_time == stand.world.now
    assert stand.client.get_task("job", "task").state == models.BatchTaskState.COMPLETED


def test_begin_delete_job(stand: Stand) -> None:
    stand.job()

    wait(stand.client.begin_delete_job("job", force=True, polling_interval=1))

    with pytest.raises(ResourceNotFoundError):
        stand.client.get_job("job")


def test_get_job_task_counts(stand: Stand) -> None:
    stand.job(max_parallel_tasks=3)
    for name in ("good", "bad", "running"):
        stand.task(name)
    stand.runner.finish("job", "good")
    stand.runner.finish("job", "bad", 1)
    stand.task("big", required_slots=2)
    stand.task("next")
    stand.task("late", required_slots=2)

    counts = stand.client.get_job_task_counts("job")

    tasks, slots = counts.task_counts, counts.task_slot_counts
    assert (tasks.active, tasks.running, tasks.completed, tasks.succeeded, tasks.failed) == (1, 3, 2, 1, 1)
    assert (slots.active, slots.running, slots.completed, slots.succeeded, slots.failed) == (2, 4, 2, 1, 1)
