"""What earlier versions have left in storage and in Batch is read by this one, and comes to its end with it.

The files say what a version has really written (see README.md beside them). What a later version may write is survived.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from local.stack.azurite import StorageAccount
from shared.kinds import Entity, Kind
from shared.ledger.blob_ledger import BlobLedger
from shared.ledger.notes import BlobNotes
from shared.ledger.pool_notes import PoolNotes
from shared.ledger.port import LiveSummary
from shared.protocol.record import Done, Record
from shared.requests.own_message import from_bytes, to_text
from shared.storage.blob_container import BlobContainer
from tests.golden.world import MODES, PROJECT, Deployment, shown_status

_FOLDER = Path(__file__).parent
_MOST_TICKS = 400
#: How the entities of a scene end, in the order of their blobs, where it is not that all of them complete.
_ENDS = {
    "ending-cancel": ["Cancelled"],
    "ending-give-up": ["Failed"],
    "running-cancel-flagged": ["Cancelled"],
    "running-imagery": ["Failed"],  # it leaves no results here
    "waiting-for-quota": ["Failed"],
    "finishing-shown": ["Processed", "Processed"],
}


@dataclass(frozen=True)
class Golden:
    """The files of one version in one mode."""

    version: str
    mode: str

    def read(self, name: str) -> Any:
        return json.loads((_FOLDER / self.version / self.mode / name).read_text(encoding="utf-8"))

    def scenes(self) -> dict[str, list[dict[str, Any]]]:
        """File name -> its blobs."""
        folder = _FOLDER / self.version / self.mode / "ledger"
        return {path.stem: self.read(f"ledger/{path.name}")["blobs"] for path in sorted(folder.iterdir())}

    def blobs(self, prefix: str) -> list[dict[str, Any]]:
        """Blobs of the ledger below a prefix."""
        return [blob for blobs in self.scenes().values() for blob in blobs if blob["name"].startswith(prefix)]


GOLDEN = [Golden(path.name, mode) for path in sorted(_FOLDER.glob("*.*.*")) for mode in MODES]


@pytest.fixture(params=GOLDEN, ids=lambda one: f"{one.version}-{one.mode}")
def golden(request: pytest.FixtureRequest) -> Golden:
    found: Golden = request.param
    return found


@pytest.fixture
def deployment(
    golden: Golden, storage_account: StorageAccount, identity_endpoint: object, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """This version of the app, on what the earlier one has left, just after it was stopped."""
    made = Deployment(golden.mode, storage_account, monkeypatch)
    for name, content in golden.read("haste.json").items():
        made.haste.upload_blob(name, json.dumps(made.untold(content)) if content else b"result", overwrite=True)
    store(made, [*golden.blobs(""), golden.read("pools.json"), *golden.read("rejected.json")])
    happened = golden.read("batch-happenings.json")
    made.replay(made.untold(happened["happenings"]), datetime.fromisoformat(happened["until"]))
    made.own_queue.messages += [(made.clock.now(), json.dumps(one)) for one in golden.read("own-queue.json")]
    return made


def store(deployment: Deployment, blobs: list[dict[str, Any]]) -> None:
    for blob in blobs:
        content = json.dumps(deployment.untold(blob["content"]))
        deployment.container.upload_blob(blob["name"], content, metadata=blob["metadata"], overwrite=True)


def ledger(deployment: Deployment) -> BlobLedger:
    return BlobLedger(BlobContainer(deployment.container))


def key(blob: dict[str, Any]) -> str:
    return str(blob["name"]).removeprefix("active/").removesuffix(".json")


def says(found: Any, written: Any) -> bool:
    """Everything that was written is found, with its value; times may be written in another way."""
    if isinstance(written, dict):
        return isinstance(found, dict) and all(name in found and says(found[name], written[name]) for name in written)
    if isinstance(written, list):
        return len(found) == len(written) and all(map(says, found, written))
    return bool(found == written)


def told(shape: Any, value: Any) -> Any:
    return TypeAdapter(shape).dump_python(value, mode="json")


# --- reading --------------------------------------------------------------------------------------------------------


def test_live_records_and_their_lists_say_what_was_written(golden: Golden, deployment: Deployment) -> None:
    read_as_written(golden, deployment)


def read_as_written(golden: Golden, deployment: Deployment) -> None:
    listed = {one.key: one for one in ledger(deployment).live()}
    written = golden.blobs("active/")
    assert listed.keys() == {key(blob) for blob in written}
    for blob in written:
        version = ledger(deployment).read(key(blob))
        assert version is not None
        assert says(told(Record, version.record), blob["content"]), blob["name"]
        assert listed[key(blob)] == LiveSummary.of(version), "the metadata says what the content says"
        assert version.record.entity.key == key(blob)


def test_ends_and_cancels_say_what_was_written(golden: Golden, deployment: Deployment) -> None:
    ends_read_as_written(golden, deployment)


def ends_read_as_written(golden: Golden, deployment: Deployment) -> None:
    seen = 0
    for entity in entities(golden):
        written = [blob["content"] for blob in golden.blobs(f"done/{entity.key}/")]
        found = [told(Done, one) for one in ledger(deployment).done(entity)]
        assert says(found, written), entity
        seen += len(written)
    assert seen == len(golden.blobs("done/"))


def entities(golden: Golden) -> list[Entity]:
    """Every layer and model of HASTE, for each kind of work."""
    names = [name.rpartition("/")[2].removesuffix(".json") for name in golden.read("haste.json")]
    models = [name.removeprefix("model_") for name in names if name.startswith("model_")]
    layers = [name.removeprefix("imagelayer_") for name in names if name.startswith("imagelayer_")]
    return [
        *(Entity(kind, PROJECT, model) for kind in (Kind.TRAINING, Kind.INFERENCE) for model in models),
        *(Entity(Kind.IMAGERYPREP, PROJECT, layer) for layer in layers),
    ]


def test_notes_about_pools_say_what_was_written(golden: Golden, deployment: Deployment) -> None:
    found = BlobNotes(BlobContainer(deployment.container)).read()
    assert says(told(PoolNotes, found), golden.read("pools.json")["content"])


def test_own_messages_say_what_was_written(golden: Golden) -> None:
    messages = golden.read("own-queue.json")
    assert {one["do"] for one in messages} == {"resume", "cancel"}
    for written in messages:
        assert says(json.loads(to_text(from_bytes(json.dumps(written).encode()))), written)


def test_the_batch_account_is_the_one_that_was_left(golden: Golden, deployment: Deployment) -> None:
    """Otherwise the next tests would prove nothing."""
    for found, left in zip(deployment.batch_jobs(), golden.read("batch-jobs.json"), strict=True):
        assert found["tasks"] == left["tasks"]
        for name in ("id", "state", "poolInfo", "metadata", "priority"):
            assert found["job"].get(name) == left["job"].get(name)


# --- going on -------------------------------------------------------------------------------------------------------


def test_everything_that_was_live_comes_to_its_end_and_no_task_runs_twice(
    golden: Golden, deployment: Deployment
) -> None:
    go_on_to_the_end(golden, deployment)


def go_on_to_the_end(golden: Golden, deployment: Deployment) -> None:
    rejected = sum(1 for _ in deployment.container.list_blob_names(name_starts_with="rejected/"))
    for _ in range(_MOST_TICKS):
        deployment.tick()
        live = [one.key for one in ledger(deployment).live()]
        if not live and not deployment.own_queue.messages:
            break
        tasks = live_tasks(deployment)
        assert all(len(of_one) <= 1 for of_one in tasks.values()), tasks
        deployment.batch.advance(15)
        deployment.end_programs()
    assert not live
    created = Counter(event["task"] for event in deployment.batch.events.select("task_created") if is_ours(event))
    started = Counter(event["task"] for event in deployment.batch.events.select("task_started") if is_ours(event))
    assert set(created.values()) == {1}
    lost = Counter(event["task"] for event in deployment.batch.events.select("task_requeued"))
    assert all(runs <= 1 + lost[task] for task, runs in started.items()), started
    assert {name: ends(deployment, blobs) for name, blobs in golden.scenes().items()} == {
        name: expected(name, blobs) for name, blobs in golden.scenes().items()
    }
    assert rejected == sum(1 for _ in deployment.container.list_blob_names(name_starts_with="rejected/"))


def is_ours(event: dict[str, Any]) -> bool:
    return not str(event["job"]).startswith("others-")


def live_tasks(deployment: Deployment) -> dict[str, list[str]]:
    """Of each layer or model, by the names of its files in the tasks' bodies: what Batch has not completed."""
    found: dict[str, list[str]] = {}
    for job in deployment.batch.jobs.values():
        for task in job.tasks.values():
            about = [one["filePath"] for one in task.spec.get("resourceFiles", []) if "_config_" in one["filePath"]]
            if task.state != "completed" and about:
                found.setdefault(f"{task.id[:3]} {about[0]}", []).append(task.id)
    return found


