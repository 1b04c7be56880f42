"""One deployment of the app as it ships, on Azurite and an emulated Batch account, whose life can be written down.

Time is manual, and storage's times follow it, so that nothing here depends on the day. Everything that changes the
Batch account goes into `happenings`; in another world the same happenings make the same account again, nodes and times
included.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.core.rest import HttpRequest, HttpResponse
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueServiceClient

from local.batch import ACCOUNT_KEY, InProcessTransport, ManualClock, ScriptedRunner, World, control
from local.producer import HasteApi, QueueNames, names
from local.stack.azurite import StorageAccount
from local.stack.settings import (
    CONTAINER,
    QUEUES,
    WORKER_CONTAINER,
    BatchAccount,
    batch_settings,
    pool_settings,
    storage_settings,
)
from shared import app as wiring
from shared.batch.client import connect
from shared.haste import experiment_config
from shared.kinds import Entity, Kind
from shared.settings.load import load_settings
from shared.storage import blob_container
from shared.storage.accounts import worker_container
from shared.telemetry import logs
from shared.triggers import messages
from shared.triggers.messages import QueueMessage
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import OwnQueue

MODES = ("shared", "legacy")
TENANT = "tenanta"
PROJECT = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
#: Three days before the story: what the pools' first resize says is old then.
POOLS_MADE_AT = datetime(2026, 11, 26, 22, 0, tzinfo=UTC)
POOLS = {
    "shared": {"h100-pool": 16, "t4-pool": 6, "old-pool": 1},
    "legacy": {"haste-demo-pool": 16},
}
_START_SECONDS = {"old-pool": 900}
#: Stands for the storage account's address in the files.
ACCOUNT = "https://account.example"
_API = {"api-version": "2025-06-01"}
_HEADERS = {"authorization": "Bearer somebody", "content-type": "application/json"}

Happening = dict[str, Any]


class _Noting(InProcessTransport):
    """The worker's way to Batch, which notes what has changed something."""

    def __init__(self, world: World, note: Callable[[str, str, bytes], None]) -> None:
        super().__init__(world)
        self._note = note

    def send(self, request: HttpRequest, **options: Any) -> HttpResponse:
        answer = super().send(request, **options)
        if request.method != "GET" and answer.status_code < 400:
            content = request.content or b""
            path = request.url.partition("batch.local")[2].partition("?")[0]
            self._note(request.method, path, content.encode() if isinstance(content, str) else bytes(content))
        return answer


