"""Azure Batch through its SDK: the only module that imports `azure.batch`.

The SDK's own retries are off (`shared/retry.py` waits), its pollers are never started (they leave threads behind and
swallow failures), and errors are judged by HTTP status and Batch code, never by exception class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from azure.batch import BatchClient as BatchClient  # also for who makes the adapter
from azure.batch import models
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, TokenCredential
from azure.core.exceptions import AzureError
from azure.core.rest import HttpRequest

from shared.batch import read
from shared.batch.answers import OVER_CODES, translated
from shared.batch.types import JobState, JobView, NodeView, PoolCounts, PoolView, TaskBody, TaskView
from shared.errors import JobOver, WorkerError
from shared.retry import Fault, classify, patiently, status_and_code

T = TypeVar("T")

_CONNECT_SECONDS = 5
_READ_SECONDS = 20
_TASK_FIELDS = [
    "id", "state", "previousState", "stateTransitionTime", "executionInfo", "nodeInfo", "creationTime",
]  # fmt: skip
#: Job names are shortened far behind this many characters.
_NEVER_SHORTENED = 24

BatchCredential = AzureNamedKeyCredential | TokenCredential


def connect(endpoint: str, credential: BatchCredential, **transport: Any) -> BatchClient:
    """A client for one account. `transport` passes azure-core's own options through (tests bring their own)."""
    return BatchClient(
        endpoint,
        credential,
        retry_total=0,
        connection_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        **transport,
    )


def named_key(account: str, key: str) -> AzureNamedKeyCredential:
    """The legacy credential: account name and key."""
    return AzureNamedKeyCredential(account, key)


