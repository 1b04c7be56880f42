"""What is remembered about pools, in blob storage and in the tests' memory: nothing that somebody notes is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from azure.storage.blob import ContainerClient
from structlog.testing import capture_logs

from shared.errors import Conflict
from shared.ledger.blob_ledger import BlobLedger
from shared.ledger.notes import BlobNotes, NotesStore
from shared.ledger.pool_notes import CoolDown, PoolNote, PoolNotes, QuickFailure
from shared.storage.blob_container import BlobContainer
from tests.support.memory_notes import MemoryNotes
from tests.support.values import NOON, at

FULL = PoolNotes(
    {
        "h100": PoolNote(
            CoolDown(at(1800), "node …x fails every task at once"),
            (QuickFailure("tvmps_1", "trn-1", "m1", at(5)), QuickFailure("tvmps_1", "trn-2", "m2", at(9.25))),
            dead_cycles=2,
            is_dead=True,
        ),
        "t4": PoolNote(),
    },
    {"tenant-training-h100-2026w33": at(7)},
)


@dataclass
class Processes:
    """Several processes of one tenant; `open` makes the store of a further one."""

    open: Callable[[], NotesStore]


@pytest.fixture(params=["memory", "blob"])
def processes(request: pytest.FixtureRequest) -> Processes:
    if request.param == "memory":
        only = MemoryNotes()
        return Processes(lambda: only)
    container = request.getfixturevalue("container")
    return Processes(lambda: BlobNotes(BlobContainer(container)))


def cooling(pool: str) -> Callable[[PoolNotes], PoolNotes]:
    return lambda notes: notes.with_cool_down(pool, at(1800), "a reason")


def test_nothing_is_remembered_at_first(processes: Processes) -> None:
    assert processes.open().read() == PoolNotes()


def test_what_one_process_notes_all_others_read(processes: Processes) -> None:
    assert processes.open().update(lambda _notes: FULL) == FULL
    assert processes.open().read() == FULL
    assert processes.open().read().avoid(NOON).keys() == {"h100"}


def test_a_change_is_applied_to_the_newest_notes(processes: Processes) -> None:
    first, second = processes.open(), processes.open()
    first.update(cooling("h100"))
    assert set(second.update(cooling("t4")).pools) == {"h100", "t4"}
    assert set(first.read().pools) == {"h100", "t4"}


@pytest.mark.parametrize("before", [PoolNotes(), FULL], ids=["the first note", "more notes"])
def test_a_change_that_meets_another_in_between_is_applied_again(processes: Processes, before: PoolNotes) -> None:
    first, second = processes.open(), processes.open()
    first.update(lambda _notes: before)
    seen: list[PoolNotes] = []

    def overtaken(notes: PoolNotes) -> PoolNotes:
        seen.append(notes)
        if len(seen) == 1:
            second.update(cooling("v100"))
        return cooling("a10")(notes)

    after = first.update(overtaken)
    assert len(seen) == 2 and "v100" in seen[1].pools
    assert {"v100", "a10", *before.pools} == set(after.pools) == set(first.read().pools)


def test_who_is_overtaken_all_the_time_gives_up_and_has_changed_nothing(processes: Processes) -> None:
    first, second = processes.open(), processes.open()
    overtakers = iter(range(100))

    def overtaken(notes: PoolNotes) -> PoolNotes:
        second.update(cooling(f"other-{next(overtakers)}"))
        return cooling("mine")(notes)

    with pytest.raises(Conflict):
        first.update(overtaken)
    left = set(first.read().pools)
    assert "mine" not in left
    assert left == {f"other-{n}" for n in range(next(overtakers))}


def test_a_change_that_changes_nothing_is_not_written(processes: Processes) -> None:
    first, second = processes.open(), processes.open()
    first.update(lambda _notes: FULL)

    def overtaken(notes: PoolNotes) -> PoolNotes:
        second.update(cooling("v100"))
        return notes

    first.update(overtaken)
    assert "v100" in first.read().pools


def test_a_change_that_fails_leaves_the_notes_as_they_were(processes: Processes) -> None:
    first = processes.open()
    first.update(lambda _notes: FULL)

    def breaks(_notes: PoolNotes) -> PoolNotes:
        raise KeyError("x")

    with pytest.raises(KeyError):
        first.update(breaks)
    assert first.read() == FULL


def test_the_blob_is_not_written_when_nothing_changes(container: ContainerClient) -> None:
    """A tick looks at every pool, and mostly there is nothing new."""
    notes = BlobNotes(BlobContainer(container))
    notes.update(lambda before: before)
    assert [blob.name for blob in container.list_blobs()] == []
    notes.update(cooling("h100"))
    (written,) = container.list_blobs()
    notes.update(cooling("h100"))
    (same,) = container.list_blobs()
    assert same.etag == written.etag


def noted(notes: NotesStore, failure: QuickFailure) -> bool:
    try:
        notes.update(lambda before: before.with_quick_failure("h100", failure))
    except Conflict:
        return False
    return True


def test_processes_that_write_at_the_same_moment_lose_nothing(container: ContainerClient) -> None:
    """Four at once, each going on until its note is in."""
    together = threading.Barrier(4)

    def write(name: str) -> None:
        notes = BlobNotes(BlobContainer(container))
        together.wait(timeout=30)
        for n in range(3):
            failure = QuickFailure("node", f"{name}-{n}", name, at(0) + timedelta(seconds=n))
            while not noted(notes, failure):
                continue

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    found = BlobNotes(BlobContainer(container)).read().pools["h100"].quick_failures
    assert {one.task_id for one in found} == {f"{name}-{n}" for name in "abcd" for n in range(3)}


def test_notes_beside_the_ledger_are_no_live_record(container: ContainerClient) -> None:
    BlobNotes(BlobContainer(container)).update(lambda _notes: FULL)
    assert list(BlobLedger(BlobContainer(container)).live()) == []


def test_notes_that_nobody_can_read_are_forgotten_and_told_to_the_log(container: ContainerClient) -> None:
    store = BlobNotes(BlobContainer(container))
    container.upload_blob("pools.json", b"[]")
    with capture_logs() as logs:
        assert store.read() == PoolNotes()
    assert logs[0]["log_level"] == "error"
    naive = b'{"pools": {"h100": {"cool_down": {"until": "2026-08-12T12:00:00", "why": "x"}}}}'
    container.upload_blob("pools.json", naive, overwrite=True)
    assert store.read() == PoolNotes()
    store.update(cooling("t4"))
    assert "t4" in store.read().pools


def test_what_a_later_version_notes_besides_is_passed_over(container: ContainerClient) -> None:
    BlobNotes(BlobContainer(container)).update(lambda _notes: FULL)
    stored = json.loads(container.download_blob("pools.json").readall())
    for part in (stored, stored["pools"]["h100"], stored["pools"]["h100"]["cool_down"]):
        part["colour"] = "blue"
    container.upload_blob("pools.json", json.dumps(stored).encode(), overwrite=True)
    assert BlobNotes(BlobContainer(container)).read() == FULL
