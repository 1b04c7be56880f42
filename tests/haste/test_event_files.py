"""Event files are followed: a look reads on where the one before has stopped, and pictures are passed over."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.images.training.app.event_file import masked_crc32c, record, scalar_event, version_event
from shared.haste.event_files import AT_NODE, AT_UPLOADED, EventFiles, Look, Seen, read_on
from shared.haste.training_metrics import History
from tests.support import event_samples
from tests.support.event_samples import FILES, LongFile, Reads

LOOKS = {"node": AT_NODE, "uploaded": AT_UPLOADED}


def shown(past: History | None) -> list[dict[str, Any]]:
    """The epochs as HASTE's record has them."""
    found = json.loads(past.logs()) if past else []
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", FILES)
def test_the_history_is_what_tensorboard_reads(name: str, look: str) -> None:
    reads = Reads(lambda: event_samples.content(name))
    past = EventFiles().history("trn-1", name, reads, LOOKS[look])
    assert past is not None
    scalars = event_samples.logged(name)
    assert shown(past) == event_samples.epochs(scalars)
    assert len(past.epochs) == {"five": 5, "warm": 3}[name.split(".")[3].split("-")[0]]


@pytest.mark.parametrize("name", FILES)
def test_while_it_grows_every_look_tells_what_tensorboard_would(name: str) -> None:
    files, length = EventFiles(), 0
    reads = Reads(lambda: event_samples.content(name)[:length])
    for length in event_samples.cuts(name):
        past = files.history("trn-1", name, reads, AT_NODE)
        assert shown(past) == event_samples.epochs(event_samples.logged(name, length))


def test_a_look_reads_once_and_only_what_is_new() -> None:
    file, files = LongFile(1_790_000_000), EventFiles()
    reads = Reads(lambda: file.content)
    for epoch in range(40):
        added = len(file.add_epoch()) if epoch else len(file.content) + len(file.add_epoch()) - 4
        past = files.history("trn-1", "file", reads, AT_NODE)
        assert past is not None
        assert [one.number for one in past.epochs] == list(range(epoch + 1))
        assert reads.since() == [added + 4], "what is new, and the last checksum before it"
        files.history("trn-1", "file", reads, AT_NODE)
        assert reads.since() == [4], "nothing is new"
    assert len(file.content) > 40 * 1024 * 1024


def test_pictures_that_go_on_behind_a_read_are_not_read() -> None:
    def picture(length: int) -> bytes:
        header = struct.pack("<Q", length)
        return header + struct.pack("<I", masked_crc32c(header)) + bytes(length + 4)

    epoch = [record(scalar_event(60.0 * number, number, "epoch", float(number))) for number in range(3)]
    data = record(version_event(0)) + b"".join(picture(20_000_000) + one for one in epoch)
    reads = Reads(lambda: data)
    seen = read_on(Seen(), reads, AT_NODE)
    assert seen.position == len(data)
    assert sorted(seen.logged.ends) == [0, 1, 2]
    assert sum(reads.lengths) < 3 * AT_NODE.bytes_each + 100 < len(data) // 9


def test_of_pictures_no_byte_is_looked_at() -> None:
    """Their checksums would take a second per epoch."""
    file = LongFile(1_790_000_000)
    whole = file.content + file.add_epoch()
    damaged = whole.replace(b"\x89PNG", b"\x00PNG")
    assert damaged != whole
    assert read_on(Seen(), Reads(lambda: damaged), AT_NODE).logged.ends.keys() == {0}


def test_a_new_process_catches_up_in_a_few_looks_and_shows_no_part() -> None:
    file = LongFile(1_790_000_000)
    for _ in range(40):
        file.add_epoch()
    files, reads = EventFiles(), Reads(lambda: file.content)
    looks = 0
    past = None
    while past is None:
        looks += 1
        assert looks <= len(file.content) // (8 * 1024 * 1024) + 1
        past = files.history("trn-1", "file", reads, AT_NODE)
        lengths = reads.since()
        assert len(lengths) <= 8
        assert sum(lengths) <= 8 * 1024 * 1024
    assert len(past.epochs) == 40


def test_the_uploaded_file_is_read_to_its_end_from_where_the_node_s_was_left() -> None:
    file, files = LongFile(1_790_000_000), EventFiles()
    reads = Reads(lambda: file.content)
    for _ in range(39):
        file.add_epoch()
        files.history("trn-1", "file", reads, AT_NODE)
    file.add_epoch()
    reads.since()
    past = files.history("trn-1", "file", reads, AT_UPLOADED)
    assert past is not None
    assert len(past.epochs) == 40
    assert len(reads.lengths) == 1
    reads.since()
    assert EventFiles().history("trn-1", "file", reads, AT_UPLOADED) == past
    assert len(reads.lengths) <= 13, "by a process that knows nothing"


def small_file(began: float, epochs: int) -> bytes:
    events = [scalar_event(began + 60.0 * number, number, "epoch", float(number)) for number in range(epochs)]
    return b"".join(record(event) for event in (version_event(began), *events))


@pytest.mark.parametrize("epochs", [1, 5, 9])
def test_a_file_that_is_another_one_by_now_is_read_from_its_beginning(epochs: int) -> None:
    """Batch has run the task anew: its file may be shorter, as long, or longer than the one before."""
    data = small_file(1_790_000_000, 5)
    files, reads = EventFiles(), Reads(lambda: data)
    files.history("trn-1", "file", reads, AT_NODE)
    data = small_file(1_790_090_000, epochs)
    past = files.history("trn-1", "file", reads, AT_NODE)
    assert past == EventFiles().history("trn-1", "file", reads, AT_NODE)
    assert past is not None
    assert len(past.epochs) == epochs


