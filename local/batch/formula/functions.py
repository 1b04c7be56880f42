"""The functions that Azure Batch documents for formulas."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from local.batch.formula.errors import FormulaEvaluationError
from local.batch.formula.values import Value, Vector, kind, number


@dataclass(frozen=True)
class Surroundings:
    """What functions may know beside their arguments."""

    now: datetime
    chance: random.Random


class Stop(Exception):
    """`stop()`: the evaluation ends, with what has been assigned so far."""


Function = Callable[[Sequence[Value], Surroundings], Value]


def vector(values: Sequence[Value]) -> Vector:
    """A doubleVecList as one doubleVec."""
    found: list[float] = []
    for value in values:
        found += value if isinstance(value, tuple) else [number(value, "a double or doubleVec")]
    return tuple(found)


def _of_all(make: Callable[[Vector], float]) -> Function:
    def function(values: Sequence[Value], _: Surroundings) -> Value:
        found = vector(values)
        if not found:
            raise FormulaEvaluationError("there is no value to choose from")
        return float(make(found))

    return function


def _of_each(make: Callable[[float], float]) -> Function:
    """Of a double comes a double, of doubleVecs a doubleVec."""

    def function(values: Sequence[Value], _: Surroundings) -> Value:
        if len(values) == 1 and not isinstance(values[0], tuple):
            return make(number(values[0]))
        return tuple(make(value) for value in vector(values))

    return function


def _logarithm(log: Callable[[float], float]) -> Callable[[float], float]:
    def make(value: float) -> float:
        if value > 0:
            return log(value)
        return -math.inf if value == 0 else math.nan

    return make


def _whole(make: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: float(make(value)) if math.isfinite(value) else value


def _nearest(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _percentile(values: Sequence[Value], _: Surroundings) -> Value:
    found, percent = _pair(values, "percentile")
    if not found or not 0 <= percent <= 100:
        raise FormulaEvaluationError("percentile needs values and a percentage of 0 to 100")
    place = (len(found) - 1) * percent / 100
    ordered, below = sorted(found), math.floor(place)
    above = min(below + 1, len(found) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _val(values: Sequence[Value], _: Surroundings) -> Value:
    found, index = _pair(values, "val")
    if not 0 <= index < len(found):
        raise FormulaEvaluationError(f"the doubleVec has no component {index:g}")
    return found[int(index)]


def _pair(values: Sequence[Value], name: str) -> tuple[Vector, float]:
    if len(values) != 2 or not isinstance(values[0], tuple):
        raise FormulaEvaluationError(f"{name} needs a doubleVec and a double")
    return values[0], number(values[1])


def _time(values: Sequence[Value], at: Surroundings) -> Value:
    if not values:
        return at.now
    text = values[0]
    if len(values) != 1 or not isinstance(text, str):
        raise FormulaEvaluationError("time takes at most one string")
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except ValueError:
            continue
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    raise FormulaEvaluationError(f"{text!r} is no time")


def _rand(values: Sequence[Value], at: Surroundings) -> Value:
    _none("rand", values)
    return at.chance.random()


def _stop(values: Sequence[Value], _: Surroundings) -> Value:
    _none("stop", values)
    raise Stop


def _none(name: str, values: Sequence[Value]) -> None:
    if values:
        raise FormulaEvaluationError(f"{name} takes no argument, {kind(values[0])} is found")


FUNCTIONS: dict[str, Function] = {
    "avg": _of_all(statistics.fmean),
    "ceil": _of_each(_whole(math.ceil)),
    "floor": _of_each(_whole(math.floor)),
    "len": lambda values, _: float(len(vector(values))),
    "lg": _of_each(_logarithm(math.log2)),
    "ln": _of_each(_logarithm(math.log)),
    "log": _of_each(_logarithm(math.log10)),
    "max": _of_all(max),
    "min": _of_all(min),
    "norm": _of_all(lambda values: math.hypot(*values)),
    "percentile": _percentile,
    "rand": _rand,
    "range": _of_all(lambda values: max(values) - min(values)),
    "round": _of_each(_whole(_nearest)),
    "std": _of_all(lambda values: statistics.stdev(values) if len(values) > 1 else 0.0),
    "stop": _stop,
    "sum": lambda values, _: math.fsum(vector(values)),
    "time": _time,
    "val": _val,
    "vec": lambda values, _: vector(values),
}
