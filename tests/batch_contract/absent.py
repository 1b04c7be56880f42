"""The operations that Azure Batch has and the emulator has not, each as a call that would succeed in Azure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from azure.batch import BatchClient, models

from tests.batch_contract.stand import POOL

_NODE = "tvmps_node_p"
_DAY = datetime(2026, 1, 5, tzinfo=UTC)
_SCHEDULE: Any = {"schedule": {"recurrenceInterval": "PT1H"}, "jobSpecification": {"poolInfo": {"poolId": POOL}}}
_USER: Any = {"name": "user", "password": "none"}
_LOGS = models.UploadBatchServiceLogsOptions(container_url="https://account.blob.core.windows.net/c", start_time=_DAY)


def _listed(call: Callable[[BatchClient], Any]) -> Callable[[BatchClient], Any]:
    return lambda client: list(call(client))


ABSENT: dict[str, Callable[[BatchClient], Any]] = {
    "list_applications": _listed(lambda c: c.list_applications()),
    "get_application": lambda c: c.get_application("application"),
    "list_pool_usage_metrics": _listed(lambda c: c.list_pool_usage_metrics()),
    "create_job_schedule": lambda c: c.create_job_schedule({"id": "schedule"} | _SCHEDULE),
    "list_job_schedules": _listed(lambda c: c.list_job_schedules()),
    "get_job_schedule": lambda c: c.get_job_schedule("schedule"),
    "job_schedule_exists": lambda c: c.job_schedule_exists("schedule"),
    "update_job_schedule": lambda c: c.update_job_schedule("schedule", _SCHEDULE),
    "replace_job_schedule": lambda c: c.replace_job_schedule("schedule", _SCHEDULE),
    "disable_job_schedule": lambda c: c.disable_job_schedule("schedule"),
    "enable_job_schedule": lambda c: c.enable_job_schedule("schedule"),
    "begin_terminate_job_schedule": lambda c: c.begin_terminate_job_schedule("schedule"),
    "begin_delete_job_schedule": lambda c: c.begin_delete_job_schedule("schedule"),
    "list_jobs_from_schedule": _listed(lambda c: c.list_jobs_from_schedule("schedule")),
    "create_node_user": lambda c: c.create_node_user(POOL, _NODE, _USER),
    "replace_node_user": lambda c: c.replace_node_user(POOL, _NODE, "user", {"password": "none"}),  # type: ignore[arg-type]
    "delete_node_user": lambda c: c.delete_node_user(POOL, _NODE, "user"),
    "get_node_remote_login_settings": lambda c: c.get_node_remote_login_settings(POOL, _NODE),
    "upload_node_logs": lambda c: c.upload_node_logs(POOL, _NODE, _LOGS),
    "list_node_extensions": _listed(lambda c: c.list_node_extensions(POOL, _NODE)),
    "get_node_extension": lambda c: c.get_node_extension(POOL, _NODE, "extension"),
    "list_node_files": _listed(lambda c: c.list_node_files(POOL, _NODE)),
    "get_node_file_properties": lambda c: c.get_node_file_properties(POOL, _NODE, "startup/stdout.txt"),
    "download_node_file": lambda c: list(c.download_node_file(POOL, _NODE, "startup/stdout.txt")),
    "delete_node_file": lambda c: c.delete_node_file(POOL, _NODE, "startup/stdout.txt"),
}
