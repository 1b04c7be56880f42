"""A blob in the ledger that this version cannot read: its job stands still and is told, and all others go on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from bench.deployment import Deployment
from bench.storage_service import Blob
from shared.housekeeping import sweep
from shared.kinds import Entity, Kind
from shared.pools.readings import Readings
from shared.storage.queues import TakenMessage
from shared.triggers import messages
from shared.triggers.messages import QueueMessage
from shared.triggers.poison import empty
from tests.support.batch_calls import body
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import pool
from tests.support.values import at
from tests.sweeping.test_sweep import ORPHAN
from tests.timer.test_runs import shown

Harm = Callable[[Blob], Blob]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def metadata(**changes: str | None) -> Harm:
    """The blob with other metadata; None takes a field away."""

    def harm(blob: Blob) -> Blob:
        changed = {name: value for name, value in (blob.metadata | changes).items() if value is not None}
        return dataclasses.replace(blob, metadata=changed)

    return harm


def content(**changes: Any) -> Harm:
    """The blob with other fields in its record, and the same metadata."""
    return lambda blob: dataclasses.replace(blob, content=json.dumps(json.loads(blob.content) | changes).encode())


UNREADABLE: dict[str, Harm] = {
    "a newer version's state": metadata(state="parked"),
    "no next look": metadata(not_before=None),
    "no time of asking": metadata(asked=None),
    "no job class": metadata(job_class=None),
    "another job class": metadata(job_class="gpu"),
    "a next look without a time zone": metadata(not_before="2026-01-05T12:00:00"),
    "a time of asking without a time zone": metadata(asked="2026-01-05T12:00:00"),
    "a next look that is no time": metadata(not_before="soon"),
    "a newer version's content": content(state="parked"),
    "content of another job": content(entity={"kind": "training", "project_id": "p", "entity_id": "1"}),
    "content without a placement": content(placement=None),
    "content that waits with a placement": content(state="waiting"),
    "content that ends for no reason": content(state="ending"),
    "content that ends for a newer version's reason": content(state="ending", end_reason="pause"),
    "content with a reason to end that does not end": content(end_reason="move"),
    "content that finishes without an outcome": content(state="finishing"),
    "content with an outcome that does not finish": content(
        outcome={"result": "completed", "sentence": "done", "at": "2026-01-05T12:00:00Z"}
    ),
    "content that finishes since then and is placed": content(finishing_since="2026-01-05T12:00:00Z"),
    "content of attempt 0": content(attempt=0),
    "content of an attempt without those before": content(attempt=2_000_000_000),
    "content that has waited less than never": content(waits=-1),
    "content with a time without a time zone": content(not_before="2026-01-05T12:00:00"),
    "content without its request": content(request=None),
    "no JSON": lambda blob: dataclasses.replace(blob, content=b"not JSON"),
    "neither metadata nor content": lambda blob: dataclasses.replace(blob, content=b"{}", metadata={}),
}


@dataclasses.dataclass
class Scene:
    """Two trainings run; the record of the first has become something that this version cannot read."""

    deployment: Deployment
    broken: Entity
    other: Entity

    @property
    def ledger(self) -> dict[str, Blob]:
        found: dict[str, Blob] = self.deployment.storage.containers["haste-worker"]
        return found

    def harm(self, harm: Harm) -> None:
        name = f"active/{self.broken.key}.json"
        self.ledger[name] = dataclasses.replace(harm(self.ledger[name]), etag='"by somebody"')

    def ticks(self, number: int = 1) -> list[dict[str, Any]]:
        """Runs of the timer, of which none may fail. What was logged as an error."""
        with capture_logs() as logs:
            for _ in range(number):
                self.deployment.tick()
        return [dict(line) for line in logs if line["log_level"] == "error"]

    def live_tasks(self) -> set[str]:
        jobs = self.deployment.world.jobs.values()
        return {task.id for job in jobs for task in job.tasks.values() if task.state != "completed"}


@pytest.fixture
def scene() -> Scene:
    deployment = Deployment([pool("h100", 4)])
    broken, other = deployment.train(), deployment.train()
    deployment.tick()
    return Scene(deployment, broken, other)


@pytest.mark.parametrize("harm", UNREADABLE.values(), ids=UNREADABLE)
def test_all_others_go_on(scene: Scene, harm: Harm) -> None:
    scene.harm(harm)
    before = scene.ledger[f"active/{scene.broken.key}.json"]
    for job, task in scene.deployment.runner.running():
        scene.deployment.runner.finish(job, task, 1)
    third = scene.deployment.train()
    told = scene.ticks(4)
    assert shown(scene.deployment, scene.other)["status"] == "Failed"
    assert shown(scene.deployment, third)["status"] == "InProgress"
    assert shown(scene.deployment, scene.broken)["status"] == "InProgress"
    assert scene.ledger[f"active/{scene.broken.key}.json"] == before
    assert {(line["event"], line["record"]) for line in told} == {("record not looked at", scene.broken.key)}
    assert f"active/{scene.broken.key}.json cannot be read" in told[0]["error"]


def test_it_is_told_now_and_then(scene: Scene) -> None:
    scene.harm(metadata(state="parked"))
    assert len(scene.ticks(10)) == 1
    assert len(scene.ticks(20)) == 1


@pytest.mark.parametrize("name", ["embedding/" + "0" * 32 + ".json", "training/by-hand.json", "training/x", "x"])
def test_a_name_that_this_version_does_not_know(scene: Scene, name: str) -> None:
    """Such as a kind of work of a newer version that was rolled back."""
    whole = scene.ledger[f"active/{scene.broken.key}.json"]
    scene.ledger[f"active/{name}"] = whole
    for job, task in scene.deployment.runner.running():
        scene.deployment.runner.finish(job, task, 1)
    told = scene.ticks(2)
    assert [line["record"] for line in told] == [name.removesuffix(".json")]
    assert f"active/{name}" in told[0]["error"]
    assert {shown(scene.deployment, one)["status"] for one in (scene.broken, scene.other)} == {"Failed"}


def test_a_folder_is_no_record(scene: Scene) -> None:
    """Accounts with directories list them beside what is in them."""
    scene.ledger["active/training"] = Blob(b"", '"0"', at(0), {"hdi_isfolder": "true"})
    assert scene.ticks() == []


def test_fields_of_a_later_version_are_passed_over(scene: Scene) -> None:
    scene.harm(content(colour="blue"))
    scene.harm(metadata(colour="blue"))
    for job, task in scene.deployment.runner.running():
        scene.deployment.runner.finish(job, task, 1)
    assert scene.ticks() == []
    assert shown(scene.deployment, scene.broken)["status"] == "Failed"


def test_an_end_that_cannot_be_read_stops_its_own_job_only(scene: Scene) -> None:
    scene.ledger[f"done/{scene.broken.key}/old.json"] = Blob(b'{"entry_id": 1}', '"0"', at(0), {})
    for job, task in scene.deployment.runner.running():
        scene.deployment.runner.finish(job, task, 1)
    told = scene.ticks(2)
    assert shown(scene.deployment, scene.other)["status"] == "Failed"
    assert {line["event"] for line in told} == {"waits for an operator"}
    assert f"done/{scene.broken.key}/old.json cannot be read" in told[0]["error"]
    del scene.ledger[f"done/{scene.broken.key}/old.json"]
    scene.ticks(4)
    assert shown(scene.deployment, scene.broken)["status"] == "Failed"


# --- its task ---------------------------------------------------------------------------------------------------


def swept(scene: Scene) -> list[str]:
    """What the sweep finds after an hour, in every job of the tenant."""
    deployment = scene.deployment
    jobs = list(deployment.world.jobs)
    deployment.app.worker.batch.create_task(jobs[0], body(ORPHAN))
    deployment.world.advance(3600)
    worker = deployment.app.worker
    found = sweep.sweep(worker, Readings(worker, by_list=True), jobs, may_end=True)
    deployment.world.advance(10)
    return found


def task_of(scene: Scene) -> str:
    task = scene.ledger[f"active/{scene.broken.key}.json"].metadata["task_id"]
    return str(task)


@pytest.mark.parametrize("harm", UNREADABLE.values(), ids=UNREADABLE)
def test_its_task_is_never_taken_for_an_orphan(scene: Scene, harm: Harm) -> None:
    task = task_of(scene)
    scene.harm(harm)
    found = swept(scene)
    assert task in scene.live_tasks()
    is_named = "task_id" in scene.ledger[f"active/{scene.broken.key}.json"].metadata
    assert (ORPHAN in scene.live_tasks()) is not is_named, "others are, unless it does not tell its own"
    assert not is_named or found == [ORPHAN]


@pytest.mark.parametrize("harm", [metadata(state="parked", task_id=None), metadata(state="parked", job_id=None)])
def test_while_it_does_not_name_its_task_no_orphan_is_ended(scene: Scene, harm: Harm) -> None:
    task = task_of(scene)
    scene.harm(harm)
    assert ORPHAN in swept(scene)
    assert {ORPHAN, task} <= scene.live_tasks()


@pytest.mark.parametrize(("job_id", "is_kept"), [("its own", True), (None, True), ("another", False)])
def test_its_batch_job_is_kept(scene: Scene, job_id: str | None, is_kept: bool) -> None:
    """With the job, the id of its task would be free again."""
    own = scene.ledger[f"active/{scene.broken.key}.json"].metadata["job_id"]
    scene.harm(metadata(state="parked", job_id=own if job_id == "its own" else job_id))
    for job_of_task, task in scene.deployment.runner.running():
        scene.deployment.runner.finish(job_of_task, task, 1)
    scene.ticks(4)
    scene.deployment.world.advance(9 * 24 * 3600)
    for _ in range(3):
        scene.deployment.tick(24 * 3600)
    active = [job.id for job in scene.deployment.world.jobs.values() if job.state == "active"]
    assert (own in active) is is_kept


# --- messages ---------------------------------------------------------------------------------------------------


class Poisoned:
    """One message in the poison queue of the trainings."""

    def __init__(self, message: TakenMessage) -> None:
        self.messages = [message]

    def take(self, queue: str, _most: int) -> list[TakenMessage]:
        return list(self.messages) if queue == "train-queue-poison" else []

    def delete(self, message: TakenMessage) -> None:
        self.messages.remove(message)


def ask_again(scene: Scene, status: str = "Queued") -> str:
    """HASTE's API asks for another run of the job that stands still. The message's text."""
    model = shown(scene.deployment, scene.broken) | {"status": status}
    name = next(one for one in scene.deployment.storage.containers["data"] if f"model_{scene.broken.entity_id}" in one)
    blobs = scene.deployment.storage.containers["data"]
    blobs[name] = dataclasses.replace(blobs[name], content=json.dumps(model).encode(), etag='"again"')
    return json.dumps(model)


@pytest.mark.parametrize("status", ["Queued", "Cancelled"])
@pytest.mark.parametrize("where", ["active", "done"])
def test_a_message_for_it_is_kept_and_said_in_haste_s_record(scene: Scene, status: str, where: str) -> None:
    if where == "active":
        scene.harm(metadata(state="parked"))
        scene.harm(content(state="parked"))
    else:
        scene.ledger[f"done/{scene.broken.key}/old.json"] = Blob(b"{}", '"0"', at(0), {})
    text = ask_again(scene, status)
    app, now = scene.deployment.app, scene.deployment.clock.now()
    message = QueueMessage("train-queue", "again", now, text.encode())
    if where == "active" or status == "Queued":
        with pytest.raises(Exception, match=f"{where}/{scene.broken.key}.* cannot be read"):
            messages.haste_message(app.worker, app.rejected, Kind.TRAINING, message)
    queues: Any = Poisoned(TakenMessage("train-queue-poison", "again", text, now, "receipt"))
    empty(app.worker, app.rejected, queues, app.timer.queue_names)
    assert queues.messages == []
    kept = scene.ledger["rejected/train-queue/again"]
    assert kept.content.decode() == text
    if where == "active" or status == "Queued":
        assert f"{where}/{scene.broken.key}" in kept.metadata["reason"]
    after = shown(scene.deployment, scene.broken)
    assert after["status"] == ("Failed" if status == "Queued" else "Cancelled")
    if status == "Queued":
        assert "an operator has to look at an earlier run" in after["statusMessage"]


# --- jobs beside it ---------------------------------------------------------------------------------------------


def test_a_job_that_failed_on_the_same_node_is_judged_without_it() -> None:
    deployment = Deployment([pool("h100", 1, taskSlotsPerNode=4)])
    scene = Scene(deployment, deployment.train(), deployment.train())
    scene.harm(content(state="parked"))
    for job, task in deployment.runner.running():
        deployment.runner.finish(job, task, 126)
    deployment.world.advance(1)
    scene.ticks(5)
    assert shown(deployment, scene.other)["status"] == "Failed"


def following(scene: Scene) -> tuple[str, Entity]:
    """The first training has ended, an inference is to follow, and an end of an earlier inference is none."""
    inference = Entity(Kind.INFERENCE, scene.broken.project_id, scene.broken.entity_id)
    name = f"done/{inference.key}/old.json"
    scene.ledger[name] = Blob(b"{}", '"0"', at(0), {})
    blobs = scene.deployment.storage.containers["data"]
    record = next(one for one in blobs if f"model_{scene.broken.entity_id}" in one)
    model = shown(scene.deployment, scene.broken) | {"autoRunInference": True}
    blobs[record] = dataclasses.replace(blobs[record], content=json.dumps(model).encode(), etag='"by somebody"')
    for job, task in scene.deployment.runner.running():
        blobs[f"{record.partition('/')[0]}/{task}/checkpoint/last.ckpt"] = Blob(b"x", '"0"', at(0), {})
        scene.deployment.runner.finish(job, task, 0)
    return name, inference


def test_what_follows_waits_until_it_can(scene: Scene) -> None:
    name, inference = following(scene)
    told = scene.ticks(5)
    assert {line["event"] for line in told} == {"waits for an operator"} and name in told[0]["error"]
    assert shown(scene.deployment, scene.broken)["status"] == "Processed"
    assert scene.broken.key in [one.key for one in scene.deployment.app.worker.ledger.live()]
    assert [one for one in scene.ledger if inference.key in one] == [name]
    del scene.ledger[name]
    scene.ticks(2)
    assert [one for one in scene.ledger if inference.key in one], "live, or at its end"
    assert scene.broken.key not in [one.key for one in scene.deployment.app.worker.ledger.live()]


def test_a_newer_request_does_not_wait_for_what_cannot_follow(scene: Scene) -> None:
    following(scene)
    text = ask_again(scene)
    app = scene.deployment.app
    message = QueueMessage("train-queue", "again", scene.deployment.clock.now(), text.encode())
    messages.haste_message(app.worker, app.rejected, Kind.TRAINING, message)
    scene.ticks(6)
    assert shown(scene.deployment, scene.broken)["status"] == "InProgress"
    version = app.worker.ledger.read(scene.broken.key)
    assert version is not None and version.record.request.request_id == "again"
