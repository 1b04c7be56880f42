"""A user cancels and starts again: HASTE's page follows the new run, whatever the old one has left there."""

from __future__ import annotations

import pytest

from tests.support.passing_waits import PassingWaits
from tests.support.small_world import TRAINING
from tests.support.story import TWO_POOLS, Story


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def cancelled_and_asked_again(after_seconds: int, *, keeps_task: bool) -> Story:
    """`keeps_task`: whether HASTE's API leaves the old task's name in the record that it saves."""
    story = Story(**TWO_POOLS)
    story.ask("m1")
    story.tick()
    story.cancel()
    for _ in range(after_seconds // 5):
        story.tick(5)
    fields = {} if keeps_task else {"taskId": None, "jobStatus": None}
    story.world.save_record(TRAINING, status="Queued", **fields)
    story.ask("m2")
    return story


@pytest.mark.parametrize("keeps_task", [True, False])
@pytest.mark.parametrize("after_seconds", [5, 30, 60, 120, 200])
def test_the_new_run_is_shown_as_it_goes_on(after_seconds: int, keeps_task: bool) -> None:
    story = cancelled_and_asked_again(after_seconds, keeps_task=keeps_task)
    story.until(lambda: story.world.live_tasks() == [story.task_id(1, "m2")])
    story.tick()
    assert (story.shown["status"], story.shown["taskId"]) == ("InProgress", story.task_id(1, "m2"))
    story.cancel("c2")
    story.tick()
    assert story.shown["status"] == "Cancelled", "a cancel of this run stays"
    story.until_done()
    assert (story.shown["status"], story.shown["taskId"]) == ("Cancelled", story.task_id(1, "m2"))