class Deployment:
    """HASTE, its storage account, the Batch account, and the worker."""

    def __init__(self, mode: str, account: StorageAccount, patch: pytest.MonkeyPatch) -> None:
        PassingWaits.installed(patch)
        self.mode, self.account = mode, account
        self.clock = ManualClock(POOLS_MADE_AT)
        self.runner = ScriptedRunner()
        pools = [
            {
                "id": pool,
                "targetLowPriorityNodes": nodes,
                "start_seconds": _START_SECONDS.get(pool, 0),
                "return_after_seconds": None,
            }
            for pool, nodes in POOLS[mode].items()
        ]
        self.batch = World.from_json({"pools": pools}, self.clock, self.runner)
        self.happenings: list[Happening] = []
        self.own_queue = OwnQueue(self.clock.now)
        self.blobs = BlobServiceClient.from_connection_string(account.connection_string)
        self.queues = QueueServiceClient.from_connection_string(account.connection_string)
        queue_names = QueueNames.from_environment(QUEUES)
        self.api = HasteApi(self.blobs, self.queues, container=CONTAINER, queue_names=queue_names)
        self.app = self._built(patch)
        self._own_messages = 0

    def _built(self, patch: pytest.MonkeyPatch) -> wiring.App:
        account = BatchAccount("localbatch", ACCOUNT_KEY, "https://batch.local")
        settings = storage_settings(self.account) | batch_settings(self.account, account, legacy=self.mode == "legacy")
        if self.mode == "shared":
            every = ",".join(POOLS["shared"])
            settings |= pool_settings(every, every) | {"AZURE_BATCH_ACCOUNT_KEY": ACCOUNT_KEY}
        settings |= {"TITILER_ENDPOINT": "https://localhost/api/titiler/", "WORKER_TENANT": TENANT}
        transport = _Noting(self.batch, self._note_request)
        patch.setattr(wiring, "connect", lambda *told, **options: connect(*told, **options, transport=transport))
        patch.setattr(logs, "configure", lambda: None)
        # storage's times, and the dates of its answers, are not Azurite's but the story's
        clock, real = self.clock, blob_container.Version
        patch.setattr(blob_container, "Version", lambda etag, _at: real(etag, clock.now().replace(microsecond=0)))
        patch.setattr("shared.storage.accounts.worker_container", lambda told, **_hook: worker_container(told))
        built = wiring.build(load_settings(settings), self.clock.now)
        built.worker = dataclasses.replace(built.worker, own_queue=self.own_queue)
        return built

    @property
    def haste(self) -> ContainerClient:
        """HASTE's container."""
        return self.blobs.get_container_client(CONTAINER)

    @property
    def container(self) -> ContainerClient:
        """The worker's."""
        return self.blobs.get_container_client(WORKER_CONTAINER)

    # --- time, timer and messages

    def tick(self, after_seconds: float = 30, *, delivers: bool = True) -> None:
        """Time passes, the timer runs, and the worker's own messages that are due are delivered."""
        self.batch.advance(after_seconds)
        self.app.tick()
        if delivers:
            self.deliver_own()

    def deliver(self, kind: Kind) -> QueueMessage:
        """The message that HASTE's API has put into the kind's queue reaches the worker, by id, now."""
        queue = self.queues.get_queue_client(self.app.settings.of(kind).queue_name)
        found = queue.receive_message()
        assert found is not None
        queue.delete_message(found)
        message = QueueMessage(queue.queue_name, found.id, self.clock.now(), found.content.encode())
        messages.haste_message(self.app.worker, self.app.rejected, kind, message)
        return message

    def deliver_own(self) -> None:
        """What is due on the worker's own queue, once each."""
        due = [one for one in self.own_queue.messages if one[0] <= self.clock.now()]
        self.own_queue.messages = [one for one in self.own_queue.messages if one[0] > self.clock.now()]
        for _at, text in due:
            self._own_messages += 1
            message = QueueMessage("own", f"own-{self._own_messages}", self.clock.now(), text.encode())
            messages.own_message(self.app.worker, self.app.rejected, message)

    # --- what happens to the Batch account

    def happen(self, do: str, **facts: Any) -> None:
        """A program ends (`finish`), a node is taken or comes again (`preempt`, `return`), somebody calls (`call`)."""
        self._note(do, **facts)
        self._do(do, facts)

    def replay(self, happenings: list[Happening], until: datetime) -> None:
        """Everything that has happened to another account happens to this one, at the same times."""
        for one in happenings:
            facts = dict(one)
            self._advance_to(datetime.fromisoformat(facts.pop("at")))
            self._do(facts.pop("do"), facts)
        self._advance_to(until)

    def _advance_to(self, at: datetime) -> None:
        self.batch.advance((at - self.clock.now()).total_seconds())

    def _do(self, do: str, facts: Happening) -> None:
        if do == "finish":
            self.runner.finish(facts["job"], facts["task"], facts["exit_code"])
        elif do == "preempt":
            control.preempt_node(self.batch, facts["pool"], facts["node"], return_after_seconds=None)
        elif do == "return":
            control.bring_back(self.batch, facts["pool"], facts["node"])
        else:
            content = json.dumps(facts["body"]).encode() if facts.get("body") else b""
            rules, self.batch.faults.rules = self.batch.faults.rules, []
            answer = self.batch.handle(facts["method"], facts["path"], _API, _HEADERS, content)
            self.batch.faults.rules = rules
            assert answer.status < 400, answer.body
        self.batch.tick()

    def _note(self, do: str, **facts: Any) -> None:
        self.happenings.append({"at": self.clock.now().isoformat(), "do": do, **facts})

    def _note_request(self, method: str, path: str, content: bytes) -> None:
        self._note("call", method=method, path=path, body=json.loads(content) if content else None)

    def get(self, path: str) -> Any:
        """What Batch shows of something."""
        return json.loads(self.batch.handle("GET", path, _API, _HEADERS).body)

    def batch_jobs(self) -> list[dict[str, Any]]:
        """Every Batch job as `GET /jobs/{id}` shows it, and in short what its tasks do."""
        return [
            {"job": self.get(f"/jobs/{job}"), "tasks": [self._told_task(job, task) for task in held.tasks]}
            for job, held in self.batch.jobs.items()
        ]

    def _told_task(self, job: str, task: str) -> dict[str, Any]:
        shown = self.get(f"/jobs/{job}/tasks/{task}")
        ran = {name: shown["executionInfo"].get(name) for name in ("startTime", "endTime", "exitCode")}
        return {"id": task, "state": shown["state"], "nodeId": shown.get("nodeInfo", {}).get("nodeId"), **ran}

    def end_programs(self, exit_code: int = 0) -> None:
        """Every program that runs ends, and leaves what HASTE's containers leave."""
        for job, task in self.runner.running():
            spent = self.batch.jobs[job].tasks[task].spec["commandLine"] == "/bin/false"
            if not spent and not exit_code:
                self.leave_results(task)
            self.happen("finish", job=job, task=task, exit_code=1 if spent else exit_code)

    def leave_results(self, task: str) -> None:
        """What a training or an inference uploads; imagery preparation leaves nothing."""
        folder = f"{names.partition(PROJECT)}/{task}"
        gpkg = experiment_config.gpkg_prefix("Model")
        left = {"trn": ["checkpoint/last.ckpt"], "inf": ["mosaic_visualizer.tif", f"{gpkg}.gpkg"]}
        for name in left.get(task[:3], []):
            self.haste.upload_blob(f"{folder}/{name}", b"result", overwrite=True)

    # --- texts without this account

    def told(self, value: Any) -> Any:
        """A JSON value for a file: the account's address is replaced, and nothing signed is in it."""
        text = json.dumps(value).replace(self.account.blob_endpoint, ACCOUNT)
        return json.loads(re.sub(rf'({re.escape(ACCOUNT)}[^"?\\]*)\?[^"\\]*', r"\1", text))

    def untold(self, value: Any) -> Any:
        """The reverse, with this account's address."""
        return json.loads(json.dumps(value).replace(ACCOUNT, self.account.blob_endpoint))


def shown_status(deployment: Deployment, entity: Entity) -> str | None:
    """What HASTE's record says of this kind of work."""
    if entity.kind is Kind.IMAGERYPREP:
        return str(deployment.api.layer(entity.project_id, entity.entity_id)["status"])
    model = deployment.api.model(entity.project_id, entity.entity_id)
    return str(model["inferenceStatus" if entity.kind is Kind.INFERENCE else "status"])
