"""A second, independent client, azure-batch 14.2.0, makes the calls that HASTE's own runner makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.batch import ScriptedRunner, World, control
from local.batch.server import server_context
from local.certificates import Certificates
from tests.batch_contract.old_client import NotInstalledError, OldClient, OldRefusal, installed_python
from tests.batch_contract.stand import POOL, make_world
from tests.support.serving import serving


@pytest.fixture(scope="session")
def old_client(certificates: Certificates) -> Iterator[OldClient]:
    """Its process trusts the session's authority through the environment, as this one does."""
    try:
        python = installed_python()
    except NotInstalledError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(f"azure-batch 14.2.0 cannot be installed: {error}")
    client = OldClient(python)
    yield client
    client.close()


@dataclass(frozen=True)
class Account:
    """An emulated account and the old client's way to it."""

    client: OldClient
    endpoint: str
    world: World

    def __call__(self, call: str, *arguments: Any, **options: Any) -> Any:
        return self.client.call(self.endpoint, call, *arguments, **options)

    @property
    def runner(self) -> ScriptedRunner:
        assert isinstance(self.world.runner, ScriptedRunner)
        return self.world.runner

    def refusal(self, call: str, *arguments: Any, **options: Any) -> tuple[int, str | None]:
        with pytest.raises(OldRefusal) as refused:
            self(call, *arguments, **options)
        return refused.value.status, refused.value.code

    def job(self) -> None:
        self("job.add", {"model": "JobAddParameter", "id": "job", "pool_info": _pool_info(POOL), "priority": 100})

    def task(self, task_id: str = "task") -> None:
        self("task.add", "job", {"model": "TaskAddParameter", "id": task_id, "command_line": "program"})

    def ids(self, call: str, *arguments: Any, **options: Any) -> list[str]:
        return [entry["id"] for entry in self(call, *arguments, **options)]


def _pool_info(pool_id: str) -> dict[str, str]:
    return {"model": "PoolInformation", "pool_id": pool_id}


@pytest.fixture(params=["http", "https"])
def account(request: pytest.FixtureRequest, old_client: OldClient, certificates: Certificates) -> Iterator[Account]:
    secure = request.param == "https"
    context = server_context(str(certificates.certificate), str(certificates.key)) if secure else None
    world = make_world()
    with serving(world, context) as endpoint:
        yield Account(old_client, endpoint, world)


def test_pools(account: Account) -> None:
    pool = account("pool.get", POOL)

    assert (pool["id"], pool["state"], pool["allocationState"]) == (POOL, "active", "steady")
    assert (pool["vmSize"], pool["taskSlotsPerNode"]) == ("standard_d2s_v3", 2)
    assert (pool["targetLowPriorityNodes"], pool["currentLowPriorityNodes"]) == (2, 2)
    assert pool["metadata"] == [{"name": "class", "value": "gpu"}]
    assert account.ids("pool.list") == [POOL]
    assert account("pool.exists", POOL) is True
    assert account("pool.exists", "none") is False
    assert account.refusal("pool.get", "none") == (404, "PoolNotFound")


def test_job_add_and_get(account: Account) -> None:
    account(
        "job.add",
        {
            "model": "JobAddParameter",
            "id": "job",
            "pool_info": _pool_info(POOL),
            "priority": 100,
            "max_parallel_tasks": 5,
            "on_all_tasks_complete": "noAction",
            "on_task_failure": "performExitOptionsJobAction",
            "constraints": {"model": "JobConstraints", "max_task_retry_count": 2},
            "metadata": [{"model": "MetadataItem", "name": "tenant", "value": "t"}],
            "common_environment_settings": [{"model": "EnvironmentSetting", "name": "A", "value": "b"}],
        },
    )

    job = account("job.get", "job")
    assert (job["id"], job["state"], job["priority"], job["maxParallelTasks"]) == ("job", "active", 100, 5)
    assert job["poolInfo"] == {"poolId": POOL}
    assert job["onTaskFailure"].lower() == "performexitoptionsjobaction"
    assert job["constraints"]["maxTaskRetryCount"] == 2
    assert job["executionInfo"]["poolId"] == POOL
    assert job["metadata"] == [{"name": "tenant", "value": "t"}]
    assert account.ids("job.list") == ["job"]
    assert account.refusal("job.add", {"model": "JobAddParameter", "id": "JOB", "pool_info": _pool_info(POOL)}) == (
        409,
        "JobExists",
    )
    assert account.refusal("job.get", "none") == (404, "JobNotFound")


def test_job_patch_disable_and_enable(account: Account) -> None:
    account.job()
    account.task()
    move = {"model": "JobPatchParameter", "pool_info": _pool_info("other"), "priority": 5}

    assert account.refusal("job.patch", "job", move) == (409, "OperationInvalidForCurrentState")
    account("job.disable", "job", "requeue")
    assert account("job.get", "job")["state"] == "disabled"
    assert account("task.get", "job", "task")["executionInfo"]["requeueCount"] == 1
    account("job.patch", "job", move)
    job = account("job.get", "job")
    assert (job["poolInfo"], job["priority"]) == ({"poolId": "other"}, 5)
    account("job.patch", "job", {"model": "JobPatchParameter", "pool_info": _pool_info(POOL)})
    account("job.enable", "job")

    assert account("job.get", "job")["state"] == "active"
    assert account("task.get", "job", "task")["state"] == "running"
    assert account.refusal("job.enable", "job") == (409, "OperationInvalidForCurrentState")
    assert account.refusal("job.disable", "none", "requeue") == (404, "JobNotFound")


