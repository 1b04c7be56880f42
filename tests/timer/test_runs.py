"""The timer as it is deployed: what a run costs, one at a time by the lease, and two at once doing no harm."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from azure.core.rest import HttpRequest, HttpResponse

from bench.deployment import Deployment
from local.batch import control
from local.producer import names
from shared.app import App
from shared.kinds import Entity
from shared.storage.lease import LEASE_SECONDS
from shared.triggers import messages, timer
from shared.triggers.messages import QueueMessage
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, at_most_one_each, pool

LEASE, POISON_LOOKS, LEDGER_LIST = "Storage lease blob", "Storage take messages", "Storage list blobs"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def deployed(h100: int = 2, t4: int = 2) -> Deployment:
    """Two pools, and a process whose timer has kept house just now."""
    deployment = Deployment([pool("h100", h100), pool("t4", t4)])
    deployment.tick()
    return deployment


def calls(deployment: Deployment, tick: Callable[[], None]) -> Counter[str]:
    deployment.count_anew()
    tick()
    return deployment.calls()


def shown(deployment: Deployment, entity: Entity) -> dict[str, Any]:
    """HASTE's record of a model."""
    name = names.model_blob(entity.project_id, entity.entity_id)
    found: dict[str, Any] = json.loads(deployment.storage.containers["data"][name].content)
    return found


def fail_all(deployment: Deployment) -> None:
    """Every program that runs ends with an exit code, having run for longer than a broken node lets it."""
    deployment.world.advance(600)
    for job, task in deployment.runner.running():
        deployment.runner.finish(job, task, 1)
    deployment.world.advance(1)


def train(deployment: Deployment) -> Entity:
    """A training that runs, and that the timer has seen running."""
    entity = deployment.train()
    deployment.tick()
    return entity


def cancel(deployment: Deployment, entity: Entity) -> None:
    """HASTE's API cancels, and the trigger delivers its message."""
    deployment.api.put_cancel_model(entity.project_id, entity.entity_id, delay_seconds=0)
    (text,) = deployment.storage.take("train-queue")
    message = QueueMessage("train-queue", "cancel-1", deployment.clock.now(), text.encode())
    messages.haste_message(deployment.app.worker, deployment.app.rejected, entity.kind, message)


def status(deployment: Deployment, entity: Entity) -> str:
    return str(shown(deployment, entity)["status"])


# --- what a run costs ---------------------------------------------------------------------------------------------


def test_with_nothing_live_a_run_lists_the_ledger_once_and_looks_into_the_poison_queues() -> None:
    deployment = deployed()
    queues = len(deployment.app.timer.queue_names)
    assert queues == 4
    for _ in range(3):
        deployment.world.advance(30)
        assert calls(deployment, deployment.app.tick) == {LEASE: 2, POISON_LOOKS: queues, LEDGER_LIST: 1}


def test_a_running_task_whose_progress_is_not_due_adds_a_list_of_its_batch_job_and_the_node_counts() -> None:
    deployment = deployed()
    deployment.train()
    for _ in range(2):
        deployment.tick()
    assert calls(deployment, lambda: deployment.tick(1)) == {
        LEASE: 2,
        POISON_LOOKS: 4,
        LEDGER_LIST: 1,
        "Batch list_tasks": 1,
        "Batch list_pool_node_counts": 1,
    }


