"""HASTE cancels a training: before its message is seen, while it waits, is queued, or runs. Nothing runs after that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.certificates import Certificates
from local.stack import Stack, running_stack
from local.stack.settings import TRAINING_IMAGE
from local.stack.world import default_world
from tests.support.outside import BatchAccount, Haste, Model, wait_for
from tests.support.stacks import options, training_image

TENANTS = ("tenanta", "tenantb")
#: Longer than the test: no training ends by itself.
TRAINING_SECONDS = 600
NO_MORE_JOBS = {"operation": "create_job", "code": "ActiveJobAndScheduleQuotaReached"}


def world(folder: Path) -> dict[str, object]:
    """One machine for training, so that a second one queues."""
    made = default_world(1.0)
    endless = {TRAINING_IMAGE: training_image(folder, HASTE_LOCAL_SECONDS=str(TRAINING_SECONDS))}
    pools = [pool | ({"targetLowPriorityNodes": 1} if pool["id"] == "h100-pool" else {}) for pool in made["pools"]]
    return made | {
        "pools": pools,
        "images": made["images"] | endless,
        "assumptions": {"terminated_task_uploads_outputs": True},
    }


class Cancelled:
    """Four trainings, all cancelled, and what there was to see at the times that matter."""

    def __init__(self, stack: Stack) -> None:
        self.batch = BatchAccount(stack)
        haste, other = (Haste(stack, tenant) for tenant in TENANTS)
        layer, other_layer = haste.new_layer(), other.new_layer()
        assert (layer.ended(), other_layer.ended()) == ("Processed", "Processed")

        self.early = haste.new_model(layer, delay_seconds=4)
        self.early.cancel()

        self.running = haste.new_model(layer)
        self.running_task = self._task(self.running)
        wait_for(lambda: self.batch.events("task_started", task=self.running_task))
        self.queued = haste.new_model(layer)
        self.queued_task = self._task(self.queued)
        self.queued_state = self.batch.state(self.queued_task)
        self.queued.cancel()
        wait_for(lambda: self.batch.state(self.queued_task) == "completed")
        self.running_state = self.batch.state(self.running_task)
        self.running.cancel()

        self.batch.admin("POST", "/faults", NO_MORE_JOBS)
        self.waiting = other.new_model(other_layer)
        wait_for(lambda: self.batch.events("request", operation="create_job", code=NO_MORE_JOBS["code"]))
        self.waiting.cancel()
        wait_for(other.is_idle)
        wait_for(lambda: self.waiting.record["statusMessage"].count("Cancel") > 1)
        self.batch.admin("DELETE", "/faults")
        for model in (self.running, self.queued):
            wait_for(lambda model=model: model.record["trainingJob"]["status"] != "InProgress")  # type: ignore[misc]
        for one in (haste, other):
            wait_for(one.is_idle)
        wait_for(lambda: haste.zips_asked() and not haste.blob_names(haste.own, "active/"))
        self.zips = [message["modelId"] for one in (haste, other) for message in one.zips_asked()]

    def _task(self, model: Model) -> str:
        return str(wait_for(lambda: (model.record["trainingJob"] or {}).get("taskId")))


@pytest.fixture(scope="module")
def cancelled(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cancelled]:
    run_folder, image_folder = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("image")
    settings = {"AZURE_BATCH_TRAINING_POOL_IDS": "h100-pool"}
    made = options(run_folder, certificates, tenants=TENANTS, world=world(image_folder), settings=settings)
    with running_stack(made) as running:
        yield Cancelled(running.stack)


@pytest.mark.parametrize("which", ["early", "waiting", "queued", "running"])
def test_the_record_says_cancelled(cancelled: Cancelled, which: str) -> None:
    model: Model = getattr(cancelled, which)
    assert model.status == "Cancelled"
    job = model.record["trainingJob"]
    assert job is None or job["status"] == "Cancelled"


def test_no_task_was_added_for_what_had_none_yet(cancelled: Cancelled) -> None:
    assert cancelled.batch.created(prefix="trn-") == [cancelled.running_task, cancelled.queued_task]


def test_a_zip_is_asked_for_of_what_the_running_one_has_left(cancelled: Cancelled) -> None:
    assert cancelled.zips == [cancelled.running.model_id]


def test_a_queued_task_is_ended_and_never_starts(cancelled: Cancelled) -> None:
    assert cancelled.queued_state == "active"
    assert cancelled.batch.state(cancelled.queued_task) == "completed"
    assert cancelled.batch.events("task_started", task=cancelled.queued_task) == []


def test_a_running_task_is_ended_and_not_started_again(cancelled: Cancelled) -> None:
    task = cancelled.running_task
    assert cancelled.running_state == "running"
    assert cancelled.batch.state(task) == "completed"
    assert len(cancelled.batch.events("task_started", task=task)) == 1
    assert cancelled.batch.events("task_completed", task=task)[0]["result"] == "failure"
    assert cancelled.batch.events("task_deleted") == []
