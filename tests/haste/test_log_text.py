"""HASTE's log text: the format its UI reads, no line twice, and a bound."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.haste import log_text

AT = datetime(2026, 8, 12, 9, 0, 0, tzinfo=UTC)
#: What HASTE's UI takes for an entry; the text starts at index 33 after the colon.
UI_ENTRY = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+\d\d:\d\d")


def test_timestamp_has_32_characters_in_utc() -> None:
    assert log_text.timestamp(AT) == "2026-08-12T09:00:00.000000+00:00"
    tokyo = AT.astimezone(timezone(timedelta(hours=9)))
    assert log_text.timestamp(tokyo) == log_text.timestamp(AT)
    assert len(log_text.timestamp(AT)) == 32


def test_append() -> None:
    log = log_text.append("", log_text.entry("Queued", AT))
    assert log == "\n2026-08-12T09:00:00.000000+00:00: Queued"
    line = log.split("\n")[1]
    assert UI_ENTRY.match(line)
    assert line[33:] == " Queued"
    assert log_text.append(log, log_text.entry("Queued", AT)) == log


def test_a_line_that_only_starts_alike_is_new() -> None:
    log = log_text.append("", log_text.entry("Generating results again", AT))
    assert log_text.append_new(log, [log_text.entry("Generating results", AT)])[1] == 1


def test_last_text_is_that_of_the_last_entry_with_a_timestamp() -> None:
    assert log_text.last_text("") == ""
    assert log_text.last_text("no entry") == ""
    log = log_text.append("", log_text.entry("First", AT))
    log = log_text.append(log, log_text.entry("In progress", AT, "epoch: 1"))
    assert log_text.last_text(log) == "In progress"


def test_progress_blocks_go_first_and_the_oldest_of_them() -> None:
    log = log_text.append("", log_text.entry("Queued", AT))
    for epoch in range(1000):
        block = (f"epoch: {epoch}", "approxMinutesToComplete: 5.0")
        log = log_text.append(log, log_text.entry("In progress", AT + timedelta(minutes=epoch), *block))
    log = log_text.append(log, log_text.entry("Done", AT + timedelta(days=1), "epoch: 1000", "completedDate: x"))
    assert len(log.encode()) <= log_text.MAX_BYTES
    kept = [int(number) for number in re.findall(r"^epoch: (\d+)$", log, re.MULTILINE)]
    assert kept == list(range(kept[0], 1001))
    assert kept[0] > 500
    assert log.startswith("\n2026-08-12T09:00:00.000000+00:00: Queued\n")


texts = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=3000)


@given(st.text(max_size=20_000), st.lists(texts, min_size=1, max_size=20))
def test_bounded_and_the_last_entry_stays(head: str, added: list[str]) -> None:
    log = head
    for text in added:
        log = log_text.append(log, log_text.entry(text, AT))
        assert len(log.encode()) <= log_text.MAX_BYTES
        assert f"\n{log_text.entry(text, AT)}" in log


@pytest.mark.parametrize("character", ["x", "\n", "é", "\ud800"])
def test_a_log_that_is_one_huge_text_is_cut(character: str) -> None:
    log = log_text.bounded(character * (log_text.MAX_BYTES + 1))
    assert len(log.encode()) <= log_text.MAX_BYTES
