"""What the emulator's tests share: the real SDK's client on a world in this process."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from azure.batch import BatchClient, models
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest, HttpResponse

from local.batch import ACCOUNT_KEY, InProcessTransport, ScriptedRunner, World

ENDPOINT = "https://localbatch.batch.local"
POOL = "pool"
VERSION = {"api-version": "2025-06-01"}
BEARER = {"authorization": "Bearer token"}
INSTANT: dict[str, float] = {
    "job_action_seconds": 0,
    "job_delete_seconds": 0,
    "pool_delete_seconds": 0,
    "resize_seconds": 0,
    "node_start_seconds": 0,
}


def make_world(nodes: int = 1, slots: int = 1, runner: ScriptedRunner | None = None, **keys: Any) -> World:
    """A world with one pool of low-priority nodes that are idle already; `keys` are further keys of the world file."""
    pool = {"id": POOL, "targetLowPriorityNodes": nodes, "taskSlotsPerNode": slots, "start_seconds": 0}
    return World.from_json({"pools": [pool], **keys}, runner=runner)


def make_client(world: World, key: str = ACCOUNT_KEY) -> BatchClient:
    """The real client without retries, signing with the account's key."""
    credential = AzureNamedKeyCredential(world.config.account.name, key)
    return BatchClient(ENDPOINT, credential, transport=InProcessTransport(world), retry_total=0)


def runner_of(world: World) -> ScriptedRunner:
    assert isinstance(world.runner, ScriptedRunner)
    return world.runner


def make_job(client: BatchClient, job_id: str = "job", **options: Any) -> None:
    pool_info = models.BatchPoolInfo(pool_id=options.pop("pool_id", POOL))
    client.create_job(models.BatchJobCreateOptions(id=job_id, pool_info=pool_info, **options))


def make_task(client: BatchClient, task_id: str = "task", job_id: str = "job", **options: Any) -> None:
    client.create_task(job_id, models.BatchTaskCreateOptions(id=task_id, command_line="program", **options))


def act(client: BatchClient, path: str, body: Mapping[str, Any] | None = None, method: str = "POST") -> HttpResponse:
    """A request outside of the typed methods, as the application sends its actions; raises like the SDK."""
    request = HttpRequest(method, path, params=VERSION, json=body)
    response = client.send_request(request)
    response.raise_for_status()
    return response


def refusal(error: HttpResponseError) -> tuple[int | None, str | None]:
    """HTTP status and Batch code of a refused request."""
    return error.status_code, error.error.code if error.error else None


def states(client: BatchClient, job_id: str = "job") -> dict[str, str]:
    """The state of every task of a job."""
    return {task.id: word(task.state) for task in client.list_tasks(job_id)}


def word(value: Any) -> str:
    """The wire form of an enum value of the SDK, which leaves words that it does not know as they are."""
    return str(getattr(value, "value", value))


def sas_like(url: str) -> str:
    """A URL that carries what looks like a signature."""
    return f"{url}?sv=2025-01-05&sp=r&sig={base64.b64encode(b'a signature').decode()}"