def of_blobs(blobs: list[dict[str, Any]]) -> list[Entity]:
    """The entities of a scene that had a live record."""
    live = [blob["content"]["entity"] for blob in blobs if blob["name"].startswith("active/")]
    return [Entity(Kind(one["kind"]), one["project_id"], one["entity_id"]) for one in live]


def ends(deployment: Deployment, blobs: list[dict[str, Any]]) -> list[str | None]:
    """What HASTE's records say, of each that has an end in the ledger."""
    return [
        shown_status(deployment, entity) if any(not one.is_cancel for one in ledger(deployment).done(entity)) else None
        for entity in of_blobs(blobs)
    ]


def expected(name: str, blobs: list[dict[str, Any]]) -> list[str]:
    return _ENDS.get(name, ["Processed"] * len(of_blobs(blobs)))


# --- what a later version writes ------------------------------------------------------------------------------------


@pytest.fixture
def later(golden: Golden, deployment: Deployment) -> Deployment:
    """The same, with fields and metadata that this version does not know, and a blob that it has no name for."""
    unknown = {"metadata": {"of_a_later_version": "yes"}, "content": {"of_a_later_version": {"it": ["says", 1]}}}
    for blob in golden.blobs(""):
        metadata = blob["metadata"] | unknown["metadata"]
        content = blob["content"] | unknown["content"]
        for part in ("entity", "request", "placement", "outcome", "run"):
            if content.get(part):
                content[part] = content[part] | unknown["content"]
        store(deployment, [{"name": blob["name"], "metadata": metadata, "content": content}])
    notes = golden.read("pools.json")
    store(deployment, [notes | {"content": notes["content"] | unknown["content"]}])
    store(deployment, [{"name": "later/thing.json", **unknown}, *unknown_records(golden)])
    return deployment


