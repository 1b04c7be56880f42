"""On a Batch account that tenants share, what a message or a record names is no reason to touch another's Batch job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.protocol.record import State
from tests.support.hastes_task import JOB, TASK, body
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import TRAINING
from tests.support.story import Story
from tests.support.values import in_state

THEIRS = "rival-training-h100-2026w02"
THEIR_OUTPUT = "https://rivalstorage.blob.local/data"
OWN_WEEK = "tenant-training-h100-2026w02"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class Beside(Story):
    """Another tenant's task runs on the shared pool, in a Batch job of its own."""

    def __init__(
        self, job_id: str = THEIRS, tenant: str | None = "rival", account: str | None = "rivalstorage"
    ) -> None:
        super().__init__()
        self.their_job = job_id
        self.world.account.create_job(job_id, "h100", None, tenant, account)
        self.world.account.create_task(job_id, body(TASK, THEIR_OUTPUT))
        self.world.batch_world.tick()
        self.world.save_record(TRAINING, status="InProgress", taskId=TASK, jobStatus="InProgress")

    def poll(self, task: str = TASK, message_id: str = "p1") -> None:
        self.deliver(self.message(message_id, "InProgress", trainingJob={"jobId": self.their_job, "taskId": task}))

    def touched(self) -> list[str]:
        """What was done in their job since it stood."""
        asked = [one["operation"] for one in self.events("request") if one.get("job") == self.their_job]
        return sorted(set(asked) - {"create_job", "create_task", "get_job"})


def refusals(story: Story) -> list[str]:
    return [metadata["reason"] for _content, metadata in story.kept.blobs.values()]


@pytest.mark.parametrize("status", ["InProgress", "Cancelled", "Queued", "Processed"])
@pytest.mark.parametrize("task", [TASK, "trn-00000000-0000-4000-8000-000000000000"])
def test_a_message_that_names_a_task_in_anothers_job_is_refused_and_kept(status: str, task: str) -> None:
    story = Beside()
    story.world.save_record(TRAINING, status=status, taskId=task)
    before = story.shown
    story.poll(task)
    for _ in range(3):
        story.tick()
    assert story.live is None
    assert story.touched() == []
    assert story.world.live_tasks() == story.created() == [TASK]
    assert story.shown == before
    (reason,) = refusals(story)
    assert task in reason and THEIRS in reason


@pytest.mark.parametrize(
    ("tenant", "account"),
    [("tenant", "rivalstorage"), ("tenant", None), ("rival", None), (None, "rivalstorage")],
    ids=["our name, their account", "our name, nobody's account", "0.1.0 of theirs", "their account alone"],
)
def test_whose_the_job_is_its_account_says_and_not_a_name(tenant: str | None, account: str | None) -> None:
    story = Beside(tenant=tenant, account=account)
    story.poll()
    story.tick()
    assert story.live is None and story.touched() == []
    assert len(refusals(story)) == 1


def test_a_task_of_hastes_own_app_with_results_elsewhere_is_anothers() -> None:
    """Tenants' HASTE apps share a pool, and so the Batch job that HASTE names after it."""
    story = Beside(JOB, None, None)
    story.poll()
    story.tick()
    assert story.live is None
    assert story.world.live_tasks() == [TASK]
    assert len(refusals(story)) == 1


def test_a_task_that_names_no_container_of_results_is_not_taken_over() -> None:
    story = Beside(JOB, None, None)
    other = "trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a72"
    story.world.account.create_task(JOB, replace(body(other), output_files=()))
    story.world.save_record(TRAINING, taskId=other)
    story.poll(other)
    assert story.live is None and len(refusals(story)) == 1


def test_a_task_of_our_own_for_another_model_is_not_taken_over() -> None:
    story = Story()
    story.ask()
    story.tick()
    stranger = replace(TRAINING, entity_id="77")
    story.world.save_record(stranger, status="InProgress", taskId=story.task_id(), jobStatus="InProgress")
    named = {"jobId": story.job_id(), "taskId": story.task_id()}
    story.deliver(story.message("p1", "InProgress", stranger, modelId="77", trainingJob=named))
    assert story.world.ledger.read(stranger.key) is None
    assert len(refusals(story)) == 1
    assert story.world.live_tasks() == [story.task_id()]


@pytest.mark.parametrize("state", [State.PLACED, State.ENDING])
def test_a_record_that_names_anothers_job_waits_for_an_operator_and_does_nothing_there(state: State) -> None:
    story = Beside()
    story.ask()
    placed = story.record.placement
    assert placed is not None
    elsewhere: dict[str, Any] = {"placement": replace(placed, job_id=THEIRS, task_id=TASK)}
    if state is State.ENDING:
        elsewhere["cancel_asked"] = story.now()
    story.world.ledger.replace(story.version, in_state(story.record, state, **elsewhere))
    for _ in range(4):
        story.tick()
    assert story.touched() == []
    assert TASK in story.world.live_tasks()
    assert story.record.reason.startswith("waiting for an operator: Batch job rival-training")


def test_whose_a_job_is_is_asked_once() -> None:
    story = Story()
    story.ask()
    asked = len(story.events("request", operation="get_job"))
    for _ in range(5):
        story.tick()
    assert len(story.events("request", operation="get_job")) == asked


# --- jobs of version 0.1.0, which name the tenant alone -----------------------------------------------------------


class Upgraded(Story):
    """A training that version 0.1.0 has started: its Batch job names no storage account."""

    def __init__(self) -> None:
        super().__init__()
        self.ask()
        self.world.batch_world.jobs[OWN_WEEK].spec["metadata"] = [{"name": "haste-worker-tenant", "value": "tenant"}]
        self.restart()

    def restart(self) -> None:
        """Another process, which knows nothing about the Batch jobs yet."""
        self.worker = self.world.new_worker()

    def metadata(self, job_id: str = OWN_WEEK) -> dict[str, str]:
        return {one["name"]: one["value"] for one in self.world.batch_world.jobs[job_id].spec["metadata"]}


def test_live_work_of_the_first_version_goes_on_and_its_job_is_stamped() -> None:
    story = Upgraded()
    story.tick()
    assert story.metadata() == {"haste-worker-tenant": "tenant", "haste-worker-account": "tenantstorage"}
    story.complete()
    story.until_done()
    assert story.ends() == {"m1": "completed"}
    assert story.created() == [story.task_id()]


def test_new_work_goes_into_it_too() -> None:
    story = Upgraded()
    other = replace(TRAINING, entity_id="77")
    story.world.save_record(other, status="Queued", taskId=None)
    story.deliver(story.message("m77", "Queued", other, modelId="77"))
    found = story.world.ledger.read(other.key)
    assert found is not None and found.record.placement is not None
    assert found.record.placement.job_id == OWN_WEEK
    assert "haste-worker-account" in story.metadata()


def test_a_job_with_our_name_in_which_our_ledger_has_nothing_is_left_alone() -> None:
    """Two apps on different storage accounts were given one tenant's name."""
    story = Story()
    story.world.account.create_job(OWN_WEEK, "h100", None, "tenant", None)
    story.world.account.create_task(OWN_WEEK, body("trn-x", THEIR_OUTPUT))
    story.ask()
    assert story.job_id() == f"{OWN_WEEK}-2"
    assert [job.job_id for job in story.worker.batch.jobs_of("tenant")] == [f"{OWN_WEEK}-2"]
