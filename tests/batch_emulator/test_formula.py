"""The formula language by itself: what a text means, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.batch.formula import FormulaSyntaxError, FormulaTooLong, History, Outcome, Situation, evaluate, parse

NOW = datetime(2026, 1, 5, 8, 30, 15, tzinfo=UTC)  # a Monday


def situation(history: History | None = None, **changes: Any) -> Situation:
    values: dict[str, Any] = {
        "now": NOW,
        "history": history or History(),
        "lag": timedelta(0),
        "current": {"$TaskSlotsPerNode": 4.0, "$CurrentDedicatedNodes": 3.0},
        "dedicated": 1,
        "low_priority": 2,
    }
    return Situation(**(values | changes))


def samples(values: Mapping[int, float], name: str = "$PendingTasks") -> History:
    """Samples by their age in seconds."""
    history = History()
    for age in sorted(values, reverse=True):
        history.add(NOW - timedelta(seconds=age), {name: values[age]})
    return history


def results(formula: str, **changes: Any) -> dict[str, str]:
    outcome = evaluate(formula, situation(**changes))
    assert outcome.error is None, outcome.error
    return dict(part.split("=", 1) for part in outcome.results.split(";"))


def value(expression: str, **changes: Any) -> str:
    return results(f"x = {expression};", **changes)["$x"]


def error(formula: str, **changes: Any) -> tuple[str, str]:
    outcome = evaluate(formula, situation(**changes))
    assert outcome.error is not None, outcome.results
    assert (outcome.dedicated, outcome.low_priority) == (1, 2)
    return outcome.error


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 3 - 2", "5"),
        ("2 / 4", "0.5"),
        (".5 + 1e1", "10.5"),
        ("-3 + 5", "2"),
        ("- -3", "3"),
        ("!0 + !7", "1"),
        ("1 < 2", "1"),
        ("2 <= 1", "0"),
        ("1 == 1 && 2 != 2", "0"),
        ("1 > 2 || 2 >= 2", "1"),
        ("5 && -1", "1"),
        ("1 < 2 == 1", "1"),
        ("1 || 0 && 0", "1"),
        ("1 ? 2 : 3", "2"),
        ("0 ? 1 : 0 ? 2 : 3", "3"),
        ("(1 ? 0 : 1) ? 2 : 3", "3"),
        ("1 / 0 > 1000", "1"),
        ("-1 / 0 < -1000", "1"),
        ('"a" < "b"', "1"),
        ("requeue == terminate", "0"),
        ("$TaskSlotsPerNode * 2", "8"),
        ("$CurrentDedicatedNodes * 1.5", "4.5"),
        ("$TargetDedicatedNodes + $TargetLowPriorityNodes * 10", "21"),
        ("vec(1, 2) + 1", "[2,3]"),
        ("vec(1, 2) * vec(3, 4)", "[3,8]"),
        ("vec()", "[]"),
    ],
)
def test_operators(expression: str, expected: str) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("avg(1, vec(2, 3), 6)", "3"),
        ("min(3, 1, 2)", "1"),
        ("max(vec(3, 1), 2)", "3"),
        ("sum()", "0"),
        ("sum(0.1, 0.2, 0.3)", "0.6"),
        ("len(vec(1, 2), 3)", "3"),
        ("norm(3, 4)", "5"),
        ("std(1, 2, 3)", "1"),
        ("std(7)", "0"),
        ("range(5, 1, 3)", "4"),
        ("percentile(vec(4, 1, 3, 2), 50)", "2.5"),
        ("percentile(vec(1, 2, 3), 100)", "3"),
        ("val(vec(7, 8, 9), 1)", "8"),
        ("lg(8)", "3"),
        ("lg(vec(2, 4))", "[1,2]"),
        ("ln(1)", "0"),
        ("log(1000) == 3", "1"),
        ("ceil(1.2)", "2"),
        ("floor(vec(1.8, -1.2))", "[1,-2]"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("rand() >= 0 && rand() < 1", "1"),
    ],
)
def test_functions(expression: str, expected: str) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("time()", "2026-01-05T08:30:15.000Z"),
        ("time().weekday", "1"),
        ('time("2026-01-04").weekday', "0"),
        ("time().hour * 100 + time().minute", "830"),
        ("time().year + time().month + time().day + time().second", "2047"),
        ('time("Mon, 05 Jan 2026 08:00:15 GMT") < time()', "1"),
        ('time("2026-01-05T10:30:15+02:00") == time()', "1"),
        ('time() - time("2026-01-05T08:00:15Z") == 30 * TimeInterval_Minute', "1"),
        ("(time() + -1 * TimeInterval_Hour).hour", "7"),
        ("(TimeInterval_Day + time()).day", "6"),
        ("TimeInterval_Week / 7 == TimeInterval_Day", "1"),
        ("TimeInterval_Minute - TimeInterval_Second * 60 == TimeInterval_Zero", "1"),
        ("-TimeInterval_Hour < TimeInterval_Zero", "1"),
        ("TimeInterval_Year == 365 * TimeInterval_Day", "1"),
        ("TimeInterval_Second == 1000 * TimeInterval_Millisecond", "1"),
    ],
)
def test_times(expression: str, expected: str) -> None:
    assert value(expression) == expected


def test_the_documented_way_to_work_by_the_clock() -> None:
    formula = """
        $now = time();
        $day = $now.hour >= 8 && $now.hour < 18;
        $weekday = $now.weekday >= 1 && $now.weekday <= 5;
        $TargetDedicatedNodes = $day && $weekday ? 20:10;
        $NodeDeallocationOption = taskcompletion;
    """

    outcome = evaluate(formula, situation())

    assert outcome == Outcome(
        20,
        2,
        "taskcompletion",
        "$TargetDedicatedNodes=20;$TargetLowPriorityNodes=2;$NodeDeallocationOption=taskcompletion;"
        "$day=1;$now=2026-01-05T08:30:15.000Z;$weekday=1",
    )


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("$TargetDedicatedNodes = 2.9; $TargetLowPriorityNodes = -0.5;", (2, 0, "requeue")),
        ("$TargetDedicated = 4; $TargetLowPriority = 5;", (4, 5, "requeue")),
        ("$TargetDedicatedNodes = 3; $TargetDedicated = 9;", (3, 2, "requeue")),
        ("$TargetDedicatedNodes = 7; x = $TargetDedicatedNodes; $TargetLowPriorityNodes = x", (7, 7, "requeue")),
        ("$NodeDeallocationOption = retaineddata;;", (1, 2, "retaineddata")),
        ("$TargetDedicatedNodes = 5; stop(); $TargetDedicatedNodes = 9;", (5, 2, "requeue")),
        ("$x = 6; $TargetDedicatedNodes = x;", (6, 2, "requeue")),
    ],
)
def test_targets(formula: str, expected: tuple[int, int, str]) -> None:
    outcome = evaluate(formula, situation())

    assert outcome.error is None
    assert (outcome.dedicated, outcome.low_priority, outcome.option) == expected


def test_only_what_is_chosen_is_evaluated() -> None:
    assert value("1 ? 2 : nothing") == "2"
    assert value("0 && nothing") == "0"
    assert value("1 || nothing") == "1"
    assert error("x = 0 ? 2 : nothing;")[0] == "AutoScalingFormulaEvaluationError"


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("$something", "Line 1, Col 1: the variable something is not defined"),
        ("a = 1;\n  b = a + c;", "Line 2, Col 11: the variable c is not defined"),
        ("x = 1 + requeue;", "Line 1, Col 7: double + string"),
        ("x = 1 - vec(1);", "double - doubleVec"),
        ("x = vec(1) > 0;", "doubleVec > double"),
        ("x = vec(1, 2) + vec(1);", "2 and 1 components"),
        ("x = time() - TimeInterval_Hour;", "timestamp - timeinterval"),
        ("x = TimeInterval_Hour * TimeInterval_Hour;", "timeinterval * timeinterval"),
        ("x = 1e300 * TimeInterval_Year;", "out of range"),
        ("x = avg();", "Line 1, Col 5: there is no value"),
        ("x = val(vec(1), 1);", "no component 1"),
        ("x = percentile(vec(1), 101);", "0 to 100"),
        ('x = time("soon");', "no time"),
        ("x = rand(1);", "no argument"),
        ("x = (3).hour;", "only timestamps"),
        ("x = (3).Count();", "only metrics"),
        ("x = $PendingTasks + 1;", "use GetSample"),
        ("x = $PendingTasks.GetSamplePercent();", "needs a timestamp or a timeinterval"),
        ("x = $PendingTasks.GetSamplePercent(TimeInterval_Hour, 70);", "needs a timestamp or a timeinterval"),
        ("x = $PendingTasks.Count(1);", "no argument"),
        ("$TargetDedicatedNodes = -1;", "$TargetDedicatedNodes cannot be -1"),
        ("$TargetDedicatedNodes = 1 / 0;", "cannot be inf"),
        ("$TargetDedicatedNodes = 0 / 0;", "cannot be nan"),
        ("$TargetLowPriorityNodes = vec(1);", "Line 1, Col 1: a double is expected, doubleVec is found"),
        ("$NodeDeallocationOption = 1;", "is one of requeue"),
    ],
)
def test_what_has_no_value_leaves_the_targets(formula: str, reason: str) -> None:
    code, message = error(formula)

    assert code == "AutoScalingFormulaEvaluationError"
    assert reason in message


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("", "Line 1, Col 1: the formula is empty"),
        ("// only a remark", "the formula is empty"),
        ("x = ;", "Line 1, Col 5: a value is expected"),
        ("x = (1;", "Line 1, Col 7: '\\)' is expected"),
        ("x = 1 y = 2;", "';' is expected"),
        ("x = 1 ? 2;", "':' is expected"),
        ("x = 5 % 2;", "Line 1, Col 7: '%' is not expected"),
        ('x = "a;', "is not expected"),
        ("x = mean(1);", "there is no function mean"),
        ("x = $PendingTasks.GetSamples(1);", "there is no method GetSamples"),
        ("x = time().millisecond;", "there is no member millisecond"),
        ("x = time().;", "a member's name is expected"),
        ("$PendingTasks = 1;", "cannot be set"),
        ("TimeInterval_Hour = 1;", "cannot be set"),
        ("requeue = 1;", "cannot be set"),
        ("x = " + "(" * 50 + "1" + ")" * 50, "in each other"),
        ("x = " + "-" * 50 + "1", "in each other"),
        ("x =\n\n  ,", "Line 3, Col 3"),
    ],
)
def test_what_is_no_formula(formula: str, reason: str) -> None:
    with pytest.raises(FormulaSyntaxError, match=reason):
        parse(formula)


def test_the_longest_formulas() -> None:
    statement = "x = 1;"
    assert len(parse(statement * 100)) == 100
    assert value("0" + "+1" * 3000) == "3000"

    for formula in (statement * 101, "x = 1;" + " " * 8187):
        with pytest.raises(FormulaTooLong):
            parse(formula)
    assert parse("x = 1;" + " " * 8186)
