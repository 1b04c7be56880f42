"""How a formula reads samples."""

from __future__ import annotations

from datetime import timedelta

import pytest

from local.batch.formula import History
from tests.batch_emulator.test_formula import error, samples, value

_MINUTE = 60
_EVERY = {age: float(age) for age in range(30, 20 * _MINUTE, 30)}  # a sample's value is its age in seconds
_LAG = timedelta(seconds=60)


def _of(call: str, history: History, lag: timedelta = _LAG) -> str:
    return value(f"$PendingTasks.{call}", history=history, lag=lag)


def test_samples_that_are_too_young_are_not_seen() -> None:
    history = samples(_EVERY)

    assert _of("GetSample(1)", history) == "[60]"
    assert _of("GetSample(3)", history) == "[120,90,60]"
    assert _of("GetSample(1)", history, lag=timedelta(0)) == "[30]"
    assert _of("Count()", history) == "38"
    assert _of("HistoryBeginTime() == time() + -1170 * TimeInterval_Second", history) == "1"
    assert _of("GetSamplePeriod() == 30 * TimeInterval_Second", history) == "1"


def test_a_window_has_two_samples_a_minute() -> None:
    history = samples(_EVERY)

    assert _of("GetSample(TimeInterval_Minute * 3)", history) == "[150,120,90,60]"
    assert value("len($PendingTasks.GetSample(TimeInterval_Minute * 10))", history=history, lag=_LAG) == "18"
    assert _of("GetSamplePercent(TimeInterval_Minute * 10)", history) == "90"
    assert _of("GetSamplePercent(TimeInterval_Minute * 10)", history, lag=timedelta(0)) == "95"
    assert _of("GetSamplePercent(TimeInterval_Minute)", history) == "0"
    assert _of("GetSamplePercent(TimeInterval_Second * 15)", history, lag=timedelta(0)) == "0"
    assert _of("GetSamplePercent(TimeInterval_Second * 44)", samples({0: 1.0, 30: 1.0}), lag=timedelta(0)) == "100"


@pytest.mark.parametrize(
    "period",
    [
        "1 * TimeInterval_Minute, 3 * TimeInterval_Minute",
        "3 * TimeInterval_Minute, 1 * TimeInterval_Minute",
        "time() + -180 * TimeInterval_Second, TimeInterval_Minute",
    ],
)
def test_a_window_may_have_an_end(period: str) -> None:
    history = samples(_EVERY)

    assert _of(f"GetSample({period})", history) == "[150,120,90,60]"
    assert _of(f"GetSamplePercent({period})", history) == "100"


def test_a_window_with_too_few_samples_ends_the_evaluation() -> None:
    history = samples({age: 1.0 for age in _EVERY if age > 5 * _MINUTE})
    formula = "a = 1;\nb = avg($PendingTasks.GetSample(TimeInterval_Minute * 10, 70));"

    assert error(formula, history=history) == (
        "InsufficientSampleData",
        "Line 2, Col 23: Insufficient data from data set: $PendingTasks wanted 70%, received 45%",
    )
    assert value("avg($PendingTasks.GetSample(TimeInterval_Minute * 10, 45))", history=history) == "1"
    assert value("avg($PendingTasks.GetSample(TimeInterval_Minute * 10))", history=history) == "1"


@pytest.mark.parametrize(
    "call", ["GetSample(1)", "GetSample(TimeInterval_Minute * 4)", "HistoryBeginTime()", "GetSample(time(), 0.5)"]
)
def test_without_any_sample_there_is_nothing_to_get(call: str) -> None:
    code, reason = error(f"x = $PendingTasks.{call};")

    assert code == "InsufficientSampleData"
    assert "received 0%" in reason


def test_a_guard_keeps_the_evaluation_going() -> None:
    formula = "$PendingTasks.GetSamplePercent(TimeInterval_Minute) < 1 ? 5 : avg($PendingTasks.GetSample(1))"

    assert value(formula) == "5"
    assert value(formula, history=samples({30: 8.0})) == "8"


def test_a_metric_that_was_not_sampled_has_no_samples() -> None:
    history = samples(_EVERY)

    assert value("$CPUPercent.Count()", history=history) == "0"
    assert error("x = $CPUPercent.GetSample(1);", history=history)[0] == "InsufficientSampleData"


def test_history_is_bounded() -> None:
    history = History()
    for age in range(5000, 0, -1):
        history.add(samples({age * 30: 1.0}).entries[0][0], {"$PendingTasks": 1.0})

    assert len(history.entries) == 2880
