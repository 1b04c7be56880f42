"""The values of a formula and its operators. What Azure Batch does not document as allowed is refused.

double is a float, doubleVec a tuple of them, timestamp a datetime, timeinterval a timedelta; truth is 1.0 or 0.0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from local.batch.formula.errors import FormulaEvaluationError
from local.batch.formula.samples import Metric

Vector = tuple[float, ...]
Value = float | Vector | str | datetime | timedelta | Metric

#: The members of a timestamp.
MEMBERS: dict[str, Callable[[datetime], int]] = {
    "year": lambda time: time.year,
    "month": lambda time: time.month,
    "day": lambda time: time.day,
    "weekday": lambda time: time.isoweekday() % 7,
    "hour": lambda time: time.hour,
    "minute": lambda time: time.minute,
    "second": lambda time: time.second,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
    "!=": operator.ne,
}


def number(value: Value, what: str = "a double") -> float:
    """A double. Node counts count as their present value; a doubleVec is no double, `val` or `max` make it one."""
    if isinstance(value, Metric):
        if value.current is None:
            raise FormulaEvaluationError(f"{value.name} is no double: use GetSample")
        return value.current
    if not isinstance(value, float):
        raise FormulaEvaluationError(f"{what} is expected, {kind(value)} is found")
    return value


def kind(value: Value) -> str:
    """The type's name in the documentation."""
    names = {float: "double", tuple: "doubleVec", str: "string", timedelta: "timeinterval", datetime: "timestamp"}
    return names.get(type(value), "a metric")


def truth(value: Value) -> bool:
    return number(value) != 0.0


def negate(sign: str, value: Value) -> Value:
    """`-` and `!` in front of a value."""
    if sign == "-" and isinstance(value, timedelta):
        return -value
    if sign == "-":
        return -number(value)
    return 0.0 if truth(value) else 1.0


def combine(sign: str, left: Value, right: Value) -> Value:
    """Two values and the operator between them, `&&` and `||` excepted."""
    left, right = _plain(left), _plain(right)
    if sign in _COMPARISONS:
        return _compare(sign, left, right)
    if isinstance(left, float) and isinstance(right, float):
        return _calculate(sign, left, right)
    if isinstance(left, tuple) and isinstance(right, (float, tuple)):
        return _by_component(sign, left, right)
    made = _with_time(sign, left, right)
    if made is None:
        raise FormulaEvaluationError(f"{kind(left)} {sign} {kind(right)} is not possible")
    return made


def _plain(value: Value) -> Value:
    return number(value) if isinstance(value, Metric) else value


def _compare(sign: str, left: Value, right: Value) -> float:
    if type(left) is not type(right) or isinstance(left, tuple):
        raise FormulaEvaluationError(f"{kind(left)} {sign} {kind(right)} is not possible")
    return 1.0 if _COMPARISONS[sign](left, right) else 0.0


def _calculate(sign: str, left: float, right: float) -> float:
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if right == 0.0:
        return math.nan if left == 0.0 or math.isnan(left) else math.copysign(math.inf, left)
    return left / right


def _by_component(sign: str, left: Vector, right: float | Vector) -> Vector:
    others = right if isinstance(right, tuple) else (right,) * len(left)
    if len(others) != len(left):
        raise FormulaEvaluationError(f"doubleVecs of {len(left)} and {len(others)} components do not fit together")
    return tuple(_calculate(sign, one, other) for one, other in zip(left, others, strict=True))


def _with_time(sign: str, left: Value, right: Value) -> Value | None:
    try:
        if isinstance(left, timedelta):
            return _interval_first(sign, left, right)
        if isinstance(left, datetime):
            if sign == "+" and isinstance(right, timedelta):
                return left + right
            if sign == "-" and isinstance(right, datetime):
                return left - right
        if sign == "*" and isinstance(left, float) and isinstance(right, timedelta):
            return right * left
    except (OverflowError, ValueError, ZeroDivisionError):
        raise FormulaEvaluationError("the time is out of range") from None
    return None


def _interval_first(sign: str, left: timedelta, right: Value) -> Value | None:
    if isinstance(right, float) and sign in "*/":
        return left * right if sign == "*" else left / right
    if isinstance(right, timedelta) and sign in "+-":
        return left + right if sign == "+" else left - right
    if isinstance(right, datetime) and sign == "+":
        return right + left
    return None


def show(value: Value) -> str:
    """As in the results of an evaluation."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, tuple):
        return f"[{','.join(show(component) for component in value)}]"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, Metric):
        return value.name if value.current is None else show(value.current)
    return value
