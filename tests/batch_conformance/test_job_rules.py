"""What Azure documents about jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.batch_conformance.wire import POOL, Wire, account

_TASK = {"id": "late", "commandLine": "program"}
_JOB = {"id": "job", "poolInfo": {"poolId": POOL}}


def test_a_job_without_tasks_counts_as_complete(wire: Wire) -> None:
    wire.job(onAllTasksComplete="terminatejob")

    assert wire.state("/jobs/job") == "terminating"
    wire.advance(1)
    job = wire.get("/jobs/job")
    assert (job["state"], job["executionInfo"]["terminateReason"]) == ("completed", "AllTasksComplete")


def test_a_job_ends_with_its_last_task_and_not_before(wire: Wire) -> None:
    wire.job()
    wire.task()
    wire.task("second")
    wire.done("PATCH", "/jobs/job", {"onAllTasksComplete": "terminatejob"})

    wire.end()
    assert wire.state("/jobs/job") == "active"
    wire.end("second", 1)
    assert wire.state("/jobs/job") == "terminating"


def test_terminatejob_cannot_be_taken_back(wire: Wire) -> None:
    wire.job()
    wire.task()
    wire.done("PATCH", "/jobs/job", {"onAllTasksComplete": "terminatejob"})

    answer = wire.send("PATCH", "/jobs/job", {"onAllTasksComplete": "noaction"})

    assert answer.refusal == (400, "InvalidPropertyValue")
    wire.end()
    assert wire.state("/jobs/job") == "terminating"


def test_the_pool_changes_only_while_the_job_is_disabled(wire: Wire) -> None:
    wire.done("POST", "/pools", {"id": "other", "vmSize": "standard_d2s_v3", "targetDedicatedNodes": 1})
    wire.advance(60)
    wire.job()
    wire.task()
    move = {"poolInfo": {"poolId": "other"}}

    assert wire.send("PATCH", "/jobs/job", move).status == 409
    wire.done("POST", "/jobs/job/disable", {"disableTasks": "requeue"})
    assert wire.send("PATCH", "/jobs/job", move).status == 409
    wire.advance(1)
    assert wire.state("/jobs/job") == "disabled"
    wire.done("PATCH", "/jobs/job", move)
    wire.done("POST", "/jobs/job/enable")
    wire.advance(1)

    job = wire.get("/jobs/job")
    assert (job["state"], job["poolInfo"], job["executionInfo"]["poolId"]) == ("active", {"poolId": "other"}, "other")
    assert wire.get("/jobs/job/tasks/task")["nodeInfo"]["poolId"] == "other"


def test_waiting_tasks_stay_active_when_their_job_is_terminated(wire: Wire) -> None:
    wire.job()
    wire.task()
    wire.task("waiting")

    wire.done("POST", "/jobs/job/terminate", {"terminateReason": "over"})
    wire.advance(1)

    assert wire.state("/jobs/job") == "completed"
    task = wire.get("/jobs/job/tasks/task")
    assert (task["state"], task["executionInfo"]["failureInfo"]["code"]) == ("completed", "TaskEnded")
    wire.advance(86400)
    assert wire.state("/jobs/job/tasks/waiting") == "active"


def test_every_job_that_is_not_completed_counts_for_the_quota() -> None:
    with account(quotas={"active_jobs": 2}) as wire:
        wire.job("active")
        wire.job("disabled")
        wire.done("POST", "/jobs/disabled/disable", {"disableTasks": "requeue"})
        wire.advance(1)

        def create() -> Any:
            return wire.send("POST", "/jobs", _JOB)

        assert create().refusal == (409, "ActiveJobAndScheduleQuotaReached")
        wire.done("POST", "/jobs/active/terminate")
        assert create().refusal == (409, "ActiveJobAndScheduleQuotaReached")
        wire.advance(1)
        assert wire.state("/jobs/active") == "completed"
        assert create().status == 201


@pytest.mark.parametrize(
    ("method", "path", "seconds", "code"),
    [
        ("POST", "/jobs/job/terminate", 0, "JobBeingTerminated"),
        ("POST", "/jobs/job/terminate", 1, "JobCompleted"),
        ("DELETE", "/jobs/job", 0, "JobBeingDeleted"),
    ],
)
def test_a_job_that_ends_takes_no_task(wire: Wire, method: str, path: str, seconds: int, code: str) -> None:
    wire.job()
    wire.done(method, path)
    wire.advance(seconds)

    assert wire.send("POST", "/jobs/job/tasks", _TASK).refusal == (409, code)
    assert wire.send("POST", "/jobs/job/addtaskcollection", {"value": [_TASK]}).refusal == (409, code)


@pytest.mark.parametrize("accepts", [True, False])
def test_whether_a_disabled_job_takes_tasks_can_be_chosen(accepts: bool) -> None:
    with account(assumptions={"disabled_job_accepts_tasks": accepts}) as wire:
        wire.job()
        wire.done("POST", "/jobs/job/disable", {"disableTasks": "requeue"})
        wire.advance(1)

        answer = wire.send("POST", "/jobs/job/tasks", _TASK)

        if accepts:
            assert answer.status == 201
            assert wire.state("/jobs/job/tasks/late") == "active"
        else:
            assert answer.refusal == (409, "JobDisabled")


def test_an_id_cannot_be_used_while_its_job_is_being_deleted(wire: Wire) -> None:
    wire.job()
    wire.task()
    wire.done("DELETE", "/jobs/job")

    assert wire.send("POST", "/jobs", _JOB).refusal == (409, "JobBeingDeleted")
    wire.advance(1)
    assert wire.send("POST", "/jobs", _JOB).status == 201
    assert wire.list("/jobs/job/tasks") == []
