"""A message comes again and again, to two hosts, before, during and after its run; and a request comes on top of one.

Short leases and deletions that storage refuses make one message come several times, as a lost host would.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.batch.iso8601 import parse_time
from local.certificates import Certificates
from local.stack import BlockingStack, running_stack
from local.stack.settings import QUEUES
from tests.support.gate import Gate, Matching
from tests.support.outside import BatchAccount, Haste, most_live, wait_for
from tests.support.stacks import options

TENANT = "tenanta"
#: A message comes again while its task still runs, and at most five times before it counts as poison.
LEASE_SECONDS = 6
TASK_SECONDS = 9
MESSAGES = rf"^/{TENANT}/{QUEUES['IMAGE_QUEUE_NAME']}/messages/"


@pytest.fixture(scope="module")
def gate(certificates: Certificates) -> Iterator[Gate]:
    with Gate(certificates) as started:
        yield started


@pytest.fixture(scope="module")
def running(
    gate: Gate, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BlockingStack]:
    """Two hosts of one tenant share its queues."""
    folder = tmp_path_factory.mktemp("run")
    settings: dict[str, Any] = {"tenants": (TENANT,), "hosts_per_tenant": 2, "lease_seconds": LEASE_SECONDS}
    made = options(folder, certificates, task_seconds=TASK_SECONDS, adjust=gate.settings, **settings)
    with running_stack(made) as started:
        yield started


@pytest.fixture
def haste(running: BlockingStack) -> Haste:
    return Haste(running.stack, TENANT)


@pytest.fixture
def batch(running: BlockingStack) -> BatchAccount:
    return BatchAccount(running.stack)


def test_a_message_delivered_before_during_and_after_its_run_gives_one_task(
    gate: Gate, haste: Haste, batch: BatchAccount
) -> None:
    blobs, queues = gate.door(TENANT, "blob"), gate.door(TENANT, "queue")
    first_write = Matching("PUT", r"/haste-worker/active/imageryprep/", {"x-ms-meta-state": "waiting"})
    before = batch.created(prefix="img-")

    def created() -> list[str]:
        return batch.created(prefix="img-")[len(before) :]

    with (
        queues.refusing(Matching("DELETE", MESSAGES), 403, "AuthorizationFailure") as delivered,
        queues.refusing(Matching("PUT", MESSAGES), 403, "AuthorizationFailure"),
    ):
        # the first delivery is stopped before its first write; its lease runs out, and the second overtakes it
        with blobs.hold(first_write, "before") as first:
            layer = haste.new_layer()
            first.wait()
            assert delivered.hits == 0
            wait_for(created)
            first.release()
            wait_for(lambda: delivered.hits >= 2)  # both deliveries have ended
        task = created()[0]
        wait_for(lambda: batch.events("task_started", task=task))
        at_start = delivered.hits
        wait_for(lambda: batch.events("task_completed", task=task))
        assert delivered.hits > at_start, "no delivery came during the run: the test is too slow to prove anything"
        assert layer.ended() == "Processed"
        at_end = delivered.hits
        wait_for(lambda: delivered.hits > at_end)  # after the run
    wait_for(haste.is_idle)
    wait_for(lambda: haste.poisoned() == 0)  # on a busy machine it came more than five times, which is no harm

    assert created() == [task]
    assert [event["task"] for event in batch.events("task_started")].count(task) == 1
    assert layer.status == "Processed"
    assert layer.record["preprocessJob"]["taskId"] == task


def test_a_request_on_top_of_a_running_one_ends_it_and_then_runs_once(haste: Haste, batch: BatchAccount) -> None:
    model = haste.new_model(haste.prepared_layer())
    first = wait_for(lambda: batch.created(prefix="trn-"))[0]
    (started,) = wait_for(lambda: batch.events("task_started", task=first))
    # the clock of messages counts seconds: which of two within one is the newer cannot be told
    wait_for(lambda: datetime.now(UTC) - parse_time(started["time"]) > timedelta(seconds=2))

    model.train_again()
    shown: list[str] = []
    wait_for(lambda: shown.append(model.status) or len(batch.created(prefix="trn-")) == 2)  # type: ignore[func-returns-value]
    wait_for(lambda: shown.append(model.status) or model.status == "Processed")  # type: ignore[func-returns-value]
    wait_for(haste.is_idle)

    tasks = batch.created(prefix="trn-")
    assert len(tasks) == 2
    assert tasks[0] == first
    assert model.record["trainingJob"]["taskId"] == tasks[1]
    assert set(shown) <= {"Queued", "InProgress", "Processed"}
    assert model.status == "Processed"
    assert most_live(batch.events("task_created", "task_completed"), tasks) == 1
    ends = {event["task"]: event for event in batch.events("task_completed")}
    assert ends[first]["result"] == "failure"
    assert ends[tasks[1]]["result"] == "success"
    assert len(batch.events("task_started", task=tasks[1])) == 1
