"""Batch runs a task again by itself, with the credentials it was added with: they must last for that run, too."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest

from local.batch import control
from shared.kinds import Kind
from shared.settings.lifetimes import sas_expiry
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import NoCredentials
from tests.support.trainings import Trainings, at_most_one_each, pool

WAIT, RUN = timedelta(hours=1), timedelta(hours=48)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def test_credentials_count_from_when_the_task_was_added() -> None:
    """That was denied for longer than a task may wait."""
    story = Trainings(pools=[pool("h100")]).with_policy(max_wait=WAIT, max_run=RUN)
    story.fault(operation="create_task", status=403, code="AuthorizationFailure")
    story.train("0")
    story.wait(WAIT * 2)
    story.mend()
    for _ in range(30):
        story.tick()
    assert story.live_of("0").attempt == 1 and len(story.started()) == 1


@pytest.mark.parametrize(("lost_after", "attempts"), [(timedelta(minutes=50), 1), (timedelta(hours=40), 2)])
def test_no_run_outlives_its_credentials(lost_after: timedelta, attempts: int) -> None:
    """It loses its node, and there is another one in the pool: Batch starts it there at once."""
    story, ends = Trainings(pools=[pool("h100", 2)]), list[datetime]()

    def transfer(_kind: Kind) -> NoCredentials:
        ends.append(sas_expiry(story.now(), WAIT, RUN))
        return NoCredentials()

    tasks = dataclasses.replace(story.worker.tasks, transfer=transfer, max_run=dict.fromkeys(Kind, RUN))
    story.with_policy(max_wait=WAIT, max_run=RUN).with_worker(tasks=tasks)
    story.train("0")
    story.tick()
    story.wait(lost_after)
    story.tick()
    control.preempt_task(story.world.batch_world, *story.world.runner.running()[0])
    for _ in range(10):
        story.tick()
    record = story.live_of("0")
    assert record.attempt == attempts and len(ends) == attempts
    assert record.node_run is not None
    assert record.node_run.started_at + RUN <= ends[-1]
    at_most_one_each(story)
