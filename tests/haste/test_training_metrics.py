"""TensorBoard event files, and what HASTE shows of them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.haste.tfevents import Scalar, stretch
from shared.haste.training_metrics import Estimate, History, Logged, estimate
from shared.haste.training_metrics import history as history_of
from tests.support import event_samples, samples

EVENTS = samples.raw("task-files/events.out.tfevents.1786527300.examplenode.1.0")
EXPECTED = samples.sample("task-files/events.expected.json")


def scalars(content: bytes) -> list[Scalar]:
    return list(stretch(content).scalars)


def history(logged: Iterable[Scalar]) -> History | None:
    return history_of(Logged().and_then(logged))


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
        minutes_left=expected["approx_time_to_complete"] + 5.0,  # HASTE's is shorter by what the running one is late
    )


def test_fields_of_the_job_are_text() -> None:
    assert estimate(sample_history(), 3).job_fields() == {
        "completedEpochs": "1",
        "approxMinutesToComplete": "5.0",
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
    assert set(estimate(past, 3).job_fields().values()) == {"0", "n/a"}


def test_epochs_are_counted_although_nothing_was_logged_before_the_end_of_the_first() -> None:
    past = history(epoch_at(number, number, 60.0 + 120 * number) for number in range(4))
    assert past is not None
    assert estimate(past, 10) == Estimate(3, 6.0, 2.0, 12.0)


def test_one_epoch_gives_no_estimate_yet() -> None:
    past = history([epoch_at(0, 0, 0.0), epoch_at(0, 50, 90.0)])
    assert past is not None
    assert estimate(past, 3) == Estimate(total_elapsed_minutes=1.5)


def lasting(*minutes: float) -> History:
    """A training whose epochs took so long; the last one is running."""
    past = history([Scalar("hp_metric", 0, 0.0, -1.0), *_ends(minutes)])
    assert past is not None
    return past


def _ends(minutes: Iterable[float]) -> list[Scalar]:
    at, ends = 0.0, []
    for number, one in enumerate(minutes):
        at += 60 * one
        ends.append(epoch_at(number, number, at))
    return ends


@pytest.mark.parametrize(
    ("minutes", "per_epoch", "left_of_ten"),
    [
        ((12.9, 8.0), 12.9, 8 * 12.9 + 4.9),
        ((12.9, 8.0, 5.0), 8.0, 7 * 8.0 + 3.0),
        ((12.9, 8.0, 5.0, 6.0), 6.5, 6 * 6.5 + 0.5),
        ((12.9, 8.0, 5.0, 6.0, 4.1), 19 / 3, 5 * 19 / 3 + 19 / 3 - 4.1),
        ((12.9, 8.0, 5.0, 6.0, 4.0, 1.0), 5.0, 4 * 5.0 + 4.0),
        ((12.9, 8.0, 5.0, 6.0, 4.0, 7.0), 5.0, 4 * 5.0),
        ((12.9, *[4.0] * 8, 1.0), 4.0, 3.0),
    ],
)
def test_what_is_left_takes_as_long_as_the_newest_epochs(
    minutes: tuple[float, ...], per_epoch: float, left_of_ten: float
) -> None:
    """The first one loads data and warms up; one that is late takes nothing away from those after it."""
    now = estimate(lasting(*minutes), 10)
    assert now.completed_epochs == len(minutes) - 1
    assert now.minutes_per_epoch == pytest.approx(per_epoch, abs=0.01)
    assert now.minutes_left == pytest.approx(left_of_ten, abs=0.05)


def test_estimate_of_haste_s_own_training() -> None:
    """Its first epoch took 12.89 minutes, the others 8.04, 5.05, 5.98 and 4.1: HASTE says 479.54 minutes."""
    past = history(scalars(event_samples.content(event_samples.FILES[0])))
    assert past is not None
    assert [epoch.elapsed_minutes for epoch in past.epochs] == [12.89, 8.04, 5.05, 5.98, 4.1]
    assert estimate(past, 40) == Estimate(4, 36.06, 6.36, 224.74)
    assert estimate(past, 5) == Estimate(4, 36.06, 6.36, 2.26)


def test_of_very_many_epochs_the_newest_are_shown_and_all_are_counted() -> None:
    logged = Logged()
    for number in range(0, 20_000, 500):
        logged = logged.and_then(epoch_at(each, each, 60.0 * each + 60) for each in range(number, number + 500))
    past = history_of(logged)
    assert past is not None
    assert [past.epochs[0].number, past.epochs[-1].number, len(past.epochs)] == [19_000, 19_999, 1000]
    assert len(json.dumps(past.logs())) < 160 * 1024
    assert estimate(past, 20_001) == Estimate(19_999, 19_999.0, 1.0, 1.0)
    assert logged.and_then([epoch_at(5, 10**6, 10.0**7)]) == logged, "one that is not shown any more"


_STEPS = st.lists(
    st.tuples(
        st.permutations(["epoch", "train_loss", "train_MulticlassAccuracy", "val_loss"]),
        st.integers(0, 4),
        st.integers(0, 1),
        st.integers(0, 60),
        st.floats(0, 1, width=32),
    ),
    max_size=20,
)


@given(_STEPS)
def test_it_is_the_history_by_haste_s_rule_in_whatever_order_a_step_s_scalars_stand(
    steps: list[tuple[list[str], int, int, int, float]],
) -> None:
    """Each step logs some of its scalars; steps, epochs and times go forward."""
    found: list[event_samples.Logged] = []
    step, epoch, at = 0, 0, 1000.0
    for tags, count, next_epoch, seconds, value in steps:
        step, epoch, at = step + 1, epoch + next_epoch, at + seconds
        found += [(tag, at, step, float(epoch) if tag == "epoch" else value) for tag in tags[:count]]
    past = history(Scalar(tag, step, at, value) for tag, at, step, value in found)
    assert (json.loads(past.logs()) if past else []) == event_samples.epochs(found)


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
