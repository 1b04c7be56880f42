"""Makes golden files by running the worker: `GOLDEN_FOLDER=<folder> python -m pytest tests/golden/capture.py`.

Not run with the other tests. Each scene is one image layer or model, brought into its state by HASTE's messages, the
timer, and hosts and services that fail on the way; then everything stands still and is written down.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from local.producer import names
from local.stack.azurite import StorageAccount
from local.stack.settings import QUEUES
from shared.errors import Transient
from shared.kinds import Entity, Kind
from shared.ledger.port import Versioned
from shared.requests import finish
from shared.triggers import messages
from shared.worker import Worker
from tests.golden.story import Story
from tests.golden.world import MODES, POOLS, PROJECT, TENANT, Deployment


def tell_ended(story: Story) -> None:
    """Before midnight: requests that have ended, what follows them, and what runs on for long."""
    completed, failed, cancelled, again = (story.train() for _ in range(4))
    story.run(60)
    story.finish(completed)
    story.finish(failed, exit_code=1)
    story.cancel(cancelled)
    story.train(again.entity_id)
    story.run(240)
    story.scene("ended-completed", "A training that has completed.", completed)
    story.scene("ended-failed", "A training that has failed.", failed)
    story.scene("ended-cancelled", "A training that was cancelled while it ran, and the cancel.", cancelled)
    story.scene("running-after-superseded", "The first request was superseded; the second one runs.", again)
    never = story.train()
    story.run(60)
    story.finish(never)
    story.run(180)
    model = story.at.api.model(PROJECT, never.entity_id)
    story.at.api.storage.save(names.model_blob(PROJECT, never.entity_id), model | {"status": "Queued"})
    story.cancel(never)
    story.run(120)
    story.scene("cancel-without-request", "A cancel that found no live record.", never)
    if story.at.mode == "shared":
        inference = story.infer(completed)
        story.run(60)
        story.at.happen("call", method="DELETE", path=f"/jobs/{story.place(inference)[0]}")
        story.run(120)
        story.scene("running-after-job-deleted", "Its Batch job was deleted; attempt 2 runs in a successor.", inference)
    followed = story.train(infers=True)
    story.run(60)
    story.finish(followed)
    story.run(120)
    follow_up = Entity(Kind.INFERENCE, PROJECT, followed.entity_id)
    story.scene("running-follow-up", "An inference that follows a training, which has completed.", followed, follow_up)


def tell_running(story: Story, pool: str) -> None:
    """Before midnight: what runs since last week."""
    story.scene("running-adopted", "A task of HASTE's own app, taken over.", story.adopted(pool))
    story.scene("running", "A training that the timer has seen running.", story.train())
    story.scene("running-imagery", "An imagery preparation that runs.", story.prepare())
    trained = story.train()
    story.run(60)
    story.finish(trained)
    story.run(120)
    story.at.api.put_run_inference(story.at.api.model(PROJECT, trained.entity_id), delay_seconds=0)
    story.train(trained.entity_id)
    story.at.deliver(Kind.INFERENCE)
    inference = Entity(Kind.INFERENCE, PROJECT, trained.entity_id)
    story.scene("waiting-aside", "An inference that waits while its model is trained again.", inference, trained)
    if story.at.mode == "shared":
        moved = story.train()
        story.run(60)
        story.fill("h100-pool")
        story.preempt(moved)
        story.run(120)
        story.end_others()
        story.scene("running-after-loss", "A training that has lost its node; attempt 2 runs on another pool.", moved)


def tell_failures(story: Story) -> None:
    """Tasks that fail at once."""
    failing = []
    for _ in range(2):
        failing.append(story.train())
        story.at.tick(5)
        story.finish(failing[-1], exit_code=126)
    story.run(180)
    story.scene("ended-quick-failures", "Trainings that failed within seconds.", *failing)


def tell_pools(story: Story) -> None:
    """Over midnight: a pool whose nodes come and go before they are of use."""
    (node,) = story.at.batch.pools["old-pool"].nodes
    for _ in range(4):
        story.at.happen("preempt", pool="old-pool", node=node)
        story.run(330)
        story.at.happen("return", pool="old-pool", node=node)
        story.run(330)
    story.at.happen("preempt", pool="old-pool", node=node)


def tell_last_minute(story: Story, patch: pytest.MonkeyPatch) -> None:
    """Everything that passes by within a minute."""
    at, shared = story.at, story.at.mode == "shared"
    cancelled, replaced, waits, flagged, followed, ended = (story.train() for _ in range(6))
    lost = story.train() if shared else None
    if shared:
        quota = {"operation": "create_job", "code": "ActiveJobAndScheduleQuotaReached", "status": 409}
        jobs = [f"{TENANT}-interactive-{pool}-2026w49" for pool in POOLS["shared"]]
        for job in jobs:
            at.batch.faults.add({**quota, "job": job})
        layer = story.prepare()
        story.scene("waiting-for-quota", "An imagery preparation that has been refused a Batch job twice.", layer)
    story.run(90)
    gives_up = {"operation": "create_task", "status": 400, "code": "InvalidPropertyValue", "times": 1}
    refused = {"operation": "create_task", "status": 503, "code": "ServerBusy"}
    finished = story.train(infers=True)
    with story.fault(gives_up, refused):
        story.scene("ending-give-up", "Batch refused its task for good; its id is not spent yet.", story.train())
    with story.fault(refused):
        story.scene("placed-without-task", "Its placement is stored, its task was not added.", story.train())
        at.own_queue.messages.clear()
    patch.setattr(finish, "finish", _dies_at(ended, finish.finish))
    with story.fault({"operation": "terminate_task", "status": 503, "code": "ServerBusy"}, refused):
        story.cancel(cancelled)
        story.train(replaced.entity_id)
        at.batch.advance(11)
        story.finish(finished)
        story.finish(ended)
        if lost is not None:
            story.fill("h100-pool")
            story.preempt(lost)
        at.tick(1, delivers=False)
        at.batch.faults.rules.pop()  # tasks can be added again
        story.fill(*POOLS[at.mode])
        queued = story.train()
        story.preempt(waits)
        at.tick(10, delivers=False)
    story.scene("ending-cancel", "Cancelled; its task is not terminated yet.", cancelled)
    story.scene("ending-next", "A newer request waits in `next`; the task is not terminated yet.", replaced)
    if lost is not None:
        story.scene("ending-move", "It lost its node and goes to another pool; its task is not ended yet.", lost)
    story.scene("queued", "In Batch's queue: no node is free.", queued)
    story.scene("queued-after-loss", "It lost its node; Batch will run it again, as no other pool is free.", waits)
    story.scene("finishing", "Its outcome is stored; HASTE's record was not written yet.", ended)
    followed_by = Entity(Kind.INFERENCE, PROJECT, finished.entity_id)
    about = "The end was shown, a late save is waited for; the inference that follows waits."
    story.scene("finishing-shown", about, finished, followed_by)
    # no timer from here on
    with pytest.MonkeyPatch.context() as dies:
        dies.setattr(messages, "_advance", lambda *_: None)
        story.scene("waiting", "Its handler's host died when the record was written.", story.train())
    story.cancel(flagged)
    story.scene("running-cancel-flagged", "Cancelled; the timer has not looked at it yet.", flagged)
    story.train(followed.entity_id)
    story.scene("running-with-next", "Asked for again; the timer has not looked at it yet.", followed)
    cancel = at.api.model(PROJECT, finished.entity_id) | {"status": "Cancelled"}
    at.api.storage.put_message(QUEUES["TRAIN_QUEUE_NAME"], cancel, delay_seconds=0)
    at.deliver(Kind.TRAINING)  # it meets a record that finishes: looked at again later


def _dies_at(entity: Entity, real: Any) -> Any:
    def finish(worker: Worker, version: Versioned) -> Versioned | None:
        if version.record.entity == entity:
            raise Transient("the host died")
        return real(worker, version)  # type: ignore[no-any-return]

    return finish


def reject(story: Story) -> None:
    """Messages that can never be accepted, one of them from a poison queue."""
    api = story.at.api
    about_embedding = {"projectId": PROJECT, "modelId": "77", "modelType": "embedding", "status": "Queued"}
    api.storage.put_message(QUEUES["TRAIN_QUEUE_NAME"], about_embedding, delay_seconds=0)
    story.at.deliver(Kind.TRAINING)
    poison = f"{QUEUES['IMAGE_QUEUE_NAME']}-poison"
    api.storage.put_message(poison, {"projectId": "?", "status": "Queued"}, delay_seconds=0)
    story.at.tick()


@pytest.mark.parametrize("mode", MODES)
def test_capture(
    mode: str, storage_account: StorageAccount, identity_endpoint: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.environ["GOLDEN_FOLDER"]) / mode
    story = Story(Deployment(mode, storage_account, monkeypatch))
    reject(story)
    tell_ended(story)
    tell_running(story, next(iter(POOLS[mode])))
    story.at.batch.advance(3600)
    tell_failures(story)
    if mode == "shared":
        tell_pools(story)
        assert story.at.clock.now().weekday() == 0, "it is Monday, with Batch jobs of a new week"
    tell_last_minute(story, monkeypatch)
    write(story, folder)


def write(story: Story, folder: Path) -> None:
    """Everything that lies there now."""
    at = story.at
    blobs = {
        blob.name: {"name": blob.name, "metadata": blob.metadata or {}, "content": _content(at, blob.name)}
        for blob in at.container.list_blobs(include=["metadata"])
    }
    for name, (about, entities) in story.scenes.items():
        keys = [entity.key for entity in entities]
        of_scene = [blobs.pop(blob) for blob in sorted(blobs) if any(key in blob for key in keys)]
        _dump(at, folder / "ledger" / f"{name}.json", {"about": about, "blobs": of_scene})
    _dump(at, folder / "pools.json", blobs.pop("pools.json", None))
    _dump(at, folder / "rejected.json", [blobs.pop(blob) for blob in sorted(blobs) if blob.startswith("rejected/")])
    blobs.pop("timer.lease", None)
    assert not blobs, f"in no scene: {sorted(blobs)}"
    _dump(at, folder / "own-queue.json", [json.loads(text) for _at, text in at.own_queue.messages])
    _dump(at, folder / "batch-jobs.json", at.batch_jobs())
    _dump(at, folder / "batch-happenings.json", {"until": at.clock.now().isoformat(), "happenings": at.happenings})
    _dump(at, folder / "haste.json", _haste_blobs(at))


def _content(at: Deployment, name: str) -> Any:
    content = at.container.download_blob(name).readall()
    return json.loads(content) if content else None


def _haste_blobs(at: Deployment) -> dict[str, Any]:
    """HASTE's records and configs; results as null."""
    found: dict[str, Any] = {}
    for name in at.haste.list_blob_names():
        if "/inputs/" in name or name == "project_stats.json":
            continue
        is_record = name.endswith((".json", ".yaml"))
        found[name] = json.loads(at.haste.download_blob(name).readall()) if is_record else None
    return found


def _dump(at: Deployment, path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(at.told(value), indent=1) + "\n", encoding="utf-8")
