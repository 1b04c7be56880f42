"""What the protocol needs of its ledger, on the one in blob storage and on the tests' own in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from shared.errors import Conflict
from shared.kinds import Entity, Kind
from shared.ledger.blob_ledger import BlobLedger
from shared.ledger.port import Ledger, LiveSummary
from shared.protocol.outcome import Outcome, Result
from shared.protocol.record import Done, EndReason, Loss, NodeRun, Record, Request, State
from shared.storage.blob_container import BlobContainer
from tests.support.memory_ledger import MemoryLedger
from tests.support.values import ENTITY, at, cancelled, ended, placement, record, request

OTHER = Entity(Kind.INFERENCE, ENTITY.project_id, ENTITY.entity_id)

FULL = record(
    State.ENDING,
    request=Request("m1", at(0), ("trn-held", "trn-older"), "haste-pool"),
    attempt=3,
    placement=replace(placement(), rejected=("t4: no idle node", "v100: does not exist")),
    earlier=(placement(attempt=1, pool="t4"), placement(attempt=2)),
    node_run=NodeRun("tvmps_1", at(20)),
    losses=(Loss("t4", 1, at(5), at(9)),),
    cancel_asked=at(30),
    next=(request("m2", 10), request("m3", 11)),
    end_reason=EndReason.GIVE_UP,
    ending_since=at(40),
    reason="waiting for quota",
    waits=4,
    stands_aside=True,
)
FULL_END = replace(
    FULL,
    state=State.FINISHING,
    end_reason=None,
    finishing_since=at(50),
    outcome=Outcome(Result.FAILED, "Größe × Ω, and a line\nmore", at(60)),
    end_was_shown=True,
    haste_record_gone=True,
    zip_asked=True,
)


@pytest.fixture(params=["memory", "blob"])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    if request.param == "memory":
        return MemoryLedger()
    return BlobLedger(BlobContainer(request.getfixturevalue("container")))


# --- live records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [FULL, FULL_END], ids=["ending", "finishing"])
def test_what_is_written_is_read(ledger: Ledger, full: Record) -> None:
    assert ledger.read(ENTITY.key) is None
    created = ledger.create(full)
    found = ledger.read(ENTITY.key)
    assert created is not None and found is not None
    assert found.record == full
    assert (found.etag, found.written_at) == (created.etag, created.written_at)


@pytest.mark.parametrize("state", State)
def test_the_least_record_of_each_state_is_read_as_it_was_written(ledger: Ledger, state: State) -> None:
    ledger.create(record(state))
    found = ledger.read(ENTITY.key)
    assert found is not None and found.record == record(state)


def test_a_record_is_created_once(ledger: Ledger) -> None:
    assert ledger.create(record(State.WAITING)) is not None
    assert ledger.create(record(State.WAITING, request=request("m2"))) is None
    found = ledger.read(ENTITY.key)
    assert found is not None and found.record.request.request_id == "m1"


def test_entities_do_not_share_a_record(ledger: Ledger) -> None:
    ledger.create(record(State.WAITING))
    assert ledger.read(OTHER.key) is None
    assert ledger.create(replace(record(State.WAITING), entity=OTHER)) is not None


def test_a_record_is_replaced_at_exactly_the_version_that_was_read(ledger: Ledger) -> None:
    first = ledger.create(record(State.WAITING))
    assert first is not None
    second = ledger.replace(first, record(State.PLACED))
    assert second.record == record(State.PLACED)
    assert second.etag != first.etag
    with pytest.raises(Conflict):
        ledger.replace(first, record(State.FINISHING))
    found = ledger.read(ENTITY.key)
    assert found is not None and found.record == record(State.PLACED)
    third = ledger.replace(second, record(State.ENDING))
    assert ledger.read(ENTITY.key) == third


def test_writing_the_same_again_makes_a_new_version(ledger: Ledger) -> None:
    """A decision on the version before must not be written over it, even if nothing looks changed."""
    first = ledger.create(record(State.WAITING))
    assert first is not None
    ledger.replace(first, first.record)
    with pytest.raises(Conflict):
        ledger.replace(first, first.record)


def test_a_record_is_removed_at_exactly_the_version_that_was_read(ledger: Ledger) -> None:
    first = ledger.create(record(State.FINISHING))
    assert first is not None
    second = ledger.replace(first, record(State.FINISHING, next=(request("m2", 5),)))
    with pytest.raises(Conflict):
        ledger.remove(first)
    assert ledger.read(ENTITY.key) is not None
    ledger.remove(second)
    assert ledger.read(ENTITY.key) is None


def test_what_is_gone_or_made_anew_is_no_version_that_was_read(ledger: Ledger) -> None:
    first = ledger.create(record(State.WAITING))
    assert first is not None
    ledger.remove(first)
    for write in _writes(ledger, first.record):
        with pytest.raises(Conflict):
            write(first)
    ledger.create(record(State.WAITING))
    for write in _writes(ledger, first.record):
        with pytest.raises(Conflict):
            write(first)


def _writes(ledger: Ledger, new: Record) -> list[Callable[[object], object]]:
    return [lambda version: ledger.replace(version, new), ledger.remove]  # type: ignore[arg-type,list-item]


def test_the_storage_clock_dates_every_version(ledger: Ledger) -> None:
    first = ledger.create(record(State.WAITING))
    assert first is not None
    second = ledger.replace(first, record(State.FINISHING))
    found = ledger.read(ENTITY.key)
    assert found is not None
    assert first.written_at <= second.written_at == found.written_at
    assert abs(found.written_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert found.written_at.tzinfo is not None


@pytest.mark.parametrize("written", [{}, {"waits": 3}, {"finishing_since": at(9)}])
def test_a_record_that_finishes_keeps_when_it_began_to_however_often_it_is_written(
    ledger: Ledger, written: dict[str, Any]
) -> None:
    placed = ledger.create(record(State.PLACED))
    assert placed is not None
    began = ledger.replace(placed, record(State.FINISHING))
    assert began.finishing_since == began.written_at
    again = began
    for _ in range(2):
        again = ledger.replace(again, record(State.FINISHING, **written))
        found = ledger.read(ENTITY.key)
        assert found == again
        assert again.record.finishing_since == again.finishing_since == began.written_at


def test_what_begins_anew_after_a_record_that_finished_has_finished_at_no_time(ledger: Ledger) -> None:
    began = ledger.create(record(State.FINISHING))
    assert began is not None
    anew = ledger.replace(ledger.replace(began, began.record), record(State.WAITING))
    assert anew.record == record(State.WAITING)
    with pytest.raises(ValueError, match="waiting"):
        _ = anew.finishing_since


# --- the list of live records -----------------------------------------------------------------------------------


def test_live_records_are_told_by_what_a_tick_needs(ledger: Ledger) -> None:
    placed = record(State.PLACED, not_before=at(0.25))
    waiting = replace(record(State.WAITING), entity=OTHER)
    for one in (placed, waiting):
        ledger.create(one)
    told = {summary.key: summary for summary in ledger.live()}
    assert told == {
        ENTITY.key: LiveSummary(
            ENTITY.key, State.PLACED, at(0.25), at(0), "training", "job-h100", placement().task_id, "h100"
        ),
        OTHER.key: LiveSummary(OTHER.key, State.WAITING, at(60), at(0), "interactive"),
    }


@pytest.mark.parametrize("fields", [{"cancel_asked": at(5)}, {"next": (request("m2", 5),)}])
def test_the_list_tells_that_a_record_is_not_wanted_any_more(ledger: Ledger, fields: dict[str, Any]) -> None:
    version = ledger.create(record(State.PLACED))
    assert version is not None
    ledger.replace(version, record(State.PLACED, **fields))
    (summary,) = ledger.live()
    assert summary.is_unwanted


def test_the_list_tells_that_a_task_is_taken_over(ledger: Ledger) -> None:
    ledger.create(record(State.WAITING, request=Request("trn-theirs", at(0), adopted_job_id="haste-pool")))
    (summary,) = ledger.live()
    assert summary.is_taken_over


def test_the_list_tells_that_a_job_waits_for_something_else_than_a_place(ledger: Ledger) -> None:
    ledger.create(record(State.WAITING, waits=2, stands_aside=True))
    (summary,) = ledger.live()
    assert summary.has_waited and summary.stands_aside and not summary.holds_back(at(100))


RUN = NodeRun("tvmps_1", at(20))


@pytest.mark.parametrize(
    ("fields", "is_running"),
    [
        ({}, False),
        ({"node_run": RUN}, True),
        ({"node_run": RUN, "losses": (Loss("h100", 1, RUN.started_at, at(30)),)}, False),
        ({"node_run": RUN, "losses": (Loss("h100", 1, at(5), at(9)),)}, True),
        ({"node_run": RUN, "attempt": 2, "losses": (Loss("t4", 1, RUN.started_at, at(30)),)}, True),
    ],
)
def test_the_list_tells_that_a_task_has_been_seen_running(
    ledger: Ledger, fields: dict[str, Any], is_running: bool
) -> None:
    """A task that is not yet seen running will take a slot; one that has lost its run will take one again."""
    ledger.create(record(State.PLACED, **fields))
    (summary,) = ledger.live()
    assert summary.is_running is is_running


@pytest.mark.parametrize("waits", [0, 1, 7])
def test_the_list_tells_who_has_been_refused_a_place(ledger: Ledger, waits: int) -> None:
    ledger.create(record(State.WAITING, waits=waits))
    (summary,) = ledger.live()
    assert summary.has_waited is (waits > 0)


def test_the_list_tells_when_a_request_was_made_to_the_microsecond(ledger: Ledger) -> None:
    """Requests are ordered by it."""
    ledger.create(record(State.WAITING, request=request("m1", 0.000001)))
    (summary,) = ledger.live()
    assert summary.asked == at(0.000001)


def test_the_list_follows_every_write(ledger: Ledger) -> None:
    version = ledger.create(record(State.PLACED))
    assert version is not None
    version = ledger.replace(version, record(State.WAITING, attempt=2, not_before=at(99)))
    (summary,) = ledger.live()
    assert (summary.state, summary.not_before, summary.job_id, summary.task_id) == (State.WAITING, at(99), None, None)
    ledger.remove(version)
    assert list(ledger.live()) == []


def test_ends_are_no_live_records(ledger: Ledger) -> None:
    ledger.add_done(ENTITY, ended("m1", 0))
    assert list(ledger.live()) == []


# --- ends and cancels -------------------------------------------------------------------------------------------


def by_id(entries: tuple[Done, ...]) -> list[Done]:
    return sorted(entries, key=lambda one: (one.entry_id, one.is_cancel))


def test_ends_and_cancels_are_read_as_they_were_written(ledger: Ledger) -> None:
    entries = [ended("m1", 0, held=("trn-held",)), ended("m2", 5, Result.SUPERSEDED), cancelled("c1", 7)]
    for entry in entries:
        assert ledger.add_done(ENTITY, entry)
    assert by_id(ledger.done(ENTITY)) == by_id(tuple(entries))
    assert ledger.done(OTHER) == ()


def test_an_end_is_never_overwritten(ledger: Ledger) -> None:
    assert ledger.add_done(ENTITY, ended("m1", 0, Result.COMPLETED)) is True
    assert ledger.add_done(ENTITY, ended("m1", 0, Result.FAILED)) is False
    assert ledger.done(ENTITY) == (ended("m1", 0, Result.COMPLETED),)
    assert ledger.add_done(ENTITY, cancelled("c1", 1)) is True
    assert ledger.add_done(ENTITY, cancelled("c1", 2)) is False
    assert cancelled("c1", 1) in ledger.done(ENTITY)


def test_a_cancel_and_an_end_of_the_same_id_are_two_entries(ledger: Ledger) -> None:
    for entry in (cancelled("m1", 3), ended("m1", 0)):
        assert ledger.add_done(ENTITY, entry)
    assert by_id(ledger.done(ENTITY)) == [ended("m1", 0), cancelled("m1", 3)]


@pytest.mark.parametrize(
    "name",
    [
        "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34+inference",
        "trn-7e1a9c52-3d4b-4f80-b6a7-2c3d4e5f6a71",
        "../../active/training/x",
        "a/b",
        "a b?c=d#e%2F",
        "…ünïcödé…",
        "x" * 300,
        ".",
        "",
    ],
)
def test_any_id_is_kept_as_it_is(ledger: Ledger, name: str) -> None:
    for entry in (ended(name, 0), cancelled(name, 1)):
        assert ledger.add_done(ENTITY, entry)
        assert not ledger.add_done(ENTITY, entry)
    assert by_id(ledger.done(ENTITY)) == [ended(name, 0), cancelled(name, 1)]
    assert list(ledger.live()) == []


def test_ids_that_look_alike_are_distinct(ledger: Ledger) -> None:
    names = ["a", "A", "a/", "a ", "%61", "x" * 101, "x" * 102]
    for name in names:
        assert ledger.add_done(ENTITY, ended(name, 0))
    assert {entry.entry_id for entry in ledger.done(ENTITY)} == set(names)


# --- in blob storage --------------------------------------------------------------------------------------------


def test_the_list_reads_no_record(container: ContainerClient) -> None:
    """One call shows 5,000 live jobs: the state is in the metadata, so that the content is not needed."""
    ledger = BlobLedger(BlobContainer(container))
    ledger.create(FULL)
    name = f"active/{ENTITY.key}.json"
    metadata = container.get_blob_client(name).get_blob_properties().metadata
    container.upload_blob(name, b"not a record", overwrite=True, metadata=metadata)
    (summary,) = ledger.live()
    assert (summary.key, summary.state, summary.task_id) == (ENTITY.key, State.ENDING, placement().task_id)


def test_names_are_safe_and_tell_kind_and_entity_apart(container: ContainerClient) -> None:
    ledger = BlobLedger(BlobContainer(container))
    ledger.create(FULL)
    ledger.add_done(ENTITY, ended("../x", 0))
    ledger.add_done(ENTITY, cancelled("c1", 0))
    names = sorted(blob.name for blob in container.list_blobs())
    assert names[0] == f"active/training/{ENTITY.key.rpartition('/')[2]}.json"
    assert f"done/{ENTITY.key}/cancel-c1.json" in names
    assert all(len(name) < 150 and ".." not in name and name.isascii() for name in names)


def test_an_end_that_expires_between_list_and_read_is_just_gone(container: ContainerClient) -> None:
    ledger = BlobLedger(BlobContainer(container))
    for name in ("m1", "m2"):
        ledger.add_done(ENTITY, ended(name, 0))
    real = ledger._container.read_with_etag

    def expires_first(name: str) -> object:
        if name.endswith("m1.json"):
            container.delete_blob(name)
        return real(name)

    ledger._container.read_with_etag = expires_first  # type: ignore[method-assign,assignment]
    assert ledger.done(ENTITY) == (ended("m2", 0),)


# --- records that were listed -------------------------------------------------------------------------------------


def test_a_listed_record_is_read_as_it_is_now(ledger: Ledger) -> None:
    first = ledger.create(record(State.WAITING))
    assert first is not None
    (listed,) = ledger.live()
    for _ in range(2):
        found = ledger.read_listed(listed)
        assert found is not None and (found.record, found.etag) == (first.record, first.etag)
    second = ledger.replace(first, record(State.PLACED))
    (listed,) = ledger.live()
    found = ledger.read_listed(listed)
    assert found is not None and (found.record, found.etag) == (second.record, second.etag)
    assert found.written_at == second.written_at
    ledger.remove(second)


def test_a_record_that_was_written_or_removed_by_another_process_since_is_read_anew(
    container: ContainerClient,
) -> None:
    ours, theirs = BlobLedger(BlobContainer(container)), BlobLedger(BlobContainer(container))
    ours.create(record(State.WAITING))
    (listed,) = ours.live()
    version = ours.read_listed(listed)
    assert version is not None
    theirs.replace(version, record(State.PLACED))
    (listed,) = ours.live()
    found = ours.read_listed(listed)
    assert found is not None and found.record == record(State.PLACED)
    theirs.remove(found)
    assert ours.read_listed(replace(listed, etag="another")) is None


def test_a_record_that_is_listed_unchanged_is_not_read_again(container: ContainerClient) -> None:
    blobs = BlobContainer(container)
    ledger = BlobLedger(blobs)
    ledger.create(record(State.WAITING))
    version = ledger.read(ENTITY.key)
    assert version is not None
    ledger.replace(version, record(State.PLACED))

    def unread(name: str) -> None:
        raise AssertionError(f"{name} is read")

    blobs.read_with_etag = unread  # type: ignore[method-assign]
    for _ in range(3):
        (listed,) = ledger.live()
        assert ledger.read_listed(listed) is not None


def test_a_record_that_was_put_back_by_hand_is_listed_as_well(container: ContainerClient) -> None:
    """Copies lose the metadata. One that nobody can read hinders no other."""
    ledger = BlobLedger(BlobContainer(container))
    waiting = replace(record(State.WAITING), entity=OTHER)
    for one in (FULL, waiting):
        ledger.create(one)
    told = list(ledger.live())
    blob = container.get_blob_client(f"active/{ENTITY.key}.json")
    blob.upload_blob(blob.download_blob().readall(), overwrite=True)
    container.upload_blob("active/training/broken.json", b"{}")
    found = ledger.live()
    assert list(found) == told
    assert [one.key for one in found.standing_still] == ["training/broken"]
    assert not found.names_every_task
