"""TensorBoard event files, and what HASTE shows of them."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.haste.tfevents import Scalar, scalars
from shared.haste.training_metrics import Estimate, History, estimate, history
from tests.haste import samples

EVENTS = samples.raw("task-files/events.out.tfevents.1786527300.examplenode.1.0")
EXPECTED = samples.sample("task-files/events.expected.json")


def sample_history() -> History:
    past = history(scalars(EVENTS))
    assert past is not None
    return past


def test_history_of_the_sample() -> None:
    assert sample_history().start_time == EXPECTED["trainStartTime"]
    assert json.loads(sample_history().logs()) == EXPECTED["logs"]


@pytest.mark.parametrize("max_epochs", [3, 10])
def test_estimate_of_the_sample(max_epochs: int) -> None:
    expected = EXPECTED[f"metrics_for_maxEpochs_{max_epochs}"]
    assert estimate(sample_history(), max_epochs) == Estimate(
        completed_epochs=expected["completed_epochs"],
        total_elapsed_minutes=expected["total_elapsed_time"],
        minutes_per_epoch=expected["time_per_epoch"],
        minutes_left=expected["approx_time_to_complete"],
    )


def test_fields_of_the_job_are_text() -> None:
    assert estimate(sample_history(), 3).job_fields() == {
        "completedEpochs": "1",
        "approxMinutesToComplete": "n/a",
        "totalElapsedTime": "15.0",
        "timePerEpoch": "5.0",
    }
    assert Estimate().job_fields()["completedEpochs"] == "0"
    assert Estimate().job_fields()["timePerEpoch"] == "n/a"


def epoch_at(number: int, step: int, wall_time: float) -> Scalar:
    return Scalar("epoch", step, wall_time, float(number))


def test_nothing_is_known_before_the_first_epoch_has_taken_time() -> None:
    assert history([]) is None
    assert history([Scalar("train_loss", 1, 60.0, 0.5)]) is None
    past = history([epoch_at(0, 50, 60.0)])
    assert past is not None
    assert estimate(past, 3) == Estimate()


def test_one_epoch_gives_no_estimate_yet() -> None:
    past = history([epoch_at(0, 0, 0.0), epoch_at(0, 50, 90.0)])
    assert past is not None
    assert estimate(past, 3) == Estimate(total_elapsed_minutes=1.5)


def test_values_that_are_no_numbers_are_left_out() -> None:
    broken = [Scalar("epoch", 1, 60.0, float("nan")), Scalar("epoch", 1, float("inf"), 1.0), epoch_at(0, 1, -5.0)]
    assert history(broken) is None


@given(st.integers(0, len(EVENTS)))
def test_a_file_that_is_cut_off_gives_what_stands_before(length: int) -> None:
    whole = scalars(EVENTS)
    part = scalars(EVENTS[:length])
    assert part == whole[: len(part)]


@given(st.integers(0, len(EVENTS) - 1), st.integers(1, 255))
def test_a_damaged_byte_ends_the_reading_there(position: int, change: int) -> None:
    damaged = bytearray(EVENTS)
    damaged[position] ^= change
    part = scalars(bytes(damaged))
    assert part == scalars(EVENTS)[: len(part)]
    assert len(part) < len(scalars(EVENTS)) or position < 88  # the header record holds no scalar


@given(st.binary())
def test_any_bytes_can_be_read(content: bytes) -> None:
    assert scalars(content) == []


@given(
    st.lists(
        st.builds(Scalar, st.sampled_from(["epoch", "train_loss"]), st.integers(), st.floats(), st.floats(width=32))
    )
)
def test_any_scalars_can_be_shown(logged: list[Scalar]) -> None:
    past = history(logged)
    if past is not None:
        json.loads(past.logs())
        estimate(past, 3).job_fields()


def test_a_length_beyond_the_file_is_its_end() -> None:
    assert scalars(struct.pack("<QI", 2**63, 0) + b"x") == []
