"""A training, the inference that follows it, and a user who cancels or trains again in between: they share a record."""

from __future__ import annotations

import dataclasses
from typing import Any
from unittest.mock import Mock

import pytest

from local.batch import control
from shared.errors import NeedsOperator
from shared.protocol.record import State
from tests.protocol.one_model import INFERENCE, TRAINING, OneModel
from tests.support.passing_waits import PassingWaits

TWO_POOLS: dict[str, Any] = {
    "pools": [
        {"id": name, "targetLowPriorityNodes": 1, "start_seconds": 0, "return_after_seconds": None}
        for name in ("h100", "t4", "a10")
    ],
    "candidates": ("h100", "t4", "a10"),
}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.mark.parametrize("saved", ["before the inference is taken up", "after it"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_cancel_that_comes_as_the_training_succeeds_spoils_nothing(saved: str, fails: bool) -> None:
    """HASTE's API has read the record before, and saves it after the training's end is shown."""
    story = OneModel()
    story.train("m1")
    story.tick(120)
    story.complete(trained_by="m1")
    snapshot, cancel = story.model, story.message("c1", "Cancelled")
    story.run_timer()
    assert (story.model["status"], story.model["inferenceStatus"]) == ("Processed", "Queued")
    if saved == "after it":
        story.deliver_own()
    story.save({**snapshot, "status": "Cancelled"})
    story.pass_seconds(1)
    story.deliver(cancel)
    story.deliver_own()
    for _ in range(8):
        story.tick()
        if fails:
            story.complete(1)
    assert story.ends(TRAINING) == {"m1": "completed"}
    assert story.model["status"] == "Processed"
    if fails:
        assert story.ends(INFERENCE) == {"m1+inference": "failed"}
        assert story.model["inferenceStatus"] == "Failed"
    else:
        assert story.ends(INFERENCE) == {}
        assert story.model["inferenceStatus"] == "InProgress"


def test_an_inference_that_waits_while_the_model_is_trained_again_gives_way_to_the_next() -> None:
    story = OneModel(**TWO_POOLS)
    story.train("m1")
    story.tick(2)
    story.complete(trained_by="m1")
    story.world.batch_world.faults.add({"operation": "create_job", "code": "ActiveJobAndScheduleQuotaReached"})
    story.tick(3)
    story.train("m2")
    story.world.batch_world.faults.clear()
    story.tick(6)
    waiting = story.live(INFERENCE)
    assert waiting is not None and "is being trained" in waiting.reason
    assert story.ends(INFERENCE) == {}
    assert [one.stands_aside for one in story.world.ledger.live() if one.state is State.WAITING] == [True]
    story.complete(trained_by="m2")
    story.tick(6)
    assert story.ends(INFERENCE) == {"m1+inference": "superseded"}
    assert story.model["inferenceStatus"] == "InProgress"


def test_an_inference_that_loses_its_node_while_the_model_is_trained_again_does_not_fail() -> None:
    story = OneModel(**TWO_POOLS)
    story.train("m1")
    story.tick(2)
    story.complete(trained_by="m1")
    story.tick(3)
    story.train("m2")
    story.tick(2)
    inference = story.live(INFERENCE)
    assert inference is not None and inference.placement is not None
    control.preempt_node(story.world.batch_world, inference.placement.pool_id)
    story.tick(6)
    moved = story.live(INFERENCE)
    assert moved is not None and moved.attempt == 2 and "is being trained" in moved.reason
    assert story.model["inferenceStatus"] != "Failed"


def test_a_task_that_is_gone_while_the_model_is_trained_again_takes_no_place() -> None:
    """It would wait for a training that waits for its place."""
    story = OneModel()
    story.worker = dataclasses.replace(story.worker, limits=dataclasses.replace(story.worker.limits, most_live_tasks=1))
    story.train("m1")
    story.tick(3)
    story.complete(trained_by="m1")
    story.tick(3)
    story.train("m2")
    inference = story.live(INFERENCE)
    assert inference is not None and inference.placement is not None
    placed = inference.placement
    story.delete_task(placed.job_id, placed.task_id)
    story.tick(10)
    waiting, training = story.live(INFERENCE), story.live(TRAINING)
    assert waiting is not None and "is being trained" in waiting.reason
    assert training is not None and training.state is State.PLACED


def test_inference_is_shown_as_queued_although_the_end_could_not_be_shown_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = OneModel(**TWO_POOLS)
    story.train("m1")
    story.tick(4)
    story.complete(trained_by="m1")
    story.world.batch_world.faults.add({"operation": "create_job", "code": "ActiveJobAndScheduleQuotaReached"})
    story.worker.placer.forget("tenant-interactive-h100-2026w02")
    with monkeypatch.context() as patch:
        patch.setattr(story.blobs, "replace", Mock(side_effect=NeedsOperator("a network rule")))
        story.tick(2)
    story.tick(4)
    assert (story.model["status"], story.model["inferenceStatus"]) == ("Processed", "Queued")