class AzureBatch:
    """A Batch account through the real SDK, whosever its jobs are. `TenantBatch` keeps to those of one tenant."""

    def __init__(self, client: BatchClient) -> None:
        self._client = client

    # --- jobs

    def job(self, job_id: str) -> JobView:
        """See `BatchService.job`."""
        job = self._found(lambda: self._client.get_job(job_id))
        return JobView(JobState.ABSENT, job_id=job_id) if job is None else read.job(job)

    def create_job(
        self, job_id: str, pool_id: str, priority: int | None, tenant: str | None, account: str | None = None
    ) -> bool:
        """See `BatchService.create_job`."""
        options = models.BatchJobCreateOptions(id=job_id, pool_info=models.BatchPoolInfo(pool_id=pool_id))
        if priority is not None:
            options.priority = priority
        options.metadata = _job_metadata(tenant, account) or None
        return bool(self._call(lambda: self._client.create_job(options) or True, fine={Fault.EXISTS}))

    def stamp_job(self, job_id: str, account: str) -> None:
        """Write whose a job is beside its other metadata. Nothing happens if it is over or gone. Raises Conflict."""
        job = self._found(lambda: self._client.get_job(job_id))
        if job is None or job.etag is None:
            return
        metadata = [*(job.metadata or []), *_job_metadata(None, account)]
        options, etag = models.BatchJobUpdateOptions(metadata=metadata), job.etag.strip('"')
        self._call(
            lambda: self._client.update_job(job_id, options, etag=etag, match_condition=MatchConditions.IfNotModified),
            fine={Fault.GONE},
            fine_codes=OVER_CODES,
        )

    def enable_job(self, job_id: str) -> None:
        """See `BatchService.enable_job`."""
        self._act("POST", f"/jobs/{job_id}/enable")

    def jobs_of(self, tenant: str) -> list[JobView]:
        """See `BatchService.jobs_of`. The metadata decides: another tenant's name may begin like this one's."""
        begins = f"startswith(id,'{tenant[:_NEVER_SHORTENED]}')"
        fields = ["id", "state", "metadata", "poolInfo", "creationTime", "executionInfo"]
        listed = self._call(lambda: list(self._client.list_jobs(filter=begins, select=fields)))
        return [job for job in map(read.job, listed) if job.tenant == tenant]

    def terminate_job(self, job_id: str) -> None:
        """See `BatchService.terminate_job`."""
        body = {"terminateReason": "its week is over"}
        self._act("POST", f"/jobs/{job_id}/terminate", body, fine={Fault.GONE}, fine_codes=OVER_CODES)

    def delete_job(self, job_id: str) -> None:
        """See `BatchService.delete_job`."""
        self._act("DELETE", f"/jobs/{job_id}", fine={Fault.GONE}, fine_codes={"JobBeingDeleted"})

    # --- tasks

    def create_task(self, job_id: str, body: TaskBody) -> None:
        """See `BatchService.create_task`."""
        options = models.BatchTaskCreateOptions(read.task_body(body))
        self._call(lambda: self._client.create_task(job_id, options), fine={Fault.EXISTS})

    def spend_task_id(self, job_id: str, task_id: str) -> None:
        """See `BatchService.spend_task_id`."""
        options = models.BatchTaskCreateOptions(
            id=task_id,
            command_line="/bin/false",
            constraints=models.BatchTaskConstraints(max_task_retry_count=0),
        )
        self._call(lambda: self._client.create_task(job_id, options), fine={Fault.EXISTS})

    def task(self, job_id: str, task_id: str) -> TaskView | None:
        """See `BatchService.task`."""
        task = self._found(lambda: self._client.get_task(job_id, task_id, select=_TASK_FIELDS), over={"JobNotFound"})
        return None if task is None else read.task(task)

    def output_containers(self, job_id: str, task_id: str) -> tuple[str, ...] | None:
        """URLs of the containers that a task's results go to; None if Batch does not list the task."""
        task = self._found(lambda: self._client.get_task(job_id, task_id, select=["id", "outputFiles"]))
        return None if task is None else read.output_containers(task)

    def live_tasks(self, job_id: str) -> list[TaskView]:
        """See `BatchService.live_tasks`."""
        return self._tasks(job_id, "state ne 'completed'")

    def tasks(self, job_id: str) -> list[TaskView]:
        """See `BatchService.tasks`."""
        return self._tasks(job_id)

    def _tasks(self, job_id: str, condition: str | None = None) -> list[TaskView]:
        listed = self._found(lambda: list(self._client.list_tasks(job_id, filter=condition, select=_TASK_FIELDS)))
        if listed is None:
            raise JobOver(job_id)
        return [read.task(task) for task in listed]

    def terminate_task(self, job_id: str, task_id: str) -> None:
        """See `BatchService.terminate_task`."""
        self._call(
            lambda: self._client.terminate_task(job_id, task_id), fine={Fault.GONE}, fine_codes={"TaskCompleted"}
        )

    def delete_stuck_task(self, job_id: str, task_id: str) -> None:
        """See `BatchService.delete_stuck_task`."""
        task = self._found(lambda: self._client.get_task(job_id, task_id))
        if task is None or task.state == "completed" or task.etag is None:
            return
        etag = task.etag.strip('"')
        self._call(
            lambda: self._client.delete_task(job_id, task_id, etag=etag, match_condition=MatchConditions.IfNotModified),
            fine={Fault.GONE, Fault.CHANGED},
        )

    # --- pools and nodes

    def pool_counts(self) -> dict[str, PoolCounts]:
        """See `BatchService.pool_counts`."""
        counts = self._call(lambda: list(self._client.list_pool_node_counts()))
        return {one.pool_id: read.counts(one) for one in counts}

    def pools(self) -> dict[str, PoolView]:
        """See `BatchService.pools`."""
        return {pool.id: read.pool(pool) for pool in self._call(lambda: list(self._client.list_pools()))}

    def pool(self, pool_id: str) -> PoolView | None:
        """See `BatchService.pool`."""
        pool = self._found(lambda: self._client.get_pool(pool_id))
        return None if pool is None else read.pool(pool)

    def resize_pool(self, pool_id: str, dedicated_nodes: int, low_priority_nodes: int) -> None:
        """See `BatchService.resize_pool`."""
        targets = {"targetDedicatedNodes": dedicated_nodes, "targetLowPriorityNodes": low_priority_nodes}
        self._act("POST", f"/pools/{pool_id}/resize", targets, fine_codes={"PoolBeingResized"})

    def evaluate_auto_scale_now(self, pool: PoolView) -> None:
        """See `BatchService.evaluate_auto_scale_now`."""
        body: dict[str, Any] = {"autoScaleFormula": pool.auto_scale_formula}
        if pool.auto_scale_every is not None:
            body["autoScaleEvaluationInterval"] = read.iso8601(pool.auto_scale_every)
        self._act("POST", f"/pools/{pool.pool_id}/enableautoscale", body)

    def disable_node(self, pool_id: str, node_id: str) -> None:
        """See `BatchService.disable_node`."""
        body = {"nodeDisableSchedulingOption": "taskcompletion"}
        fine = {"NodeAlreadyInTargetSchedulingState", "NodeNotFound"}
        self._act("POST", f"/pools/{pool_id}/nodes/{node_id}/disablescheduling", body, fine_codes=fine)

    def nodes(self, pool_id: str) -> dict[str, NodeView]:
        """See `BatchService.nodes`."""
        fields = ["id", "state", "lastBootTime", "stateTransitionTime"]
        nodes = self._found(lambda: list(self._client.list_nodes(pool_id, select=fields)))
        return {node.id: read.node(node) for node in nodes or []}

    # --- files on the node

    def read_task_file(self, job_id: str, task_id: str, path: str, offset: int, most_bytes: int) -> bytes | None:
        """See `BatchService.read_task_file`."""
        span = f"bytes={offset}-{offset + most_bytes - 1}"
        return self._from_node(
            lambda: b"".join(self._client.download_task_file(job_id, task_id, path, ocp_range=span)), behind_end=b""
        )

    def task_file_names(self, job_id: str, task_id: str, prefix: str) -> Iterable[str]:
        """See `BatchService.task_file_names`."""
        files = self._from_node(lambda: list(self._client.list_task_files(job_id, task_id, recursive=True)))
        names = (file.name for file in files or [] if not file.is_directory)
        return [name for name in names if name and name.startswith(prefix)]

    # --- one way to call

    def _act(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        fine: frozenset[Fault] | set[Fault] = frozenset(),
        fine_codes: frozenset[str] | set[str] = frozenset(),
    ) -> None:
        """An action that takes Batch a while, without the SDK's poller."""
        headers = {"Content-Type": "application/json; odata=minimalmetadata"} if body is not None else None
        request = HttpRequest(method, f"{path}?api-version={_API_VERSION}", json=body, headers=headers)
        self._call(lambda: self._client.send_request(request).raise_for_status(), fine=fine, fine_codes=fine_codes)

    def _call(
        self,
        call: Callable[[], T],
        *,
        fine: frozenset[Fault] | set[Fault] = frozenset(),
        fine_codes: frozenset[str] | set[str] = frozenset(),
    ) -> T:
        """Call with patience. A fault in `fine` (a code in `fine_codes`) is success without a value."""
        try:
            return patiently(call)
        except AzureError as error:
            status, code = status_and_code(error)
            fault = classify(status, code)
            if fault in fine or code in fine_codes:
                return None  # type: ignore[return-value]  # only passed by callers that use no value
            raise translated(fault, status, code) from None  # the SDK's text may hold request bodies

    def _found(self, call: Callable[[], T], over: frozenset[str] | set[str] = frozenset()) -> T | None:
        """As `_call`, but what is not there is None (a job that is not there is JobOver where `over` says so)."""
        try:
            return patiently(call)
        except AzureError as error:
            status, code = status_and_code(error)
            fault = classify(status, code)
            if fault is Fault.GONE and code not in over:
                return None
            raise translated(fault, status, code) from None

    def _from_node(self, call: Callable[[], T], behind_end: T | None = None) -> T | None:
        """Files are served by the node, which may be gone or busy: any refusal means "not now"; no repetition.

        A range that begins at or behind the file's end is `behind_end`.
        """
        try:
            return call()
        except AzureError as error:
            return behind_end if status_and_code(error)[0] == _RANGE_NOT_SATISFIABLE else None
        except WorkerError:  # of the identity
            return None


_API_VERSION = "2025-06-01"
_RANGE_NOT_SATISFIABLE = 416


def _job_metadata(tenant: str | None, account: str | None) -> list[models.BatchMetadataItem]:
    values = {read.TENANT_METADATA: tenant, read.ACCOUNT_METADATA: account}
    return [models.BatchMetadataItem(name=name, value=value) for name, value in values.items() if value is not None]
