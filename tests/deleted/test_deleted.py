"""A model, layer or project that the user deletes ends its task, and nothing is written back.

HASTE's API deletes and sends no word of it. What is asserted is read from HASTE's blobs and from the emulator's books.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from azure.core.rest import HttpRequest, HttpResponse

from bench.deployment import TICK_SECONDS, Deployment
from local.producer import names
from local.producer.records import new_image_layer, new_model
from shared.kinds import Entity, Kind
from shared.triggers import messages
from shared.triggers.messages import QueueMessage
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import pool

MODEL = "4821"
DELETED = ("failed", "HASTE's record was deleted")
LEGACY = {
    "AZURE_BATCH_USE_SAS": "false",
    "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": (
        "/subscriptions/0/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pool"
    ),
}
MODES = pytest.mark.parametrize("settings", [{}, LEGACY], ids=["shared", "legacy"])


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class Stage(Deployment):
    """The app as it is deployed, with HASTE's API before it and the emulated account behind it."""

    def blobs(self) -> dict[str, bytes]:
        """HASTE's container."""
        return {name: blob.content for name, blob in self.storage.containers["data"].items()}

    def ask(self, kind: Kind, queue: str, entity_id: str) -> Entity:
        """The trigger delivers what HASTE's API has put."""
        (text,) = self.storage.take(queue)
        message = QueueMessage(queue, f"message-{kind}", self.clock.now(), text.encode())
        messages.haste_message(self.app.worker, self.app.rejected, kind, message)
        return Entity(kind, self.project_id, entity_id)

    def prepare_layer(self) -> Entity:
        """The imagery of a new layer is being prepared."""
        layer = new_image_layer(self.project_id, name="New", user_id="u", post_event_urls=["https://example.org/a.tif"])
        with self.uncounted():
            self.api.put_layer(layer)
        return self.ask(Kind.IMAGERYPREP, "image-layers-queue", layer["imageLayerId"])

    def infer(self) -> Entity:
        """A trained model predicts."""
        folder, storage = names.partition(self.project_id), self.api.storage
        storage.upload(f"{folder}/trn-1/checkpoint/last.ckpt", b"weights")
        storage.upload(f"{folder}/experiment_config_{MODEL}.yaml", b"{}")
        footprints = storage.signed_url(f"{folder}/img-1/footprints.gpkg")
        storage.save(names.layer_blob(self.project_id, self.layer_id), {"buildingFootprintsUrl": footprints})
        trained = new_model(
            self.project_id, self.layer_id, name="Model", user_id="u", labelproject_id=None, model_id=MODEL
        ) | {"status": "Processed", "checkpointPath": f"{folder}/trn-1/checkpoint"}
        with self.uncounted():
            self.api.put_run_inference(trained, delay_seconds=0)
        return self.ask(Kind.INFERENCE, "inference-queue", MODEL)

    def run_until(self, wanted: Callable[[], object], seconds: int) -> None:
        """Runs of the timer until it is so, for so long at most."""
        for _ in range(seconds // TICK_SECONDS):
            if wanted():
                return
            self.tick()
        assert wanted(), f"not within {seconds} s"

    def is_live(self, entity: Entity) -> bool:
        return self.app.worker.ledger.read(entity.key) is not None

    def terminated(self) -> list[str]:
        """Tasks that were ended by a call of ours."""
        return [event["task"] for event in self.world.events.select("task_completed") if event["code"] == "TaskEnded"]

    def asked_to_end(self) -> int:
        """How often Batch was asked to end a task."""
        return len(self.world.events.select("request", operation="terminate_task"))

    def ends(self, entity: Entity) -> list[tuple[str, str]]:
        """What is left of the entity's requests: how they ended, and why."""
        entries = self.app.worker.ledger.done(entity)
        return [(one.outcome.result.value, one.outcome.sentence) for one in entries if one.outcome is not None]


def stage(nodes: int = 1, settings: dict[str, str] | None = None) -> Stage:
    return Stage([pool("h100", nodes)], settings or {})


def running(staged: Stage, entity: Entity) -> Entity:
    """The timer has seen its task running, and shown it."""
    for _ in range(3):
        staged.tick()
    assert len(staged.runner.running()) == 1
    return entity


# --- running ------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("what", ["model", "layer", "project"])
def test_a_running_training_ends_within_two_minutes(what: str, settings: dict[str, str]) -> None:
    staged = stage(settings=settings)
    entity = running(staged, staged.train())
    ((_job, task),) = staged.runner.running()
    match what:
        case "model":
            staged.api.delete_model(staged.project_id, entity.entity_id)
        case "layer":
            staged.api.delete_layer(staged.project_id, staged.layer_id)
        case _:
            staged.api.delete_project(staged.project_id)
    left = staged.blobs()
    staged.run_until(lambda: staged.terminated() == [task], 120)
    staged.run_until(lambda: not staged.is_live(entity), 120)
    assert staged.blobs() == left, "nothing is written back"
    assert staged.ends(entity) == [DELETED]
    assert staged.world.events.select("task_created")[-1]["task"] == task, "and no other task is made"


@pytest.mark.parametrize("kind", [Kind.IMAGERYPREP, Kind.INFERENCE])
@MODES
def test_so_do_imagery_and_inference(kind: Kind, settings: dict[str, str]) -> None:
    staged = stage(settings=settings)
    entity = running(staged, staged.prepare_layer() if kind is Kind.IMAGERYPREP else staged.infer())
    ((_job, task),) = staged.runner.running()
    staged.api.delete_project(staged.project_id)
    staged.run_until(lambda: staged.terminated() == [task], 120)
    staged.run_until(lambda: not staged.is_live(entity), 120)
    assert staged.blobs() == {}
    assert staged.ends(entity) == [DELETED]


def test_a_project_deleted_as_its_training_succeeds_stays_deleted_and_nothing_follows() -> None:
    staged = stage()
    entity = running(staged, staged.train())
    ((job, task),) = staged.runner.running()
    staged.api.delete_project(staged.project_id)
    staged.runner.finish(job, task, 0)
    staged.world.advance(1)
    staged.run_until(lambda: not staged.is_live(entity), 120)
    assert staged.blobs() == {}
    assert not list(staged.app.worker.ledger.live())


# --- queued -------------------------------------------------------------------------------------------------------


def test_fifty_queued_trainings_end_within_five_minutes_by_five_looks_at_a_time() -> None:
    staged = stage(nodes=0)
    entities = [staged.train() for _ in range(50)]
    for _ in range(40):
        staged.tick()
    staged.api.delete_layer(staged.project_id, staged.layer_id)
    left, reads = staged.blobs(), []
    for _ in range(300 // TICK_SECONDS):
        before = staged.asked_to_end()
        staged.tick()
        reads.append(staged.asked_to_end() - before)
    assert sum(reads) >= 50 and len(staged.terminated()) == 50
    staged.run_until(lambda: not any(map(staged.is_live, entities)), 60)
    assert staged.blobs() == left
    assert {end for entity in entities for end in staged.ends(entity)} == {DELETED}


def test_with_nothing_deleted_five_records_are_read_in_a_run_and_each_no_oftener_than_in_two_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    staged = stage(nodes=0)
    for _ in range(12):
        staged.train()
    for _ in range(10):
        staged.tick()
    asked: list[str] = []
    real = staged.storage.send

    def send(request: HttpRequest, **options: Any) -> HttpResponse:
        asked.append(f"{request.method} {request.url}")
        return real(request, **options)

    monkeypatch.setattr(staged.storage, "send", send)
    reads = []
    for _ in range(16):
        before = len(asked)
        staged.tick()
        reads.append(sum("GET" in one and "/model_" in one for one in asked[before:]))
    assert max(reads) == 5
    assert sum(reads) == 12 * 4, "eight minutes"
    assert not any("PUT" in one and "/model_" in one for one in asked), "there is nothing to write"


def test_the_one_that_is_deleted_among_them_never_starts() -> None:
    staged = stage(nodes=0)
    kept, deleted = staged.train(), staged.train()
    for _ in range(3):
        staged.tick()
    staged.api.delete_model(staged.project_id, deleted.entity_id)
    staged.run_until(lambda: not staged.is_live(deleted), 300)
    assert staged.is_live(kept)
    assert len(staged.terminated()) == 1
