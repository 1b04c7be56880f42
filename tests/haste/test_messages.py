"""HASTE's queue messages: what is understood, and that everything else is refused with field, value and rule."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidMessage
from shared.haste.by_kind import parse_message
from shared.haste.messages import HasteMessage, Wish
from shared.kinds import Entity, Kind
from tests.support import samples

LAYER = Entity(Kind.IMAGERYPREP, samples.PROJECT_ID, samples.LAYER_ID)
TRAINING = Entity(Kind.TRAINING, samples.PROJECT_ID, samples.MODEL_ID)
INFERENCE = Entity(Kind.INFERENCE, samples.PROJECT_ID, samples.MODEL_ID)

SECRET = "c2VjcmV0LXNpZ25hdHVyZQ"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("image-layer.queued", HasteMessage(LAYER, Wish.START)),
        (
            "image-layer.inprogress-legacy-poll",
            HasteMessage(LAYER, Wish.POLL, samples.JOB_ID, samples.IMAGERY_TASK),
        ),
        ("train.queued", HasteMessage(TRAINING, Wish.START)),
        ("train.queued-with-base-weights", HasteMessage(TRAINING, Wish.START)),
        ("train.cancel", HasteMessage(TRAINING, Wish.CANCEL)),
        ("train.inprogress-legacy-poll", HasteMessage(TRAINING, Wish.POLL, samples.JOB_ID, samples.TRAINING_TASK)),
        ("inference.queued", HasteMessage(INFERENCE, Wish.START)),
        ("inference.cancel-newer-api", HasteMessage(INFERENCE, Wish.CANCEL)),
        (
            "inference.inprogress-legacy-poll",
            HasteMessage(INFERENCE, Wish.POLL, samples.JOB_ID, samples.INFERENCE_TASK),
        ),
    ],
)
def test_samples(file: str, expected: HasteMessage) -> None:
    body = samples.raw(f"messages/{file}.json")
    assert parse_message(body, expected.entity.kind) == expected


def training(**changes: Any) -> bytes:
    fields = {"projectId": samples.PROJECT_ID, "modelId": "4821", "status": "Queued", **changes}
    return json.dumps(fields).encode()


def test_json_in_a_json_string_and_numbers_for_text_are_accepted() -> None:
    assert parse_message(json.dumps(training().decode()).encode(), Kind.TRAINING).entity == TRAINING
    assert parse_message(training(modelId=4821, learningRate=0.1, new={"key": 1}), Kind.TRAINING).entity == TRAINING


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "body: is empty"),
        (b" \n", "body: is empty"),
        (b"queued", "body: is not JSON"),
        (b"\xff\xfe{", "body: is not JSON"),
        (base64.b64encode(training()), "body: is base64"),
        (b"[1]", "body: is a list, not an object"),
        (b"null", "body: is null, not an object"),
        (b"[" * 100_000, "body: nested too deeply"),
        (training(projectId=None), "projectId: null"),
        (b'{"modelId": "4821", "status": "Queued"}', "projectId: is missing"),
        (training(projectId="../../other"), "projectId: '../../other': must be a GUID"),
        (training(projectId=samples.PROJECT_ID + "\n"), "must be a GUID"),
        (training(modelId="../4821"), "must be 1 to 8 digits"),
        (training(modelId="123456789"), "must be 1 to 8 digits"),
        (training(modelId="٤٨٢١"), "must be 1 to 8 digits"),
        (training(modelId=[{"sig": SECRET}]), "modelId: a list"),
        (training(status={"sig": SECRET}), "status: an object"),
        (training(status="Processed"), "status: 'Processed' must be Queued, InProgress or Cancelled"),
        (training(status=None), "status: null must be"),
        (training(status=f"https://host/x?sig={SECRET}"), "status: 'https://host/x'"),
        (training(modelType="embedding"), "modelType: 'embedding' is not handled by this version"),
        (training(modelType="embedding", status="Cancelled"), "modelType: 'embedding' is not handled"),
        (training(status="InProgress"), "trainingJob: missing"),
        (training(status="InProgress", trainingJob={"jobId": "x"}), "trainingJob.taskId: null"),
        (
            training(status="InProgress", trainingJob={"jobId": "../x", "taskId": samples.TRAINING_TASK}),
            "trainingJob.jobId: '../x': must be a Batch job id",
        ),
        (
            training(status="InProgress", trainingJob={"jobId": "x", "taskId": samples.INFERENCE_TASK}),
            "must start with trn-",
        ),
    ],
)
def test_refusals_name_field_value_and_rule(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidMessage) as error:
        parse_message(body, Kind.TRAINING)
    assert reason in error.value.reason
    assert SECRET not in error.value.reason
    assert len(error.value.reason) < 300


def test_poll_of_an_inference_that_is_not_in_the_history() -> None:
    body = training(inferenceStatus="InProgress", inferenceJobs=[], currentInferenceTaskId=samples.INFERENCE_TASK)
    with pytest.raises(InvalidMessage, match="inferenceJobs"):
        parse_message(body, Kind.INFERENCE)


def test_a_reason_outlives_the_body() -> None:
    """No exception drags the body along, as chained exceptions would do in a log."""
    with pytest.raises(InvalidMessage) as error:
        parse_message(training(projectId=f"x{SECRET}" * 20), Kind.TRAINING)
    assert error.value.__suppress_context__
    assert SECRET * 2 not in error.value.reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "projectId",
    "imageLayerId",
    "modelId",
    "modelType",
    "status",
    "inferenceStatus",
    "preprocessJob",
    "trainingJob",
    "inferenceJobs",
    "currentInferenceTaskId",
]
plausible = st.sampled_from(["Queued", "InProgress", samples.PROJECT_ID, samples.LAYER_ID, "1"])
fields = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, json_values | plausible))


@given(st.one_of(st.binary(max_size=200), json_values.map(json.dumps).map(str.encode)), st.sampled_from(Kind))
def test_anything_is_a_message_or_invalid(body: bytes, kind: Kind) -> None:
    _parses_or_refuses(body, kind)


@given(fields, st.sampled_from(Kind))
def test_any_fields_are_a_message_or_invalid(content: dict[str, Any], kind: Kind) -> None:
    _parses_or_refuses(json.dumps(content).encode(), kind)


def _parses_or_refuses(body: bytes, kind: Kind) -> None:
    try:
        message = parse_message(body, kind)
    except InvalidMessage as error:
        error.reason.encode()  # can be logged
    else:
        assert message.entity.kind is kind