def test_a_record_is_read_again_only_after_another_process_has_written_it(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deployed()
    entity = deployment.train()
    for _ in range(3):
        deployment.tick()
    looks: list[str] = []
    reads: list[str] = []
    note(monkeypatch, deployment.app.own_blobs, "read_with_etag", reads)
    note(monkeypatch, deployment.app.worker.batch, "task_file_names", looks)
    for _ in range(3):
        deployment.tick(60)
    assert len(looks) == 3, "its progress was looked at"
    assert records(reads) == []
    other = deployment.new_process().worker.ledger
    version = other.read(entity.key)
    assert version is not None
    other.replace(version, version.record)
    deployment.tick(60)
    assert records(reads) == [f"active/{entity.key}.json"]
    deployment.tick(60)
    assert len(records(reads)) == 1


def records(names_read: list[str]) -> list[str]:
    """Those of the ledger's live records."""
    return [name for name in names_read if name.startswith("active/")]


def note(patch: pytest.MonkeyPatch, port: Any, method: str, calls: list[str]) -> None:
    """Calls of this method are noted by their first argument."""
    real = getattr(port, method)

    def noted(*arguments: Any) -> Any:
        calls.append(arguments[0])
        return real(*arguments)

    patch.setattr(port, method, noted)


# --- one at a time ------------------------------------------------------------------------------------------------


def test_while_another_process_holds_the_lease_a_run_asks_for_the_lease_and_nothing_else() -> None:
    deployment = deployed()
    entity = deployment.train()
    deployment.tick()
    fail_all(deployment)
    other = deployment.new_process()
    with other.timer.lease.held() as is_theirs:
        assert is_theirs
        assert calls(deployment, deployment.app.tick) == {LEASE: 1}
        assert status(deployment, entity) == "InProgress"
    deployment.app.tick()
    assert status(deployment, entity) == "Failed"


def test_the_lease_of_a_process_that_died_runs_out() -> None:
    deployment = deployed()
    entity = deployment.train()
    deployment.tick()
    fail_all(deployment)
    dead = deployment.new_process()
    assert dead.own_blobs.acquire_lease("timer.lease", LEASE_SECONDS)
    deployment.app.tick()
    assert status(deployment, entity) == "InProgress"
    deployment.world.advance(LEASE_SECONDS)
    deployment.app.tick()
    assert status(deployment, entity) == "Failed"


def test_a_run_that_fails_gives_the_lease_back(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deployed()
    entity = deployment.train()
    deployment.tick()
    fail_all(deployment)

    def breaks(*_args: object) -> None:
        raise KeyError("nobody expected this")

    with monkeypatch.context() as patch:
        patch.setattr(timer, "in_order", breaks)
        with pytest.raises(ExceptionGroup):
            deployment.app.tick()
    deployment.new_process().tick()
    assert status(deployment, entity) == "Failed"


# --- two at once: the first has lost its lease in the middle of its run -------------------------------------------


@dataclass
class Overtaken:
    """Just before a process's storage request number `access` (0 is the first), another one's whole timer run."""

    deployment: Deployment
    other: App
    access: int
    happened: bool = False

    def run(self) -> None:
        """One run of the first process's timer."""
        storage = self.deployment.storage
        real, requests = storage.send, iter(range(10_000))

        def send(request: HttpRequest, **options: Any) -> HttpResponse:
            if not self.happened and next(requests) == self.access:
                self.happened = True
                self.deployment.world.advance(LEASE_SECONDS)
                self.other.tick()
            return real(request, **options)

        storage.send = send  # type: ignore[method-assign]
        try:
            self.deployment.app.tick()
        finally:
            storage.send = real  # type: ignore[method-assign]


def test_a_run_that_is_overtaken_at_any_of_its_requests_does_no_harm() -> None:
    """One program has ended, one node is lost, one training is cancelled: each comes to one end."""
    accesses = 0
    while _overtaken(accesses):
        accesses += 1
    assert accesses > 15


def _overtaken(access: int) -> bool:
    deployment = deployed(h100=3, t4=1)
    other = deployment.new_process()
    other.tick()
    ended, lost, cancelled = (train(deployment) for _ in range(3))
    deployment.world.advance(600)
    running = {task: job for job, task in deployment.runner.running()}
    tasks = {entity: shown(deployment, entity)["trainingJob"]["taskId"] for entity in (ended, lost, cancelled)}
    deployment.runner.finish(running[tasks[ended]], tasks[ended], 1)
    control.preempt_task(deployment.world, running[tasks[lost]], tasks[lost], return_after_seconds=None)
    cancel(deployment, cancelled)
    deployment.world.advance(1)
    overtaken = Overtaken(deployment, other, access)
    overtaken.run()
    for process in (deployment.app, other) * 4:
        deployment.world.advance(30)
        process.tick()
        deployment.deliver_own()
    assert [status(deployment, one) for one in (ended, lost, cancelled)] == ["Failed", "InProgress", "Cancelled"]
    assert [one.key for one in deployment.app.worker.ledger.live()] == [lost.key]
    ((_job, task),) = deployment.runner.running()
    assert task == shown(deployment, lost)["trainingJob"]["taskId"]
    created = Counter(event["task"] for event in deployment.world.events.select("task_created"))
    assert set(created.values()) == {1} and len(created) <= 4
    return overtaken.happened


def test_a_run_that_has_lost_its_lease_does_not_end_the_next_ones() -> None:
    deployment = deployed()
    other, third = deployment.new_process(), deployment.new_process()
    assert not deployment.app.timer.lease.renew()
    with deployment.app.timer.lease.held():
        deployment.world.advance(LEASE_SECONDS - 1)
        assert deployment.app.timer.lease.renew()
        deployment.world.advance(LEASE_SECONDS - 1)
        with other.timer.lease.held() as is_theirs:
            assert not is_theirs, "it was renewed"
        deployment.world.advance(1)
        theirs = other.timer.lease.held()
        assert theirs.__enter__()
        assert not deployment.app.timer.lease.renew()
    with third.timer.lease.held() as is_ours:
        assert not is_ours, "the second one's lease outlives the end of the first one's run"
    theirs.__exit__(None, None, None)
    with third.timer.lease.held() as is_ours:
        assert is_ours


# --- late ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [timedelta(hours=3), timedelta(days=6)], ids=str)
def test_one_run_that_comes_late_deals_with_all_that_has_happened(late: timedelta) -> None:
    """The app was stopped: one program has ended, one node was lost, one training waited for its next look."""
    story = Trainings(pools=[pool("h100", 2), pool("t4", 1)], candidates=("h100", "t4"))
    for model in ("1", "2"):
        story.train(model)
        story.tick()
    story.fault(operation="get_job", status=403, code="AuthorizationFailure")
    story.train("3")
    story.mend()
    assert story.live_of("3").waits == 1
    (h100, ended), (_job, lost) = story.world.runner.running()
    control.preempt_task(story.world.batch_world, h100, lost, return_after_seconds=None)
    story.world.runner.finish(h100, ended, 0)
    story.tick(late.total_seconds())
    assert story.shown_of("1")["status"] == "Processed"
    assert [loss.pool_id for loss in story.live_of("2").losses] == ["h100"]
    assert story.pool_of("3") is not None
    at_most_one_each(story)
