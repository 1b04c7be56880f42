"""HASTE's request for a zip, through messages and the timer: which ends make one, and that each makes it once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.errors import Transient
from shared.kinds import Kind
from shared.protocol.record import State, task_id
from tests.faults.tenant import begun
from tests.protocol.one_model import INFERENCE, TRAINING, OneModel
from tests.support import samples
from tests.support.haste_results import INFERENCE_OUTPUT, inference_results
from tests.support.passing_waits import PassingWaits
from tests.support.stepping import Stepped
from tests.support.story import Story

TASK = task_id(Kind.TRAINING, "m1", 1)
ARTIFACTS = f"{samples.FOLDER}/artifacts_model_{samples.MODEL_ID}.json"
LABELS = f"{samples.FOLDER}/train_labels_{samples.MODEL_ID}.geojson"
CONFIG = samples.CONFIG_NAME


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.fixture(params=[False, True], ids=["legacy", "shared"])
def one(request: pytest.FixtureRequest) -> OneModel:
    return OneModel(isolated=request.param)


def left(one: OneModel, task: str = TASK) -> None:
    """What a task leaves however it ends."""
    one.blobs.content[f"{samples.FOLDER}/{task}/stdout.txt"] = b""


def sent(one: OneModel) -> list[dict[str, Any]]:
    return [json.loads(text) for text in one.world.zip_queue.messages]


def cancel(one: OneModel) -> None:
    one.save({**one.model, "status": "Cancelled"})
    one.deliver(one.message("c1", "Cancelled"))


def infer(one: OneModel) -> None:
    """The training goes well and inference runs."""
    one.train("m1")
    one.tick(2)
    one.complete(trained_by="m1")
    one.tick(5)
    assert [name[:4] for _job, name in one.world.runner.running()] == ["inf-"]
    assert sent(one) == []


def as_in_the_sample(message: dict[str, Any]) -> dict[str, Any]:
    """The message with the sample's time in its line."""
    sample = samples.sample("messages/zip.queued.json")
    time = sample["zipStatusMessage"][1:33]
    line = message["zipStatusMessage"]
    return message | {"zipStatusMessage": f"\n{time}{line[33:]}"}


# --- ends that ask ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["Processed", "Failed"])
def test_after_an_inference_haste_is_asked_as_by_its_own_app(one: OneModel, status: str) -> None:
    infer(one)
    if status == "Processed":
        folder = f"{samples.FOLDER}/{task_id(Kind.INFERENCE, 'm1+inference', 1)}"
        results = inference_results().content.items()
        one.blobs.content |= {name.replace(INFERENCE_OUTPUT, folder): content for name, content in results}
    one.complete()
    one.tick(6)
    assert one.model["inferenceStatus"] == status
    (message,) = sent(one)
    assert as_in_the_sample(message) == samples.sample("messages/zip.queued.json")
    assert json.loads(one.blobs.content[ARTIFACTS]) == message
    assert one.live(INFERENCE) is None


def test_after_a_failed_training_haste_is_asked(one: OneModel) -> None:
    one.train("m1")
    one.tick(2)
    left(one)
    one.complete(exit_code=3)
    one.tick(6)
    assert one.model["trainingOutputPath"] == f"{samples.FOLDER}/{TASK}"
    (message,) = sent(one)
    assert as_in_the_sample(message) == samples.sample("messages/zip.queued.json")


def test_after_a_cancelled_training_haste_is_asked_once_no_save_can_take_the_outputs_back(one: OneModel) -> None:
    one.train("m1")
    one.tick(4)
    left(one)
    before = one.model
    cancel(one)
    for _ in range(2):  # ends the task, sees its end: the API may still save
        one.pass_seconds(10)
        one.run_timer()
    assert one.model["trainingOutputPath"] == f"{samples.FOLDER}/{TASK}"
    assert sent(one) == []
    one.save({**before, "status": "Cancelled"})
    one.tick(6)
    assert one.model["trainingOutputPath"] == f"{samples.FOLDER}/{TASK}"
    assert len(sent(one)) == 1


def test_a_stored_record_is_used_again(one: OneModel) -> None:
    one.blobs.content[ARTIFACTS] = samples.raw("metadata/artifacts.processed.json")
    infer(one)
    one.complete()
    one.tick(6)
    (message,) = sent(one)
    before = samples.sample("metadata/artifacts.processed.json")
    for kept in ("trainingZipUrl", "trainingZipSize", "inferenceZipUrl", "inferenceZipSize", "zipJobs"):
        assert message[kept] == before[kept]


def test_a_record_that_cannot_be_read_is_made_anew(one: OneModel) -> None:
    one.blobs.content[ARTIFACTS] = b"[]"
    infer(one)
    one.complete()
    one.tick(6)
    (message,) = sent(one)
    assert json.loads(one.blobs.content[ARTIFACTS]) == message


