"""Text of containers is safe to show: no credentials, no folders of a node, one line, not long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.haste.redaction import LIMIT_CHARACTERS, safe_text
from tests.support import samples

SIGNATURE = "c2FtcGxlLXNpZ25hdHVyZS1ub3QtcmVhbC0wMDAwMDAwMDA%3D"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Downloading imagery", "Downloading imagery"),
        ("Embedded 400/812 buildings", "Embedded 400/812 buildings"),
        ("Is it there? a=b", "Is it there? a=b"),
        (
            "GET https://a.blob.core.windows.net/data/x.tif?sv=1&sig=abc failed",
            "GET https://a.blob.core.windows.net/data/x.tif failed",
        ),
        ("['http://h:1/a/b.tif?sv=1&sig=abc']", "['http://h:1/a/b.tif']"),
        ("https://h/x?opaque", "https://h/x"),
        ("url=http%3A%2F%2Fh%2Fx%3Fsv%3D1%26sig%3Dabc", "url=http%3A%2F%2Fh%2Fx"),
        ("x&sig%3Dabc", "x&sig…"),
        ("AccountKey=abc==;EndpointSuffix", "AccountKey…"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer …"),
        ("https://user:pw@host/x", "https://host/x"),
        ("cannot open /mnt/batch/tasks/wd/outputs/x.tif", "cannot open x.tif"),
        ("path='/mnt/batch/x.tif'", "path='x.tif'"),
        ("file:///mnt/batch/x.tif", "x.tif"),
        (r"D:\batch\tasks\x.tif is gone", "x.tif is gone"),
        ("outputs/x.tif", "outputs/x.tif"),
        ("two\nlines\r\tand \x00 more", "two lines and more"),
        ("half \ud800 pair", "half ? pair"),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert safe_text(text) == expected


def test_long_text_is_cut() -> None:
    assert safe_text("x" * 1000) == "x" * (LIMIT_CHARACTERS - 1) + "…"
    assert safe_text("x" * 1000, 40) == "x" * 39 + "…"


def test_the_leaky_sample() -> None:
    text = safe_text(samples.raw("task-files/imagery_friendly.failed-leaky.log").decode())
    assert "sig" not in text
    assert SIGNATURE not in text


noise = st.text(max_size=30)


@given(noise, st.sampled_from(["?sv=1&sig=", "&sig=", "sig%3D", "%3Fsv%3D1%26SIG%3D", "Sig=", "token: "]), noise)
def test_a_signature_never_survives(before: str, marker: str, after: str) -> None:
    assert "S1gNaTuRe" not in safe_text(f"{before}{marker}S1gNaTuRe {after}")


@given(
    st.sampled_from(["", "at ", "('", "file://", "x=", '"']),
    st.lists(st.sampled_from(["mnt", "root", "private-folder"]), min_size=1),
    noise,
)
def test_folders_of_an_absolute_path_never_survive(before: str, folders: list[str], after: str) -> None:
    text = safe_text(f"{before}/{'/'.join(folders)}/file.tif {after}")
    assert not any(folder in text.replace(after, "") for folder in folders)


@given(st.text())
def test_one_printable_line_within_the_limit(text: str) -> None:
    safe = safe_text(text)
    assert len(safe) <= LIMIT_CHARACTERS
    assert safe.isprintable()
    safe.encode()
