"""The clock of a host is wrong: what services date is judged by their own clocks, so nothing is early, late or lost."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from bench.deployment import Deployment
from local.batch import control
from local.producer import names
from shared.kinds import Entity
from shared.triggers import messages
from shared.triggers.messages import QueueMessage
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import pool

WRONG = [timedelta(seconds=30), timedelta(minutes=5), timedelta(seconds=-30), timedelta(minutes=-5)]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.fixture(params=[timedelta(), *WRONG], ids=str)
def deployment(request: pytest.FixtureRequest) -> Deployment:
    """Two pools with a node each."""
    return Deployment([pool("h100", 1), pool("t4", 1)], host_ahead=request.param)


def shown(deployment: Deployment, entity: Entity) -> dict[str, Any]:
    """HASTE's record of a model."""
    name = names.model_blob(entity.project_id, entity.entity_id)
    found: dict[str, Any] = json.loads(deployment.storage.containers["data"][name].content)
    return found


def save_late(deployment: Deployment, entity: Entity, **fields: Any) -> None:
    """HASTE's API saves the whole record that it read some time ago."""
    deployment.api.storage.save(names.model_blob(entity.project_id, entity.entity_id), fields)


def cancel(deployment: Deployment, entity: Entity) -> None:
    """A cancel message is delivered; what HASTE's API saves comes later."""
    text = json.dumps({"projectId": entity.project_id, "modelId": entity.entity_id, "status": "Cancelled"})
    message = QueueMessage("train-queue", "cancel-1", deployment.clock.now(), text.encode())
    messages.haste_message(deployment.app.worker, deployment.app.rejected, entity.kind, message)


def end_all(deployment: Deployment) -> None:
    for job, task in deployment.runner.running():
        deployment.runner.finish(job, task, 1)
    deployment.world.advance(0)


def live(deployment: Deployment) -> list[str]:
    return [one.key for one in deployment.app.worker.ledger.live()]


def ticks(deployment: Deployment, seconds: float) -> None:
    """So much time in steps of ten seconds, each with a run of the timer."""
    for _ in range(int(seconds // 10)):
        deployment.tick(10)


# --- storage: HASTE's late saves ----------------------------------------------------------------------------------


def test_a_late_save_after_a_task_that_ended_at_once_is_mended(deployment: Deployment) -> None:
    """The save comes 40 s after its message; the task has ended after 5 s."""
    entity = deployment.train()
    deployment.world.advance(5)
    end_all(deployment)
    ticks(deployment, 30)
    assert shown(deployment, entity)["status"] == "Failed"
    deployment.world.advance(5)
    save_late(deployment, entity, status="Queued", trainingJob=None)
    ticks(deployment, 40)
    assert shown(deployment, entity)["status"] == "Failed"
    assert live(deployment) == [], "and not later than by the storage's clock"


def test_the_late_save_of_a_cancel_is_mended(deployment: Deployment) -> None:
    entity = deployment.train()
    ticks(deployment, 300)
    before = shown(deployment, entity)
    cancel(deployment, entity)
    for _ in range(3):
        deployment.tick(4)
    deployment.world.advance(3)
    save_late(deployment, entity, **before | {"status": "Cancelled"})
    ticks(deployment, 80)
    after = shown(deployment, entity)
    assert (after["status"], after["trainingJob"]["status"]) == ("Cancelled", "Cancelled")
    assert live(deployment) == []


def test_a_cancel_that_comes_after_the_end_changes_nothing_however_late_it_is_saved(deployment: Deployment) -> None:
    entity = deployment.train()
    end_all(deployment)
    ticks(deployment, 120)
    assert live(deployment) == []
    before = shown(deployment, entity)
    assert before["status"] == "Failed"
    cancel(deployment, entity)
    deployment.world.advance(15)
    save_late(deployment, entity, **before | {"status": "Cancelled"})
    ticks(deployment, 90)
    assert shown(deployment, entity)["status"] == "Failed"


def test_a_pause_that_one_host_begins_ends_in_time_on_another_whose_clock_is_wrong_the_other_way(
    deployment: Deployment,
) -> None:
    entity = deployment.train()
    end_all(deployment)
    deployment.tick(10)
    assert shown(deployment, entity)["status"] == "Failed"
    deployment.host_ahead = -deployment.host_ahead
    deployment.app = deployment.new_process()
    ticks(deployment, 40)
    assert live(deployment) == [entity.key], "HASTE's API may still save"
    ticks(deployment, 30)
    assert live(deployment) == []


# --- Batch --------------------------------------------------------------------------------------------------------


def test_a_task_called_running_on_a_lost_node_is_given_up_after_two_minutes_of_batchs(deployment: Deployment) -> None:
    entity = deployment.train()
    ticks(deployment, 600)
    ((job, task),) = deployment.runner.running()
    control.preempt_task(deployment.world, job, task, return_after_seconds=None, stuck=True)
    ticks(deployment, 100)
    assert losses(deployment, entity) == 0
    ticks(deployment, 120)
    assert losses(deployment, entity) == 1


def losses(deployment: Deployment, entity: Entity) -> int:
    found = deployment.app.worker.ledger.read(entity.key)
    assert found is not None
    return len(found.record.losses)