def unknown_records(golden: Golden) -> list[dict[str, Any]]:
    """A record in a state, and one of a kind, that a later version has, and one that no version can have written.

    This version cannot work with them.
    """
    (running,) = [blob for blob in golden.scenes()["running"] if blob["name"].startswith("active/")]
    entity = running["content"]["entity"]
    kept = {"job_id": running["metadata"]["job_id"], "task_id": "trn-00000000-0000-5000-8000-000000000000"}
    paused = running["content"] | {"state": "paused", "entity": entity | {"entity_id": "9998"}}
    other_kind = running["content"] | {"entity": entity | {"kind": "later"}}
    other = Entity(Kind.TRAINING, PROJECT, "9998").key
    illegal = running["content"] | {"state": "finishing", "entity": entity | {"entity_id": "9997"}}
    third = Entity(Kind.TRAINING, PROJECT, "9997").key
    return [
        {
            "name": f"active/{other}.json",
            "metadata": running["metadata"] | kept | {"state": "paused"},
            "content": paused,
        },
        {"name": f"active/later/{'0' * 32}.json", "metadata": running["metadata"] | kept, "content": other_kind},
        {"name": f"active/{third}.json", "metadata": kept, "content": illegal},
    ]


def test_what_a_later_version_adds_changes_nothing_that_is_read(golden: Golden, later: Deployment) -> None:
    read_as_written(golden, later)
    ends_read_as_written(golden, later)
    found = BlobNotes(BlobContainer(later.container)).read()
    assert says(told(PoolNotes, found), golden.read("pools.json")["content"])


def test_with_what_a_later_version_adds_everything_comes_to_its_end(golden: Golden, later: Deployment) -> None:
    go_on_to_the_end(golden, later)
    assert later.container.get_blob_client("later/thing.json").exists()
    for blob in unknown_records(golden):
        left = later.container.download_blob(blob["name"])
        assert json.loads(left.readall()) == later.untold(blob["content"])
        assert left.properties.metadata == blob["metadata"]


def test_what_a_later_version_adds_to_own_messages_changes_nothing(golden: Golden) -> None:
    for written in golden.read("own-queue.json"):
        assert from_bytes(json.dumps(written | {"of_a_later_version": 1}).encode()) == from_bytes(
            json.dumps(written).encode()
        )
