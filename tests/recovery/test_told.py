"""What the user is told of an interruption: how much work was lost with the node."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from local.batch import control
from shared.pools import recovery
from shared.protocol.record import Loss, NodeRun, State
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import two_pools
from tests.support.values import NOON, record


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.mark.parametrize(
    ("ran_seconds", "told"),
    [
        (59, "Interrupted"),
        (60, "Interrupted after 1 min"),
        (3599, "Interrupted after 59 min"),
        (3600, "Interrupted after 1 h 0 min"),
        (20 * 3600 + 725, "Interrupted after 20 h 12 min"),
    ],
)
def test_the_work_of_the_lost_run_is_told(ran_seconds: float, told: str) -> None:
    loss = Loss("h100", 1, NOON, NOON + timedelta(seconds=ran_seconds))
    assert recovery.told_interruption(replace(record(State.ENDING), losses=(loss,))) == told


def test_the_loss_of_an_earlier_attempt_is_not_told_again() -> None:
    loss = Loss("h100", 1, NOON, NOON + timedelta(hours=1))
    moved = record(State.ENDING, losses=(loss,), attempt=2)
    assert recovery.told_interruption(moved) == "Not started"
    assert recovery.told_interruption(record(State.ENDING)) == "Not started"


def test_one_that_ran_and_was_ended_by_somebody_was_interrupted() -> None:
    ran = replace(record(State.ENDING), node_run=NodeRun("n", NOON))
    assert recovery.told_interruption(ran) == "Interrupted"


def test_the_attempt_that_follows_says_how_much_was_lost() -> None:
    """Twenty hours from zero: the user should know."""
    story = two_pools()
    story.train("1")
    story.tick()
    story.wait(timedelta(hours=20))
    story.tick()
    control.preempt_node(story.world.batch_world, "h100")
    notes: list[str] = []
    for _ in range(4):
        story.tick()
        notes.append(story.shown_of("1").get("note") or "")
    assert story.pool_of("1") == "t4"
    assert any(note.startswith("Interrupted after 20 h ") and "moving to other hardware" in note for note in notes), (
        notes
    )
