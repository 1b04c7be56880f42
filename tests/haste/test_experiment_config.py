"""The experiment config: HASTE's text, readable as YAML 1.1, from sensible hyper-parameters only."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from shared.haste.experiment_config import HyperParameters, dump, gpkg_prefix, hyper_parameters
from tests.support import samples

#: How YAML 1.1 readers recognise a float.
YAML_FLOAT = re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?")


@pytest.mark.parametrize("name", ["training", "inference"])
def test_haste_s_own_text_comes_out_byte_for_byte(name: str) -> None:
    content = samples.raw(f"configs/experiment_config.{name}.yaml")
    assert dump(json.loads(content)) == content


@pytest.mark.parametrize(
    ("value", "text"), [(1e-05, b"1.0e-05"), (2.5e-07, b"2.5e-07"), (1.0, b"1.0"), (1e22, b"1.0e+22")]
)
def test_floats_have_a_decimal_point(value: float, text: bytes) -> None:
    assert dump({"learning_rate": value}) == b'{"learning_rate": ' + text + b"}"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_one_for_yaml_and_json(value: float) -> None:
    text = dump({"x": value}).decode().removeprefix('{"x": ').removesuffix("}")
    assert YAML_FLOAT.fullmatch(text)
    assert json.loads(text) == value


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=5), nested, max_size=3))
def test_the_text_is_json(config: dict[str, Any]) -> None:
    assert json.loads(dump(config)) == config


def test_hyper_parameters_are_text_or_numbers_with_haste_s_fallbacks() -> None:
    expected = HyperParameters(batch_size=32, learning_rate=0.0001, max_epochs=3)
    assert hyper_parameters({"batchSize": "32", "learningRate": "0.0001", "maxEpochs": "3"}) == expected
    assert hyper_parameters({"batchSize": 32, "learningRate": 1e-4, "maxEpochs": 3.0}) == expected
    fallback = HyperParameters(batch_size=1, learning_rate=0.0001, max_epochs=1)
    assert hyper_parameters({"batchSize": None, "learningRate": ""}) == fallback
    assert isinstance(hyper_parameters({"learningRate": "1"}).learning_rate, float)


@pytest.mark.parametrize("field", ["batchSize", "learningRate", "maxEpochs"])
@pytest.mark.parametrize("value", ["x", "0", "-1", "nan", "inf", "1e999", True, [], {}, "9" * 5000, "1;rm"])
def test_nonsense_is_refused_by_field(field: str, value: Any) -> None:
    with pytest.raises(Refused, match=field):
        hyper_parameters({field: value})


@pytest.mark.parametrize("field", ["batchSize", "maxEpochs"])
def test_whole_numbers_are_whole(field: str) -> None:
    with pytest.raises(Refused, match=f"{field} is 1.5; it must be a whole number"):
        hyper_parameters({field: "1.5"})


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("cedar-valley-unet-1", "predicted_damage_cedar-valley-unet-1"),
        ("My model_2.0", "predicted_damage_My-model_2.0"),
        ("a, b/../c", "predicted_damage_a--b-..-c"),
    ],
)
def test_gpkg_prefix(name: str, prefix: str) -> None:
    assert gpkg_prefix(name) == prefix


@given(st.text())
def test_gpkg_prefix_needs_no_escaping(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._~-]{1,150}", gpkg_prefix(name))
