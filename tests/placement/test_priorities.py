"""Trainings and what follows them on a single GPU: people who wait for an inference come first."""

from __future__ import annotations

import pytest

from shared.kinds import Entity, Kind
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import PROJECT
from tests.support.trainings import Trainings, pool


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def test_no_training_starts_while_an_inference_is_queued() -> None:
    story = Trainings(pools=[pool("h100", 1)], follow_up=Kind.INFERENCE)
    for model in "123":
        story.world.save_record(Entity(Kind.INFERENCE, PROJECT, model), status=None, taskId=None)
    story.train("1", "2", "3")
    for _ in range(40):
        story.tick()
        story.end_all()
    queued: set[str] = set()
    started: list[str] = []
    for event in story.events("task_created", "task_started"):
        task = event["task"]
        if event["event"] == "task_created" and task.startswith("inf-"):
            queued.add(task)
        elif event["event"] == "task_started":
            queued.discard(task)
            assert not (task.startswith("trn-") and queued), f"{task} starts while {queued} wait"
            started.append(task[:3])
    assert sorted(started) == ["inf"] * 3 + ["trn"] * 3
    assert started[:2] == ["trn", "trn"] and started[2:4] == ["inf", "inf"], started