def test_a_file_of_another_name_is_read_from_its_beginning() -> None:
    files = EventFiles()
    files.history("trn-1", "file.1", Reads(lambda: small_file(1_790_000_000, 5)), AT_NODE)
    newer = Reads(lambda: small_file(1_790_000_000, 6)[:-10])
    past = files.history("trn-1", "file.2", newer, AT_NODE)
    assert past is not None
    assert len(past.epochs) == 5
    assert sum(newer.lengths) == len(small_file(1_790_000_000, 6)) - 10, "also if it begins alike"


def test_while_the_node_does_not_answer_nothing_is_forgotten() -> None:
    file, data = small_file(1_790_000_000, 5), None
    files, reads = EventFiles(), Reads(lambda: data)
    assert files.history("trn-1", "file", reads, AT_NODE) is None
    data = file
    past = files.history("trn-1", "file", reads, AT_NODE)
    data = None
    files.history("trn-1", "file", reads, AT_NODE)
    data = file
    reads.since()
    assert files.history("trn-1", "file", reads, AT_NODE) == past
    assert reads.lengths == [4]


def test_damage_is_the_end_until_it_is_mended() -> None:
    file = small_file(1_790_000_000, 5)
    last = len(file) - 30
    data = file[:last] + bytes(len(file) - last) + bytes(3_000_000)
    reads = Reads(lambda: data)
    seen = read_on(Seen(), reads, AT_NODE)
    for _ in range(3):
        reads.since()
        assert read_on(seen, reads, AT_NODE) == seen
        assert len(reads.lengths) == 1
    assert len(seen.logged.ends) == 4
    data = file
    assert len(read_on(seen, reads, AT_NODE).logged.ends) == 5


def test_a_record_that_is_no_event_is_passed_over() -> None:
    """It was written whole; only what it means is not known."""
    data = record(version_event(0)) + record(b"\x0b\x0b") + record(scalar_event(60.0, 1, "epoch", 0.0))
    assert read_on(Seen(), Reads(lambda: data), AT_NODE).logged.ends.keys() == {0}


def test_what_is_remembered_does_not_grow_without_limit() -> None:
    files, reads = EventFiles(), Reads(lambda: small_file(1_790_000_000, 2))
    for number in range(2500):
        files.history(f"trn-{number}", "file", reads, AT_NODE)
    assert len(files._seen) <= 1000
    reads.since()
    files.history("trn-2499", "file", reads, AT_NODE)
    assert reads.lengths == [4]


def test_one_look_computes_so_many_checksums_and_not_more() -> None:
    one = record(scalar_event(60.0, 1, "train_loss", 0.5))
    data = one * (150_000 // len(one))
    look = Look(100, 20_000, 50_000)
    reads = Reads(lambda: data)
    seen = read_on(Seen(), reads, look)
    assert len(reads.lengths) == 3, "with the third one it is as much as it may"
    assert not seen.has_been_current
    assert read_on(read_on(seen, reads, look), reads, look).position == len(data)
    assert AT_NODE.most_bytes_looked_at <= 2 * 1024 * 1024


SMALL_LOOK = Look(1000, 20_000, 1_000_000)
_EVENTS = st.builds(
    scalar_event,
    st.floats(0, 2e9),
    st.integers(0, 5000),
    st.sampled_from(["epoch", "train_loss", "train_MulticlassAccuracy", "val_loss"]),
    st.floats(0, 50, width=32),
)
_DATA = st.one_of(_EVENTS, st.binary(max_size=40), st.integers(17_000, 70_000).map(bytes))


@given(st.lists(_DATA, max_size=12), st.lists(st.integers(0, 200_000), max_size=8), st.booleans())
def test_reading_on_after_any_cuts_is_reading_at_once(data: list[bytes], at: list[int], is_whole: bool) -> None:
    whole = b"".join(record(one) if len(one) < 100 else _picture(one) for one in data)
    whole = whole if is_whole else whole[: len(whole) * 2 // 3]
    seen = Seen()
    for cut in (*sorted(at), len(whole)):
        seen = read_on(seen, Reads(lambda end=cut: whole[:end]), SMALL_LOOK)  # type: ignore[misc]
    assert seen == read_on(Seen(), Reads(lambda: whole), AT_UPLOADED)


def _picture(data: bytes) -> bytes:
    header = struct.pack("<Q", len(data))
    return header + struct.pack("<I", masked_crc32c(header)) + data + bytes(4)


_ANY_LENGTH = st.integers(0, 2**64 - 1).map(lambda length: struct.pack("<Q", length))
_HOSTILE = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(record),
    _ANY_LENGTH.map(lambda header: header + struct.pack("<I", masked_crc32c(header))),
    _EVENTS.map(record),
)


@given(st.lists(_HOSTILE, max_size=12).map(b"".join), st.lists(st.integers(0, 2000), max_size=4))
def test_any_bytes_are_read_in_few_reads(data: bytes, lengths: list[int]) -> None:
    files = EventFiles()
    for length in (*lengths, len(data)):  # also one that becomes shorter
        reads = Reads(lambda end=length: data[:end])  # type: ignore[misc]
        past = files.history("trn-1", "file", reads, AT_NODE)
        assert len(reads.lengths) <= AT_NODE.most_reads
        shown(past)
