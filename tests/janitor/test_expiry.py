"""Old entries of the worker's container, on the local storage: its clock is real, so `now` is given as a later day."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest
from azure.storage.blob import BlobServiceClient, ContainerClient
from structlog.testing import capture_logs

from bench.storage_answers import StoredAnswer
from shared.housekeeping import expiring
from shared.housekeeping.expiring import OldEntries
from shared.ledger.blob_ledger import BlobLedger
from shared.protocol.outcome import Outcome, Result, Run
from shared.protocol.record import Done, State
from shared.storage.blob_container import BlobContainer
from shared.storage.rejected import Rejected
from tests.support.small_world import TRAINING
from tests.support.values import record


class Refusing(RequestsTransport):  # type: ignore[misc]  # azure-core does not say what it is
    """Storage that does not let some blobs go: part of a URL -> status and code."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[str, tuple[int, str]] = {}

    def send(self, request: HttpRequest, **options: Any) -> Any:
        for name, (status, code) in self.refused.items():
            if request.method == "DELETE" and name in request.url:
                return StoredAnswer(request, status, {"x-ms-error-code": code, "x-ms-request-id": "1"}, b"")
        return super().send(request, **options)


@pytest.fixture
def storage() -> Refusing:
    return Refusing()


@pytest.fixture
def container(storage_account: Any, storage: Refusing) -> ContainerClient:
    connection = storage_account.connection_string
    service = BlobServiceClient.from_connection_string(connection, transport=storage, retry_total=0)
    made = service.get_container_client("haste-worker")
    made.create_container()
    return made


@pytest.fixture
def blobs(container: ContainerClient) -> BlobContainer:
    return BlobContainer(container)


def filled(blobs: BlobContainer) -> None:
    """A live record, an end, a cancel, a rejected message, notes and the lease's blob."""
    ledger, at = BlobLedger(blobs), datetime.now(UTC)
    ledger.create(record(State.WAITING))
    ledger.add_done(TRAINING, Done("m1", at, Outcome(Result.FAILED, "x", at), Run(TRAINING, "m1")))
    ledger.add_done(TRAINING, Done("c1", at))
    Rejected(blobs).keep("train-queue", "m9", b"?", "not JSON")
    blobs.write("pools.json", b"{}")
    blobs.acquire_lease("timer.lease", 15)


def with_entries(blobs: BlobContainer, done: int, rejected: int) -> None:
    for number in range(done):
        BlobLedger(blobs).add_done(TRAINING, Done(f"c{number:04}", datetime.now(UTC)))
    for number in range(rejected):
        Rejected(blobs).keep("train-queue", f"m{number:04}", b"?", "not JSON")


def all_names(blobs: BlobContainer) -> list[str]:
    return [name for name, _metadata, _version in blobs.list_with_metadata("")]


def names(blobs: BlobContainer) -> list[str]:
    return sorted({name.partition("/")[0] for name in all_names(blobs)})


def counts(blobs: BlobContainer) -> tuple[int, int]:
    """Entries below `done/` and below `rejected/`."""
    there = all_names(blobs)
    return tuple(sum(name.startswith(prefix) for name in there) for prefix in ("done/", "rejected/"))  # type: ignore[return-value]


