"""The Batch adapter's methods against the emulator: what they do, and what becomes of each refusal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest

from local.batch import Failure, RunEnd, control
from shared.batch.client import AzureBatch
from shared.batch.types import JobState, PoolCounts
from shared.errors import JobOver
from tests.support.batch_account import POOLS, Account
from tests.support.batch_calls import body, end_job, with_job
from tests.support.passing_waits import PassingWaits


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


# --- jobs -------------------------------------------------------------------------------------------------------


def test_a_job_is_made_once_and_seen_as_it_is() -> None:
    account = Account()
    assert account.batch.job("job").state is JobState.ABSENT
    account.batch.create_job("job", "h100", 100, "contoso")
    account.batch.create_job("job", "t4", 0, "another")  # success, and nothing changed
    seen = account.batch.job("job")
    assert (seen.state, seen.pool_id, seen.tenant) == (JobState.USABLE, "h100", "contoso")
    assert account.raw("GET", "/jobs/job")["priority"] == 100


def test_a_job_without_priority_and_tenant_is_bare() -> None:
    account = Account()
    account.batch.create_job("job", "h100", None, None)
    assert account.batch.job("job").tenant is None


def test_a_disabled_job_is_enabled() -> None:
    account = with_job()
    account.raw("POST", "/jobs/job/disable", {"disableTasks": "requeue"}, expect=202)
    assert account.batch.job("job").state is JobState.DISABLED
    account.batch.enable_job("job")
    account.world.advance(2)
    assert account.batch.job("job").state is JobState.USABLE


@pytest.mark.parametrize("how", ["terminate", "delete"])
def test_a_job_that_ends_is_over_and_then_completed_or_absent(how: str) -> None:
    account = with_job(timings={"job_action_seconds": 100, "job_delete_seconds": 100})
    end_job(account, how)
    assert account.batch.job("job").state is JobState.OVER
    account.world.advance(200)
    assert account.batch.job("job").state is (JobState.OVER if how == "terminate" else JobState.ABSENT)


def test_the_jobs_of_a_tenant_are_told_by_their_metadata() -> None:
    account = Account()
    long = "a-tenant-whose-name-is-longer-than-24-characters"
    for job, tenant in [
        ("contoso-1", "contoso"),
        ("contoso-2", "contoso"),
        ("contoso-over", "contoso"),
        ("contoso-rival-1", "contoso-rival"),
        ("contoso-bare", None),
        ("other", "other"),
        (long[:40], long),
    ]:
        account.batch.create_job(job, "h100", None, tenant)
    account.raw("POST", "/jobs/contoso-over/terminate", expect=202)
    found = {job.job_id: job for job in account.batch.jobs_of("contoso")}
    assert found.keys() == {"contoso-1", "contoso-2", "contoso-over"}
    assert found["contoso-over"].state is JobState.OVER
    assert found["contoso-over"].ended_at is not None and found["contoso-1"].ended_at is None
    assert found["contoso-1"] == account.batch.job("contoso-1")
    assert found["contoso-1"].created_at == account.clock.now().replace(tzinfo=UTC) - timedelta(seconds=2)
    assert [job.job_id for job in account.batch.jobs_of("contoso-rival")] == ["contoso-rival-1"]
    assert [job.job_id for job in account.batch.jobs_of(long)] == [long[:40]]
    assert account.batch.jobs_of("nobody") == []


def test_a_job_is_terminated_without_waiting_and_more_than_once() -> None:
    account = with_job("trn-1", timings={"job_action_seconds": 100})
    account.batch.terminate_job("job")
    seen = account.batch.job("job")
    assert (seen.state, seen.ended_at) == (JobState.OVER, None)
    account.batch.terminate_job("job")
    account.world.advance(200)
    account.batch.terminate_job("job")
    assert account.batch.job("job").ended_at is not None
    account.batch.terminate_job("gone")


def test_a_job_is_deleted_without_waiting_and_more_than_once() -> None:
    account = with_job("trn-1", timings={"job_delete_seconds": 100})
    account.batch.delete_job("job")
    assert account.batch.job("job").state is JobState.OVER
    account.batch.delete_job("job")
    account.world.advance(200)
    assert account.batch.job("job").state is JobState.ABSENT
    account.batch.delete_job("job")


# --- tasks ------------------------------------------------------------------------------------------------------


def test_a_task_is_made_once() -> None:
    account = with_job("trn-1")
    account.batch.create_task("job", body("trn-1", command_line="something else"))
    assert account.raw("GET", "/jobs/job/tasks/trn-1")["commandLine"] == "work"
    assert len(account.world.events.select("task_created")) == 1


def test_a_spent_id_can_only_fail_and_takes_no_files_along() -> None:
    account = with_job()
    account.batch.spend_task_id("job", "trn-1")
    account.batch.create_task("job", body("trn-1"))
    task = account.raw("GET", "/jobs/job/tasks/trn-1")
    assert task["commandLine"] == "/bin/false"
    assert task["constraints"]["maxTaskRetryCount"] == 0
    assert not {"resourceFiles", "outputFiles", "containerSettings", "environmentSettings"} & task.keys()


def test_spending_an_id_that_is_in_use_changes_nothing() -> None:
    account = with_job("trn-1")
    account.batch.spend_task_id("job", "trn-1")
    assert account.raw("GET", "/jobs/job/tasks/trn-1")["commandLine"] == "work"


def test_a_task_is_read_alone_and_in_the_list() -> None:
    account = with_job("trn-1", "trn-2", "trn-3", page_size=2)
    account.world.advance(10)
    listed = {task.task_id: task for task in account.batch.tasks("job")}
    assert set(listed) == {"trn-1", "trn-2", "trn-3"}, "also from the second page"
    assert listed["trn-1"] == account.batch.task("job", "trn-1")
    one = listed["trn-1"]
    assert (one.state, one.pool_id, one.succeeded, one.exit_code, one.failure_code) == (
        "running",
        "h100",
        False,
        None,
        None,
    )
    assert one.node_id is not None and one.started_at is not None and one.created_at is not None
    assert listed["trn-3"].state == "active" and listed["trn-3"].node_id is None
    assert account.batch.task("job", "nobody") is None


@pytest.mark.parametrize(
    ("end", "succeeded", "exit_code", "failure"),
    [
        (RunEnd(exit_code=0), True, 0, None),
        (RunEnd(exit_code=3), False, 3, "FailureExitCode"),
        (
            RunEnd(exit_code=0, failure=Failure("FileUploadAccessDenied", "usererror", "x", stage="upload")),
            False,
            0,
            "FileUploadAccessDenied",
        ),
        (RunEnd(failure=Failure("BlobAccessDenied", "usererror", "x")), False, None, "BlobAccessDenied"),
    ],
)
def test_how_a_task_ended(end: RunEnd, succeeded: bool, exit_code: int | None, failure: str | None) -> None:
    account = with_job("trn-1")
    account.runner.finish("job", "trn-1", end)
    account.world.tick()
    task = account.batch.task("job", "trn-1")
    assert task is not None and task.ended_at is not None
    assert (task.state, task.succeeded, task.exit_code, task.failure_code) == (
        "completed",
        succeeded,
        exit_code,
        failure,
    )


def test_a_task_is_terminated_and_that_is_success_however_often() -> None:
    account = with_job("trn-1", "trn-2", "trn-3")
    for task in ("trn-1", "trn-3"):
        for _ in range(3):
            account.batch.terminate_task("job", task)
            account.world.tick()
        seen = account.batch.task("job", task)
        assert seen is not None and (seen.state, seen.failure_code) == ("completed", "TaskEnded")
    account.batch.terminate_task("job", "nobody")
    account.batch.terminate_task("no-job", "nobody")


def test_a_stuck_task_is_deleted_under_the_condition_that_it_has_not_changed() -> None:
    account = with_job("trn-1")
    account.batch.delete_stuck_task("job", "trn-1")
    (deletion,) = [one for one in account.transport.sent if one.method == "DELETE"]
    assert deletion.headers["If-Match"].strip('"')
    assert account.batch.task("job", "trn-1") is None


def test_a_task_that_completed_meanwhile_is_never_deleted() -> None:
    account = with_job("trn-1", "trn-2")
    account.runner.finish("job", "trn-1", 0)
    account.world.tick()
    account.batch.delete_stuck_task("job", "trn-1")

    real = account.transport.send

    def completes_before_the_delete(request: Any, **options: Any) -> Any:
        if request.method == "DELETE":
            account.runner.finish("job", "trn-2", 0)
            account.world.tick()
        return real(request, **options)

    account.transport.send = completes_before_the_delete  # type: ignore[method-assign]
    account.batch.delete_stuck_task("job", "trn-2")
    assert [task.task_id for task in account.batch.tasks("job")] == ["trn-1", "trn-2"]
    account.batch.delete_stuck_task("job", "nobody")


def test_a_delete_that_was_carried_out_without_an_answer_is_success() -> None:
    account = with_job("trn-1")
    account.fault(operation="delete_task", when="after", drop_connection=True, times=1)
    account.batch.delete_stuck_task("job", "trn-1")
    assert account.batch.tasks("job") == []


# --- what is over -----------------------------------------------------------------------------------------------

CREATES: list[Callable[[AzureBatch], object]] = [
    lambda batch: batch.create_task("job", body("trn-9")),
    lambda batch: batch.spend_task_id("job", "trn-9"),
]


@pytest.mark.parametrize("create", CREATES)
@pytest.mark.parametrize("how", ["terminating", "terminate", "deleting", "delete"])
def test_nothing_can_be_added_to_a_job_that_is_over(create: Callable[[AzureBatch], object], how: str) -> None:
    seconds = 100 if how.endswith("ing") else 1
    account = with_job(timings={"job_action_seconds": seconds, "job_delete_seconds": seconds})
    end_job(account, "delete" if how.startswith("delet") else "terminate")
    with pytest.raises(JobOver):
        create(account.batch)


@pytest.mark.parametrize("read", [lambda batch: batch.task("gone", "trn-1"), lambda batch: batch.tasks("gone")])
def test_a_task_of_a_job_that_is_gone_is_not_just_absent(read: Callable[[AzureBatch], object]) -> None:
    with pytest.raises(JobOver):
        read(Account().batch)


# --- pools, nodes, files ----------------------------------------------------------------------------------------


def test_pools_are_counted_with_dedicated_and_low_priority_nodes_together() -> None:
    mixed = {"id": "mixed", "targetDedicatedNodes": 1, "targetLowPriorityNodes": 2, "start_seconds": 0}
    account = Account([*POOLS, mixed])
    account.batch.create_job("job", "h100", None, None)
    account.batch.create_task("job", body())
    account.world.advance(1)
    control.preempt_node(account.world, "t4", node=next(iter(account.batch.nodes("t4"))))
    assert account.batch.pool_counts() == {
        "h100": PoolCounts("h100", idle=1, running=1, starting=0, lost=0),
        "t4": PoolCounts("t4", idle=0, running=0, starting=0, lost=1),
        "mixed": PoolCounts("mixed", idle=3, running=0, starting=0, lost=0),
    }


def test_pools_are_seen_with_what_routing_needs() -> None:
    scaled = {
        "id": "scaled",
        "autoscale": {"min": 0, "max": 4},
        "taskSlotsPerNode": 2,
        "metadata": [{"name": "maximumNodes", "value": "4"}],
    }
    account = Account([*POOLS, scaled])
    control.set_resize_errors(account.world, "t4", [{"code": "AllocationTimedout"}])
    pools = account.batch.pools()
    assert set(pools) == {"h100", "t4", "scaled"}
    assert (pools["h100"].state, pools["h100"].allocation_state) == ("active", "steady")
    assert (pools["h100"].target_nodes, pools["h100"].current_nodes, pools["h100"].auto_scales) == (2, 2, False)
    assert pools["t4"].resize_error_codes == ("AllocationTimedout",)
    assert (pools["scaled"].auto_scales, pools["scaled"].maximum_nodes, pools["scaled"].task_slots_per_node) == (
        True,
        4,
        2,
    )
    assert pools["h100"].maximum_nodes is None


def test_nodes_are_seen_by_id_with_state_and_boot() -> None:
    account = Account()
    nodes = account.batch.nodes("h100")
    assert len(nodes) == 2
    for name, node in nodes.items():
        assert (node.node_id, node.state) == (name, "idle")
        assert node.last_boot_at is not None and node.last_boot_at.tzinfo is not None
        assert node.last_boot_at <= account.clock.now().astimezone(UTC)
    assert account.batch.nodes("gone") == {}


def test_files_of_a_running_task_are_read_from_a_place_up_to_a_size() -> None:
    account = with_job("trn-1")
    account.runner.put_file("job", "trn-1", "wd/logs/a.log", b"0123456789")
    account.runner.put_file("job", "trn-1", "wd/logs/deep/b.log", b"")
    expected = {(0, 100): b"0123456789", (0, 4): b"0123", (3, 4): b"3456", (8, 4): b"89", (10, 4): b"", (99, 4): b""}
    for (offset, most_bytes), content in expected.items():
        assert account.batch.read_task_file("job", "trn-1", "wd/logs/a.log", offset, most_bytes) == content
    assert sorted(account.batch.task_file_names("job", "trn-1", "wd/logs/")) == ["wd/logs/a.log", "wd/logs/deep/b.log"]
    assert list(account.batch.task_file_names("job", "trn-1", "wd/other/")) == []


def test_files_that_cannot_be_had_now_are_no_error_and_not_asked_for_again(waits: PassingWaits) -> None:
    account = with_job("trn-1")
    assert account.batch.read_task_file("job", "trn-1", "wd/nothing", 0, 100) is None
    assert account.batch.read_task_file("job", "nobody", "wd/nothing", 0, 100) is None
    account.runner.put_file("job", "trn-1", "wd/empty", b"")
    assert account.batch.read_task_file("job", "trn-1", "wd/empty", 0, 100) == b""
    for fault in ({"status": 503}, {"drop_connection": True}, {"status": 409, "code": "NodeStateUnusable"}):
        account.fault(operation="get_task_file", **fault)
        account.fault(operation="list_task_files", **fault)
        assert account.batch.read_task_file("job", "trn-1", "wd/nothing", 0, 100) is None
        assert list(account.batch.task_file_names("job", "trn-1", "")) == []
        account.world.faults.clear()
    assert waits.seconds == []
