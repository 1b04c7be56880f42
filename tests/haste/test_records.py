"""Reading HASTE's records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from shared.haste import records
from tests.haste import samples
from tests.haste.memory_blobs import MemoryBlobs


def test_a_record_may_be_json_in_a_json_string() -> None:
    model = samples.sample("metadata/model.train-queued.json")
    blobs = MemoryBlobs({"a": json.dumps(model).encode(), "b": json.dumps(json.dumps(model)).encode()})
    assert records.read(blobs, "a") == records.read(blobs, "b") == model
    assert records.read(blobs, "c") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"', b"\xff", b"1", b'"' + b"[" * 50_000 + b'"'])
def test_a_record_that_is_no_object_is_refused_by_its_file_name(content: bytes) -> None:
    with pytest.raises(Refused, match=r"model_1\.json cannot be read"):
        records.read(MemoryBlobs({f"{samples.FOLDER}/model_1.json": content}), f"{samples.FOLDER}/model_1.json")


def test_written_as_haste_writes_it() -> None:
    assert records.dump({"a": [1, None], "b": "é"}) == b'{"a": [1, null], "b": "\\u00e9"}'


any_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(any_value)
def test_fields_of_any_content(value: Any) -> None:
    record = {"key": value}
    assert isinstance(records.text(record, "key"), str)
    assert records.count(record, "key") >= 0
    assert isinstance(records.flag(record, "key", default=True), bool)
    assert all(isinstance(number, (int, float)) for number in records.numbers(record, "key"))
    assert records.children(record, "key") == []
    assert records.child(record, "key") is None


@pytest.mark.parametrize(("value", "expected"), [(True, True), ("false", False), ("True", True), (None, False)])
def test_flags(value: Any, expected: bool) -> None:
    assert records.flag({"key": value}, "key", default=not expected) is expected
    assert records.flag({}, "key", default=expected) is expected
