"""Progress logs of containers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.haste.container_log import MAX_LINES, LogLine, parse
from tests.support import samples


def test_lines_are_split_at_the_first_bar_and_keep_their_time() -> None:
    lines = parse(b"2026-08-12T09:02:00.123456+00:00|a|b\n", complete=True)
    assert lines == [LogLine(samples.at("09:02:00"), "a|b")]
    assert lines[0].entry() == "2026-08-12T09:02:00.123456+00:00: a|b"


def test_other_forms_of_the_time() -> None:
    content = b"2026-08-12T09:02:00|no zone\n2026-08-12T11:02:00.5+02:00|other zone\n2026-08-12 09:02:01Z|space"
    assert [line.entry() for line in parse(content, complete=True)] == [
        "2026-08-12T09:02:00.000000+00:00: no zone",
        "2026-08-12T09:02:00.500000+00:00: other zone",
        "2026-08-12T09:02:01.000000+00:00: space",
    ]


def test_the_leaky_sample_with_and_without_continuations() -> None:
    content = samples.raw("task-files/imagery_friendly.failed-leaky.log")
    _, error = parse(content, complete=True, continuations=True)
    assert error.text.startswith("Error during imagery preprocessing: Unable to download raw imagery")
    assert error.text.endswith("_uploaded_post01.tif'] second line of a multi-line error without a separator")
    assert "sig" not in error.text
    assert not parse(content, complete=True)[1].text.endswith("separator")


def test_a_line_that_is_still_being_written_waits() -> None:
    content = b"2026-08-12T09:02:00.123456+00:00|Downloading imagery\n2026-08-12T09:05:00.123456+00:00|Conv"
    assert [line.text for line in parse(content, complete=False)] == ["Downloading imagery"]
    assert [line.text for line in parse(content, complete=True)] == ["Downloading imagery", "Conv"]


def test_a_log_that_runs_wild_is_cut_to_its_end() -> None:
    content = "".join(f"2026-08-12T09:02:00.{n:06}+00:00|{n}\n" for n in range(5000)).encode()
    assert [line.text for line in parse(content, complete=True)] == [str(n) for n in range(5000 - MAX_LINES, 5000)]


@given(st.binary() | st.text().map(lambda text: f"2026-08-12T09:02:00+00:00|{text}".encode()), st.booleans())
def test_anything_can_be_parsed(content: bytes, flag: bool) -> None:
    for line in parse(content, complete=flag, continuations=not flag):
        assert "\n" not in line.text