def test_task_add_get_and_list(account: Account) -> None:
    account.job()
    container = "https://account.blob.core.windows.net/container"
    account(
        "task.add",
        "job",
        {
            "model": "TaskAddParameter",
            "id": "task",
            "command_line": "/bin/bash -c 'echo hi'",
            "container_settings": {
                "model": "TaskContainerSettings",
                "image_name": "registry/image:1",
                "container_run_options": "--rm --gpus all",
            },
            "environment_settings": [{"model": "EnvironmentSetting", "name": "A", "value": "b"}],
            "resource_files": [{"model": "ResourceFile", "http_url": f"{container}/x", "file_path": "in/x"}],
            "output_files": [
                {
                    "model": "OutputFile",
                    "file_pattern": "../std*.txt",
                    "destination": {
                        "model": "OutputFileDestination",
                        "container": {"model": "OutputFileBlobContainerDestination", "container_url": container},
                    },
                    "upload_options": {"model": "OutputFileUploadOptions", "upload_condition": "taskCompletion"},
                }
            ],
            "user_identity": {
                "model": "UserIdentity",
                "auto_user": {"model": "AutoUserSpecification", "scope": "pool", "elevation_level": "admin"},
            },
            "constraints": {"model": "TaskConstraints", "max_task_retry_count": 1},
        },
    )
    account.task("second")
    account.runner.finish("job", "task", 0)

    task = account("task.get", "job", "task")
    assert (task["state"], task["previousState"]) == ("completed", "running")
    assert (task["executionInfo"]["exitCode"], task["executionInfo"]["result"]) == (0, "success")
    assert task["nodeInfo"]["nodeId"].startswith("tvmps_")
    assert task["resourceFiles"] == [{"httpUrl": f"{container}/x", "filePath": "in/x"}]
    assert account.ids("task.list", "job") == ["task", "second"]
    only = {"model": "TaskListOptions", "filter": "state eq 'completed'", "select": "id", "max_results": 1}
    assert account("task.list", "job", task_list_options=only) == [{"id": "task"}]
    assert account.refusal("task.get", "job", "none") == (404, "TaskNotFound")
    add = {"model": "TaskAddParameter", "id": "task", "command_line": "program"}
    assert account.refusal("task.add", "job", add) == (409, "TaskExists")


def test_lists_are_followed_over_their_pages(account: Account) -> None:
    account.job()
    for number in range(5):
        account.task(f"t{number}")

    options = {"model": "TaskListOptions", "max_results": 2, "filter": "startswith(id,'t')"}
    assert account.ids("task.list", "job", task_list_options=options) == [f"t{number}" for number in range(5)]
    assert len(account.world.events.select("request", operation="list_tasks")) == 3


def test_task_terminate(account: Account) -> None:
    account.job()
    account.task()

    account("task.terminate", "job", "task")

    info = account("task.get", "job", "task")["executionInfo"]
    assert (info["result"], info["failureInfo"]["code"]) == ("failure", "TaskEnded")
    assert account.refusal("task.terminate", "job", "task") == (409, "TaskCompleted")
    assert account.refusal("task.terminate", "job", "none") == (404, "TaskNotFound")


def test_node_counts(account: Account) -> None:
    account.job()
    account.task()
    control.preempt_task(account.world, "job", "task")

    (counts,) = account("account.list_pool_node_counts")

    assert counts["poolId"] == POOL
    low = counts["lowPriority"]
    assert (low["running"], low["idle"], low["preempted"], low["total"]) == (1, 0, 1, 2)
    assert counts["dedicated"]["total"] == 0
    only = {"model": "AccountListPoolNodeCountsOptions", "filter": "poolId eq 'none'"}
    assert account("account.list_pool_node_counts", account_list_pool_node_counts_options=only) == []
    bad = {"model": "AccountListPoolNodeCountsOptions", "filter": "colour eq 'x'"}
    assert account.refusal("account.list_pool_node_counts", account_list_pool_node_counts_options=bad) == (
        400,
        "InvalidQueryParameterValue",
    )


def test_files(account: Account) -> None:
    account.job()
    account.task()
    account.runner.put_file("job", "task", "wd/a b+c.log", "ä€".encode())

    files = {file["name"]: file for file in account("file.list_from_task", "job", "task", recursive=True)}
    assert set(files) == {"stdout.txt", "stderr.txt", "wd", "wd/a b+c.log"}
    log = files["wd/a b+c.log"]
    assert (log["isDirectory"], int(log["properties"]["contentLength"])) == (False, 5)
    assert account("file.get_from_task", "job", "task", "wd/a b+c.log") == "ä€"
    part = {"model": "FileGetFromTaskOptions", "ocp_range": "bytes=2-4"}
    assert account("file.get_from_task", "job", "task", "wd/a b+c.log", part) == "€"
    account("file.delete_from_task", "job", "task", "wd/a b+c.log")
    assert account.refusal("file.get_from_task", "job", "task", "wd/a b+c.log") == (404, "FileNotFound")
    assert account.refusal("file.delete_from_task", "job", "task", "none") == (404, "FileNotFound")
    account.runner.finish("job", "task", 0)
    assert "stdout.txt" in [file["name"] for file in account("file.list_from_task", "job", "task")]


def test_a_wrong_key_is_refused(account: Account, old_client: OldClient) -> None:
    control_world = World.from_json({"account": {"name": "localbatch", "key": "YW5vdGhlciBrZXk="}})
    with serving(control_world) as endpoint, pytest.raises(OldRefusal) as refused:
        old_client.call(endpoint, "pool.get", POOL)

    assert (refused.value.status, refused.value.code) == (403, "AuthenticationFailed")
