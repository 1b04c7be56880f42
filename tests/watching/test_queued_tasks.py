"""Thousands may wait for a node: few are looked into by one run of the timer, and those that can be helped are."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from shared.ledger.port import Versioned
from shared.memory import Pace
from shared.pools.readings import Readings
from shared.protocol.record import EndReason, Loss
from shared.requests import driver, queued_tasks
from shared.worker import Worker
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, at_most_one_each, pool

QUEUED = [str(n) for n in range(30)]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def many_queued(**options: object) -> Trainings:
    """Thirty trainings for one node, and a second pool that is empty until a test fills it."""
    story = Trainings(pools=[pool("h100"), pool("t4", 0)], candidates=("h100", "t4"), **options)
    story = story.remembering(progress=Pace(timedelta(seconds=60)))
    story.train(*QUEUED)
    assert len(story.world.runner.running()) == 1
    return story


def looked_at(story: Trainings, monkeypatch: pytest.MonkeyPatch, ticks: int, seconds: float = 30) -> list[int]:
    """How many records each of the next ticks looks into."""
    reads: list[str] = []
    real = driver.advance

    def advance(worker: Worker, version: Versioned, readings: Readings) -> None:
        reads.append(version.record.entity.key)
        real(worker, version, readings)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "advance", advance)
        counts = []
        for _ in range(ticks):
            before = len(reads)
            story.tick(seconds)
            counts.append(len(set(reads[before:])))
    return counts


def test_queued_tasks_take_turns_a_few_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    story = many_queued()
    counts = looked_at(story, monkeypatch, 9)
    assert max(counts) <= queued_tasks.MOST_IN_TURN + 1, "and the one that runs"
    assert sum(counts) >= len(QUEUED), "every one has had its turn"
    assert max(looked_at(story, monkeypatch, 9)) <= 1, "and none again so soon"


def test_however_long_they_wait_they_cost_no_more_while_nothing_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    story = many_queued()
    looked_at(story, monkeypatch, 9)
    story.wait(timedelta(minutes=30))
    assert max(looked_at(story, monkeypatch, 4)) <= 1


def test_when_slots_are_free_elsewhere_as_many_move(monkeypatch: pytest.MonkeyPatch) -> None:
    story = many_queued()
    looked_at(story, monkeypatch, 9)
    story.wait(timedelta(minutes=15))
    story.resize("t4", 2)
    for _ in range(6):
        story.tick()
    assert story.running_in("t4") == 2
    assert story.pool_of("1") == "t4", "the oldest first"
    at_most_one_each(story)


def test_when_their_pool_is_gone_all_move() -> None:
    story = many_queued()
    story.call("DELETE", "/pools/h100")
    story.wait(timedelta(minutes=16))
    for _ in range(6):
        story.tick()
    assert {story.pool_of(model) for model in QUEUED} == {"t4"}
    at_most_one_each(story)


def test_before_their_credentials_end_all_are_replaced() -> None:
    story = many_queued().with_policy(max_wait=timedelta(hours=1))
    story.wait(timedelta(hours=1, seconds=1))
    for _ in range(4):
        story.tick()
    queued = [story.live_of(model) for model in QUEUED[1:]]
    assert {record.attempt for record in queued} == {2}
    at_most_one_each(story)


def test_one_that_cannot_use_a_free_slot_does_not_keep_the_next_one_from_it() -> None:
    story = many_queued()
    oldest = story.world.ledger.read(story.live_of("1").entity.key)
    assert oldest is not None
    budget = story.worker.recovery[oldest.record.entity.kind].most_losses_per_pool
    lost = tuple(Loss("t4", 0, story.now() - timedelta(minutes=number), story.now()) for number in range(budget))
    story.world.ledger.replace(oldest, dataclasses.replace(oldest.record, losses=lost))
    story.wait(timedelta(minutes=20))
    story.resize("t4", 1)
    for _ in range(6):
        story.tick()
    assert story.pool_of("1") == "h100"
    assert story.pool_of("2") == "t4"


def test_an_hour_later_every_one_has_its_turn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left half done is mended, and every reason is up to date, at least so often."""
    story = many_queued()
    looked_at(story, monkeypatch, 9)
    story.wait(timedelta(minutes=54))
    assert max(looked_at(story, monkeypatch, 1)) <= 1, "not a minute before"
    story.wait(timedelta(minutes=6))
    counts = looked_at(story, monkeypatch, 9)
    assert max(counts) <= queued_tasks.MOST_IN_TURN + 1
    assert sum(counts) >= len(QUEUED)


def test_as_many_are_looked_into_as_there_are_free_slots_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    story = many_queued()
    looked_at(story, monkeypatch, 9)
    story.wait(timedelta(minutes=15))
    story.resize("t4", 3)
    (first,) = looked_at(story, monkeypatch, 1, seconds=1)
    assert first <= 3 + 1, "and the one that runs"
    for _ in range(6):
        story.tick()
    assert story.running_in("t4") == 3
    assert max(looked_at(story, monkeypatch, 3, seconds=5)) <= 4, "with the slots taken nobody else is looked into"


def test_slots_are_counted_not_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One idle node with two slots is room for two."""
    story = Trainings(pools=[pool("h100"), pool("t4", 0, taskSlotsPerNode=2)], candidates=("h100", "t4"))
    story = story.remembering(progress=Pace(timedelta(seconds=60)))
    story.train(*QUEUED[:6])
    assert sum(looked_at(story, monkeypatch, 4)) >= 6, "all have had their turn"
    story.wait(timedelta(minutes=16))
    story.resize("t4", 1)
    story.tick()
    leaving = [model for model in QUEUED[:6] if story.live_of(model).end_reason is EndReason.MOVE]
    assert leaving == ["1", "2"], "the oldest that wait"


def test_who_has_not_waited_too_long_is_not_looked_into_although_a_slot_is_free_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = many_queued()
    looked_at(story, monkeypatch, 9)
    story.resize("t4", 2)
    assert max(looked_at(story, monkeypatch, 6)) <= 1
    story.wait(timedelta(minutes=9))
    assert max(looked_at(story, monkeypatch, 1)) >= 2, "now they have"
