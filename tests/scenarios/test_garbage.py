"""Messages nobody can make sense of, on every queue: kept with their reason, nothing made of them, the host goes on."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
import requests
from azure.core.exceptions import ResourceExistsError

from local.certificates import Certificates
from local.producer import names
from local.stack import running_stack
from local.stack.settings import QUEUES, WORKER_QUEUE
from tests.support.outside import WORKER_QUEUES, BatchAccount, Haste, Layer, wait_for
from tests.support.stacks import options

IMAGE, TRAIN, INFERENCE = (QUEUES[f"{name}_QUEUE_NAME"] for name in ("IMAGE", "TRAIN", "INFERENCE"))
PROJECT = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
LAYER = "2c8e6d10-7a4b-4e39-9d52-6f1a3b8c4d05"
MOST_BYTES = 64 * 1024

#: On every queue. The text, and what the reason that is kept has to name.
ANYWHERE: Mapping[str, tuple[str, str]] = {
    "empty": ("", "JSON"),
    "blank": (" \n", "JSON"),
    "not JSON": ("start the training please", "JSON"),
    "cut off": ('{"projectId": "9f3c2b7e', "JSON"),
    "a list": ("[1, 2, 3]", "object"),
    "a number": ("7", "object"),
    "null": ("null", "object"),
    "deeply nested": ("[" * 20_000 + "]" * 20_000, ""),
    "64 KiB of x": ("x" * MOST_BYTES, "JSON"),
    "64 KiB of JSON": (json.dumps({"projectId": "x" * (MOST_BYTES - 18)}), ""),
    "not ASCII": ("\u00fcber \u4e2d\u6587 \U0001f6f0", "JSON"),
    "nothing in it": ("{}", ""),
    "a number too large": ('{"projectId": 1e999, "attempt": NaN}', ""),
}


def layer(**fields: object) -> str:
    return json.dumps({"projectId": PROJECT, "imageLayerId": LAYER, "status": "Queued", **fields})


def model(**fields: object) -> str:
    return json.dumps({"projectId": PROJECT, "modelId": "4821", "status": "Queued", "modelType": "trained", **fields})


def own(**fields: object) -> str:
    usual = {"do": "resume", "kind": "training", "projectId": PROJECT, "entityId": "4821"}
    return json.dumps({**usual, "requestId": "r", "attempt": 1, **fields})


#: On one queue each: name -> queue, text, what the reason names.
SPECIAL: dict[str, tuple[str, str, str]] = {
    "layer, base64": (IMAGE, base64.b64encode(layer().encode()).decode(), "base64"),
    "model, base64": (TRAIN, base64.b64encode(model().encode()).decode(), "base64"),
    "layer, status a list": (IMAGE, layer(status=["Queued"]), "status"),
    "layer, unknown status": (IMAGE, layer(status="Levitating"), "status"),
    "layer, project is a path": (IMAGE, layer(projectId="../.."), "projectId"),
    "layer, id is a path": (IMAGE, layer(imageLayerId="../../x"), "imageLayerId"),
    "layer, id with control characters": (IMAGE, layer(imageLayerId=f"{LAYER}\n\t\u0000"), "imageLayerId"),
    "layer, no id": (IMAGE, json.dumps({"projectId": PROJECT, "status": "Queued"}), "imageLayerId"),
    "model, status a number": (TRAIN, model(status=7), "status"),
    "model, unknown status": (TRAIN, model(status="queued?"), "status"),
    "model, id is a path": (TRAIN, model(modelId="../4821"), "modelId"),
    "model, id is an object": (TRAIN, model(modelId={"$ne": 1}), "modelId"),
    "model, id with a command": (TRAIN, model(modelId="1;reboot"), "modelId"),
    "model, embedding": (TRAIN, model(modelType="embedding"), "modelType"),
    "model, project is null": (TRAIN, model(projectId=None), "projectId"),
    "inference, unknown status": (INFERENCE, model(status="Processed", inferenceStatus="?"), "inferenceStatus"),
    "inference, project is a path": (INFERENCE, model(inferenceStatus="Queued", projectId="..%2f.."), "projectId"),
    "own, unknown kind": (WORKER_QUEUE, own(kind="mining"), "kind"),
    "own, unknown order": (WORKER_QUEUE, own(do="dance"), "do"),
    "own, attempt a text": (WORKER_QUEUE, own(attempt="1"), "attempt"),
    "own, no request": (WORKER_QUEUE, own(requestId=None), "requestId"),
    "own, project is a path": (WORKER_QUEUE, own(projectId="../.."), "projectId"),
    "own, id is a path": (WORKER_QUEUE, own(entityId="../../x"), "entityId"),
    "own, cancel with a path": (
        WORKER_QUEUE,
        own(do="cancel", cancelId="c", asked="2026-01-01T00:00:00+00:00", projectId="../..", entityId="../x"),
        "projectId",
    ),
    "own, cancel at no time": (WORKER_QUEUE, own(do="cancel", cancelId="c", asked="today"), "asked"),
}

ALL: dict[str, tuple[str, str, str]] = SPECIAL | {
    f"{what} on {queue}": (queue, text, reason) for queue in WORKER_QUEUES for what, (text, reason) in ANYWHERE.items()
}


@dataclass(frozen=True)
class Kept:
    """A message that was kept."""

    body: bytes
    reason: str


class Garbage:
    """All of it sent, and time given for it to be dealt with."""

    def __init__(self, haste: Haste, batch: BatchAccount, health_url: str) -> None:
        self.haste = haste
        self.batch = batch
        self.health_url = health_url
        self.data_before = haste.blob_names()
        self.ids = {name: self._send(queue, text) for name, (queue, text, _reason) in ALL.items()}
        with contextlib.suppress(AssertionError):  # what is left over is the tests' business
            wait_for(haste.is_idle, 30)

    def _send(self, queue: str, text: str) -> str:
        return str(self.haste.queue(queue).send_message(text).id)

    def kept(self, name: str) -> Kept | None:
        """What was kept of a message."""
        blob = f"rejected/{ALL[name][0]}/{self.ids[name]}"
        if blob not in self.haste.blob_names(self.haste.own, blob):
            return None
        stream = self.haste.own.download_blob(blob)
        return Kept(stream.readall(), dict(stream.properties.metadata or {}).get("reason", ""))


@pytest.fixture(scope="module")
def garbage(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garbage]:
    with running_stack(options(tmp_path_factory.mktemp("run"), certificates, lease_seconds=10)) as running:
        stack = running.stack
        yield Garbage(Haste(stack, "tenanta"), BatchAccount(stack), f"{stack.hosts[0].url}/admin/host/status")
        assert stack.hosts[0].service.child.exit_code is None, "the host has ended"


@pytest.mark.parametrize("name", ALL)
def test_it_is_kept_as_it_came_with_the_reason(garbage: Garbage, name: str) -> None:
    _queue, text, reason = ALL[name]
    kept = garbage.kept(name)
    assert kept is not None
    assert kept.body == text.encode()
    assert kept.reason
    assert reason in kept.reason


def test_nothing_is_made_of_it(garbage: Garbage) -> None:
    assert garbage.haste.blob_names() == garbage.data_before
    assert garbage.haste.blob_names(garbage.haste.own, "active/") == set()
    assert garbage.haste.blob_names(garbage.haste.own, "done/") == set()
    assert garbage.batch.world()["jobs"] == []
    assert garbage.batch.events("task_created") == []


def test_nothing_is_left_in_the_queues(garbage: Garbage) -> None:
    assert garbage.haste.is_idle()
    assert garbage.haste.poisoned() == 0


def test_the_host_stays_up_and_works_on(garbage: Garbage) -> None:
    assert requests.get(garbage.health_url, timeout=10).json()["state"] == "Running"
    assert garbage.haste.new_layer().ended() == "Processed"


def test_a_request_that_failed_too_often_is_kept_and_its_record_says_so(garbage: Garbage) -> None:
    haste = garbage.haste
    layer = haste.new_layer()
    assert layer.ended() == "Processed"
    unheard = {**layer.record, "imageLayerId": LAYER, "status": "Queued", "preprocessJob": None}
    haste.api.storage.save(names.layer_blob(layer.project_id, LAYER), unheard)
    tasks = garbage.batch.created()

    ids = {}
    for name, record in (("never taken in", unheard), ("long done", {**layer.record, "status": "Queued"})):
        with contextlib.suppress(ResourceExistsError):
            haste.queue(f"{IMAGE}-poison").create_queue()
        ids[name] = haste.queue(f"{IMAGE}-poison").send_message(json.dumps(record)).id
    assert Layer(haste, layer.project_id, LAYER).ended() == "Failed"
    wait_for(lambda: haste.poisoned() == 0)

    for message in ids.values():
        kept = haste.own.download_blob(f"rejected/{IMAGE}/{message}")
        assert "failed too often" in (kept.properties.metadata or {})["reason"]
    assert layer.status == "Processed"
    assert garbage.batch.created() == tasks
