"""Reading HASTE's records."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from shared.haste import records
from tests.support import samples
from tests.support.memory_blobs import MemoryBlobs


def test_a_record_may_be_json_in_a_json_string() -> None:
    model = samples.sample("metadata/model.train-queued.json")
    blobs = MemoryBlobs({"a": json.dumps(model).encode(), "b": json.dumps(json.dumps(model)).encode()})
    assert records.read(blobs, "a") == records.read(blobs, "b") == model
    assert records.read(blobs, "c") is None


DEEP = b'{"a":' * 600 + b"1" + b"}" * 600
LONG = b'{"a": 1' + b"0" * 5000 + b"}"


@pytest.mark.parametrize(
    "content",
    [
        DEEP,
        b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}",
        LONG,
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"\xff",
        b"1",
        b'"' + b"[" * 50_000 + b'"',
    ],
)
def test_a_record_that_is_no_object_is_refused_by_its_file_name(content: bytes) -> None:
    with pytest.raises(Refused, match=r"model_1\.json cannot be read"):
        records.read(MemoryBlobs({f"{samples.FOLDER}/model_1.json": content}), f"{samples.FOLDER}/model_1.json")


def test_numbers_that_json_does_not_have_are_never_written() -> None:
    record = records.parse(b'{"a": [NaN, 1e400, {"b": -Infinity}], "c": 1.5}')
    assert records.dump(record) == b'{"a": [null, null, {"b": null}], "c": 1.5}'


@pytest.mark.parametrize("levels", [1, 99])
def test_levels_that_a_record_may_have(levels: int) -> None:
    assert records.parse(b'{"a": ' + b"[" * levels + b"]" * levels + b"}")


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("nan"), 1e300, -1, 10**9 + 1, "3", True])
def test_no_count(value: Any) -> None:
    assert records.count({"key": value}, "key") == 0


@pytest.mark.parametrize("value", ["\ud800", "x" * 201, 7, [], {}, None, True])
def test_no_word(value: Any) -> None:
    assert records.word({"key": value}, "key") is None


def test_written_as_haste_writes_it() -> None:
    assert records.dump({"a": [1, None], "b": "é"}) == b'{"a": [1, null], "b": "\\u00e9"}'


any_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(10**300) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
)


@given(any_value)
def test_fields_of_any_content(value: Any) -> None:
    record = {"key": value}
    assert isinstance(records.text(record, "key"), str)
    assert 0 <= records.count(record, "key") <= 10**9
    assert records.word(record, "key") is None or isinstance(value, str)
    assert isinstance(records.flag(record, "key", default=True), bool)
    assert all(math.isfinite(number) for number in records.numbers(record, "key"))
    assert records.children(record, "key") == []
    assert records.child(record, "key") is None


@pytest.mark.parametrize(("value", "expected"), [(True, True), ("false", False), ("True", True), (None, False)])
def test_flags(value: Any, expected: bool) -> None:
    assert records.flag({"key": value}, "key", default=not expected) is expected
    assert records.flag({}, "key", default=expected) is expected
