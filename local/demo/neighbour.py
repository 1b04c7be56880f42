"""Another tenant of the shared pools. Its tasks take nodes and quota and do nothing else."""

from __future__ import annotations

from azure.batch import BatchClient, models
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.rest import HttpRequest

from local.stack.settings import BatchAccount

_VERSION = {"api-version": "2025-06-01"}
_COMMAND = "/bin/sleep 600"


class Neighbour:
    """It works on the Batch account by itself; the worker sees only what anybody sees of a busy pool."""

    def __init__(self, account: BatchAccount) -> None:
        self._client = BatchClient(account.url, AzureNamedKeyCredential(account.name, account.key))

    def occupy(self, pool_id: str, tasks: int) -> None:
        """Add so many tasks to the pool. Once per pool."""
        job_id = self._job_id(pool_id)
        pool = models.BatchPoolInfo(pool_id=pool_id)
        self._client.create_job(models.BatchJobCreateOptions(id=job_id, pool_info=pool))
        for number in range(1, tasks + 1):
            task = models.BatchTaskCreateOptions(id=f"busy-{pool_id}-{number}", command_line=_COMMAND)
            self._client.create_task(job_id, task)

    def leave(self, pool_id: str) -> None:
        """End all its tasks on the pool."""
        # not begin_terminate_job: without options the SDK fails, and its model of them is not public
        request = HttpRequest("POST", f"/jobs/{self._job_id(pool_id)}/terminate", params=_VERSION, json={})
        self._client.send_request(request).raise_for_status()

    def _job_id(self, pool_id: str) -> str:
        return f"tenantb-training-{pool_id}"
