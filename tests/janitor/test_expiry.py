"""Old entries of the worker's container, on the local storage: its clock is real, so the janitor's is set forward."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from shared import janitor
from shared.haste.workload import Outcome, Result
from shared.ledger.blob_ledger import BlobLedger
from shared.protocol.record import Done, State
from shared.readings import Readings
from shared.rejected import Rejected
from shared.storage.blob_container import BlobContainer
from tests.protocol.small_world import TRAINING, SmallWorld
from tests.protocol.values import record


@pytest.fixture
def blobs(storage_account: Any) -> BlobContainer:
    service = BlobServiceClient.from_connection_string(storage_account.connection_string)
    container = BlobContainer(service.get_container_client("haste-worker"))
    container.ensure()
    return container


def filled(blobs: BlobContainer) -> None:
    """A live record, an end, a cancel, a rejected message, notes and the lease's blob."""
    ledger, at = BlobLedger(blobs), datetime.now(UTC)
    ledger.create(record(State.WAITING))
    ledger.add_done(TRAINING, Done("m1", at, Outcome(Result.FAILED, "x", at)))
    ledger.add_done(TRAINING, Done("c1", at))
    Rejected(blobs).keep("train-queue", "m9", b"?", "not JSON")
    blobs.write("pools.json", b"{}")
    blobs.acquire_lease("timer.lease", 15)


def names(blobs: BlobContainer) -> list[str]:
    return sorted({name.partition("/")[0] for name, _metadata, _version in blobs.list_with_metadata("")})


def tidy(blobs: BlobContainer, days: float) -> None:
    world = SmallWorld()
    world.clock.advance((datetime.now(UTC) + timedelta(days=days) - world.clock.now()).total_seconds())
    janitor.tidy(world.worker, Readings(world.worker, by_list=True), (), blobs)


def test_ends_cancels_and_rejected_messages_go_when_their_time_is_over(blobs: BlobContainer) -> None:
    filled(blobs)
    tidy(blobs, 14.9)
    assert names(blobs) == ["active", "done", "pools.json", "rejected", "timer.lease"]
    tidy(blobs, 15.1)
    assert names(blobs) == ["active", "pools.json", "rejected", "timer.lease"]
    tidy(blobs, 29.9)
    assert "rejected" in names(blobs)
    tidy(blobs, 30.1)
    assert names(blobs) == ["active", "pools.json", "timer.lease"]
    tidy(blobs, 1000)
    assert names(blobs) == ["active", "pools.json", "timer.lease"]


def test_no_more_than_so_many_are_deleted_in_one_run(blobs: BlobContainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(janitor, "MOST_DELETIONS", 3)
    for number in range(4):
        BlobLedger(blobs).add_done(TRAINING, Done(f"c{number}", datetime.now(UTC)))
    Rejected(blobs).keep("train-queue", "m9", b"?", "not JSON")
    left = []
    for _ in range(3):
        tidy(blobs, 31)
        left.append(len(list(blobs.list_with_metadata(""))))
    assert left == [2, 0, 0]


def test_an_entry_that_was_written_anew_since_the_list_is_kept(blobs: BlobContainer) -> None:
    class Anew:
        def list_with_metadata(self, prefix: str) -> Any:
            found = list(blobs.list_with_metadata(prefix))
            for name, _metadata, _version in found:
                blobs.write(name, b"anew")
            return iter(found)

        delete = staticmethod(blobs.delete)

    filled(blobs)
    world = SmallWorld()
    world.clock.advance((datetime.now(UTC) + timedelta(days=31) - world.clock.now()).total_seconds())
    janitor.tidy(world.worker, Readings(world.worker, by_list=True), (), Anew())
    assert names(blobs) == ["active", "done", "pools.json", "rejected", "timer.lease"]
