"""Tasks, jobs and calls for tests of the Batch adapter."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from shared.batch.client import AzureBatch
from shared.batch.types import TaskBody
from tests.support.batch_account import Account


def body(task_id: str = "trn-1", **fields: Any) -> TaskBody:
    base: dict[str, Any] = {
        "command_line": "work",
        "image_name": "image",
        "container_run_options": "--rm",
        "resource_files": (),
        "output_files": (),
        "environment": {"NAME": "value"},
        "retention_time": timedelta(hours=1),
        "user_scope": "task",
    }
    return TaskBody(task_id, **(base | fields))


def with_job(*tasks: str, **world: Any) -> Account:
    account = Account(**world)
    account.batch.create_job("job", "h100", 100, "contoso")
    for task in tasks:
        account.batch.create_task("job", body(task))
    account.world.advance(1)
    return account


def end_job(account: Account, how: str = "terminate") -> None:
    if how == "delete":
        account.raw("DELETE", "/jobs/job", expect=202)
    else:
        account.raw("POST", "/jobs/job/terminate", expect=202)


#: Every method, by the operation that it stands or falls with.
EVERY: dict[str, Callable[[AzureBatch], object]] = {
    "get_job": lambda batch: batch.job("job"),
    "create_job": lambda batch: batch.create_job("job-2", "h100", None, None),
    "enable_job": lambda batch: batch.enable_job("job"),
    "list_jobs": lambda batch: batch.jobs_of("contoso"),
    "create_task": lambda batch: batch.create_task("job", body("trn-9")),
    "get_task": lambda batch: batch.task("job", "trn-1"),
    "list_tasks": lambda batch: batch.tasks("job"),
    "terminate_task": lambda batch: batch.terminate_task("job", "trn-1"),
    "delete_task": lambda batch: batch.delete_stuck_task("job", "trn-1"),
    "list_pool_node_counts": lambda batch: batch.pool_counts(),
    "list_pools": lambda batch: batch.pools(),
    "list_nodes": lambda batch: batch.nodes("h100"),
    "terminate_job": lambda batch: batch.terminate_job("job"),
    "delete_job": lambda batch: batch.delete_job("job"),
}