# --- ends that do not -------------------------------------------------------------------------------------------


def test_a_training_that_went_well_asks_for_none(one: OneModel) -> None:
    one.save({**one.model, "autoRunInference": False})
    one.train("m1")
    one.tick(2)
    left(one)
    one.complete(trained_by="m1")
    one.tick(6)
    assert one.model["status"] == "Processed"
    assert (one.live(TRAINING), sent(one)) == (None, [])


def test_a_training_that_left_nothing_asks_for_none(one: OneModel) -> None:
    one.train("m1")
    one.tick(2)
    cancel(one)
    one.tick(6)
    assert one.model["status"] == "Cancelled"
    assert (one.live(TRAINING), sent(one)) == (None, [])


def test_a_training_without_a_task_asks_for_none(one: OneModel) -> None:
    one.save({**one.model, "imageLayerId": "none"})
    one.train("m1")
    one.tick(6)
    assert one.model["status"] == "Failed"
    assert (one.live(TRAINING), sent(one), ARTIFACTS in one.blobs.content) == (None, [], False)


def test_a_superseded_training_asks_for_none(one: OneModel) -> None:
    one.train("m1")
    one.tick(2)
    left(one)
    one.train("m2")
    one.tick(6)
    assert one.ends(TRAINING) == {"m1": "superseded"}
    assert sent(one) == []


def test_a_model_that_was_deleted_gets_no_record_again(one: OneModel) -> None:
    infer(one)
    del one.blobs.content[samples.MODEL_NAME]
    one.complete()
    one.tick(6)
    assert (sent(one), ARTIFACTS in one.blobs.content) == ([], False)


# --- once -------------------------------------------------------------------------------------------------------


def test_an_end_that_is_looked_at_many_times_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.ask()
    story.complete(exit_code=3)
    looks = []

    def refuse(*_arguments: Any) -> bool:
        looks.append(story.now())
        raise Transient("storage is away")

    with monkeypatch.context() as patch:
        patch.setattr(story.world.ledger, "add_done", refuse)
        for _ in range(8):
            story.tick()
    assert len(looks) > 3
    story.until_done()
    assert len(story.world.zip_queue.messages) == 1


def test_it_is_asked_again_until_the_sending_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.ask()
    story.complete(exit_code=3)

    def refuse(_text: str) -> None:
        raise Transient("the queue is away")

    with monkeypatch.context() as patch:
        patch.setattr(story.world.zip_queue, "send", refuse)
        for _ in range(6):
            story.tick()
        assert story.state is State.FINISHING
    story.until_done()
    (message,) = story.world.zip_queue.messages
    assert json.loads(message)["zipStatus"] == "Queued"


def test_a_host_that_dies_between_any_two_steps_leaves_a_request_behind() -> None:
    """Before each access of the run that ends the request: afterwards HASTE has been asked, and twice at most."""
    died_at: list[str] = []
    for access in range(100):
        story = Story(stepped=Stepped)
        story.ask()
        story.complete(exit_code=3)
        story.tick()
        story.world.batch_world.advance(120)
        actor = begun(lambda: story.tick(0))  # noqa: B023 (it ends within the turn)
        for _ in range(access):
            if not actor.dead:
                actor.step()
        if actor.dead:
            break
        died_at.append(actor.at)
        was_sent = len(story.world.zip_queue.messages)
        recorded = story.live is None or story.live.zip_asked
        actor.crash()
        story.until_done()
        assert len(story.world.zip_queue.messages) == (2 if was_sent and not recorded else 1), died_at
        assert json.loads(story.world.haste.blobs[ARTIFACTS][0]) == json.loads(story.world.zip_queue.messages[-1])
    assert {"zip_queue.send", "ledger.replace", "ledger.add_done", "ledger.remove"} <= set(died_at)
    assert died_at.index("haste.create") < died_at.index("zip_queue.send") < died_at.index("ledger.add_done")


# --- what HASTE's deletion of a model expects -------------------------------------------------------------------


@pytest.mark.parametrize("exit_code", [0, 3])
def test_every_blob_that_haste_s_deletion_goes_through_is_there(one: OneModel, exit_code: int) -> None:
    one.save({**one.model, "autoRunInference": False})
    one.train("m1")
    one.tick(2)
    left(one)
    one.complete(exit_code, trained_by="m1")
    one.tick(6)
    assert one.live(TRAINING) is None
    assert {CONFIG, LABELS} <= one.blobs.content.keys()
    assert json.loads(one.blobs.content[LABELS]) == samples.sample("configs/train_labels.geojson")