def after(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def test_ends_cancels_and_rejected_messages_go_when_their_time_is_over(blobs: BlobContainer) -> None:
    filled(blobs)
    entries = OldEntries(blobs)
    entries.expire(after(14.9))
    assert names(blobs) == ["active", "done", "pools.json", "rejected", "timer.lease"]
    entries.expire(after(15.1))
    assert names(blobs) == ["active", "pools.json", "rejected", "timer.lease"]
    entries.expire(after(29.9))
    assert "rejected" in names(blobs)
    entries.expire(after(30.1))
    assert names(blobs) == ["active", "pools.json", "timer.lease"]
    entries.expire(after(1000))
    assert names(blobs) == ["active", "pools.json", "timer.lease"]


def test_many_ends_keep_no_rejected_message_from_going_and_the_next_run_goes_on(
    blobs: BlobContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiring, "MOST_DELETIONS", 3)
    with_entries(blobs, done=7, rejected=4)
    entries, left = OldEntries(blobs), []
    for _ in range(4):
        entries.expire(after(31))
        left.append(counts(blobs))
    assert left == [(4, 1), (1, 0), (0, 0), (0, 0)]


def test_the_deletions_of_a_day_are_more_than_a_days_entries() -> None:
    """15,000 a day, and a run every ten minutes: with room for a backlog, and in a bounded time."""
    assert expiring.MOST_DELETIONS * 144 >= 2 * 15_000
    assert expiring.MOST_SECONDS * len(expiring.KEPT) <= 20


def test_a_run_ends_when_its_time_is_over_and_the_next_goes_on_there(blobs: BlobContainer) -> None:
    """The list is too long for one run: a deletion takes four seconds here."""
    with_entries(blobs, done=8, rejected=1)
    seconds = [0.0]
    entries, left = OldEntries(Slow(blobs, seconds), lambda: seconds[0]), []
    for _ in range(4):
        entries.expire(after(31))
        left.append(counts(blobs))
    assert left == [(5, 0), (2, 0), (0, 0), (0, 0)]


class Slow:
    """Deletions that take four seconds each."""

    def __init__(self, blobs: BlobContainer, seconds: list[float]) -> None:
        self.page = blobs.page
        self._blobs, self._seconds = blobs, seconds

    def delete(self, name: str, etag: str) -> None:
        self._seconds[0] += 4
        self._blobs.delete(name, etag)


def test_an_entry_that_was_written_anew_since_the_list_is_kept(blobs: BlobContainer) -> None:
    class Anew:
        def page(self, prefix: str, token: str | None) -> Any:
            found, following = blobs.page(prefix, token)
            for name, _version in found:
                blobs.write(name, b"anew")
            return found, following

        delete = staticmethod(blobs.delete)

    filled(blobs)
    OldEntries(Anew()).expire(after(31))
    assert names(blobs) == ["active", "done", "pools.json", "rejected", "timer.lease"]


# --- what cannot be deleted -------------------------------------------------------------------------------------


def told(logs: Iterable[Any]) -> list[tuple[str, int]]:
    return [(line["first"], line["count"]) for line in logs if line["event"] == "old entries that cannot be deleted"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "BlobImmutableDueToPolicy"),
        (409, "DirectoryIsNotEmpty"),
        (412, "LeaseIdMissing"),
        (403, "AuthorizationFailure"),
        (503, "ServerBusy"),
    ],
)
def test_an_entry_that_cannot_be_deleted_stops_no_other_and_is_told_once(
    blobs: BlobContainer, storage: Refusing, status: int, code: str
) -> None:
    with_entries(blobs, done=3, rejected=1)
    storage.refused["cancel-c0001"] = (status, code)
    entries = OldEntries(blobs)
    with capture_logs() as logs:
        entries.expire(after(31))
    (kept,) = [name for name in all_names(blobs) if not name.startswith("active/")]
    assert kept == f"done/{TRAINING.key}/cancel-c0001.json"
    assert told(logs) == [(kept, 1)]
    with capture_logs() as logs:
        entries.expire(after(31))
    assert logs == []
    storage.refused.clear()
    entries.expire(after(31))
    assert all_names(blobs) == []


def test_what_cannot_be_deleted_does_not_take_every_runs_share(
    blobs: BlobContainer, storage: Refusing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiring, "MOST_DELETIONS", 2)
    with_entries(blobs, done=6, rejected=0)
    storage.refused |= {f"cancel-c000{number}": (409, "BlobImmutableDueToPolicy") for number in range(4)}
    entries = OldEntries(blobs)
    for _ in range(3):
        entries.expire(after(31))
    assert counts(blobs) == (4, 0)


def test_a_list_that_cannot_be_read_keeps_the_other_from_nothing(
    blobs: BlobContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_entries(blobs, done=1, rejected=1)
    real = Refusing.send

    def send(self: Refusing, request: HttpRequest, **options: Any) -> Any:
        if "comp=list" in request.url and "prefix=done" in request.url:
            return StoredAnswer(request, 503, {"x-ms-error-code": "ServerBusy", "x-ms-request-id": "1"}, b"")
        return real(self, request, **options)

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(Refusing, "send", send)
        OldEntries(blobs).expire(after(31))
    assert [(line["event"], line["prefix"]) for line in logs] == [("old entries not listed", "done/")]
    assert counts(blobs) == (1, 0)


def test_directories_of_a_hierarchical_namespace_are_passed_over(
    blobs: BlobContainer, container: ContainerClient, storage: Refusing
) -> None:
    """A flat list shows them as empty blobs with this metadata; one that is not empty cannot be deleted."""
    filled(blobs)
    folders = ["active", "active/training", "done", "done/training", f"done/{TRAINING.key}", "rejected/train-queue"]
    for folder in folders:
        container.upload_blob(folder, b"", metadata={"hdi_isfolder": "true"})
        storage.refused[f"{folder}?"] = (409, "DirectoryIsNotEmpty")
    with capture_logs() as logs:
        OldEntries(blobs).expire(after(31))
    assert logs == []
    assert names(blobs) == ["active", "pools.json", "timer.lease"]
    assert {str(blob.name) for blob in container.list_blobs()} >= set(folders)
    ledger = BlobLedger(blobs)
    assert [one.key for one in ledger.live()] == [TRAINING.key]
    assert ledger.done(TRAINING) == ()
