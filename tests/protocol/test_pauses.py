"""How long a job that waits is left alone: to the minute, and on both sides of the minute."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.protocol.record import Record, State
from tests.support.passing_waits import PassingWaits
from tests.support.story import Story

QUOTA = {"operation": "create_job", "status": 409, "code": "ActiveJobAndScheduleQuotaReached"}
DENIED = {"operation": "create_job", "status": 403, "code": "AuthorizationPermissionMismatch"}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def pauses(story: Story, number: int) -> list[float]:
    """The pauses that follow each other, in minutes, while nothing changes."""
    found: list[float] = []
    for _ in range(number):
        pause = story.record.not_before - story.now()
        found.append(round(pause / timedelta(minutes=1), 6))
        before = story.record
        story.tick(pause.total_seconds() - 1)
        assert story.record == before, "it is looked at before its time"
        story.tick(1)
        assert story.record != before, "it is not looked at in its time"
    return found


@pytest.mark.parametrize(("end", "factor"), [(min, 0.9), (max, 1.1)])
def test_the_pauses_double_up_to_an_hour_and_are_jittered_by_a_tenth(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[float, float], float], factor: float
) -> None:
    monkeypatch.setattr(random, "uniform", end)
    story = Story()
    story.fault(**QUOTA)
    story.ask()
    assert story.record.reason.startswith("waiting for quota")
    expected = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60]
    assert pauses(story, len(expected)) == pytest.approx([minutes * factor for minutes in expected])


def test_who_waits_for_an_operator_is_looked_at_every_ten_minutes_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    story = Story()
    story.fault(**DENIED)
    story.ask()
    assert pauses(story, 7) == pytest.approx([1, 2, 4, 8, 10, 10, 10])


class Died(BaseException):
    """The handler's process has ended."""


def test_a_job_whose_handler_died_is_taken_up_by_the_timer_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()

    def dies(record: Record) -> None:
        create(record)
        raise Died

    create = story.world.ledger.create
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(story.world.ledger, "create", dies)
        story.ask()
    story.tick(59)
    assert (story.state, story.created()) == (State.WAITING, [])
    story.tick(1)
    assert (story.state, story.created()) == (State.PLACED, [story.task_id()])


def test_a_job_that_moves_is_called_again_after_a_minute_if_its_message_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    story.ask()
    lost: list[str] = []
    monkeypatch.setattr(story.world.own_queue, "send", lambda text, *_seconds: lost.append(text))
    story.world.account.terminate_task(story.job_id(), story.task_id())
    story.until(lambda: story.state is State.WAITING)
    assert len(lost) == 1
    story.tick(59)
    assert len(lost) == 1
    story.tick(1)
    assert lost[1:] == lost[:1]
