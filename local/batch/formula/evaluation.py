"""Carries out a formula: from what is known of a pool to its new targets."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from local.batch.formula.errors import FormulaEvaluationError, Position
from local.batch.formula.functions import FUNCTIONS, Stop, Surroundings
from local.batch.formula.parser import parse
from local.batch.formula.samples import PERIOD_SECONDS, History, Metric
from local.batch.formula.syntax import Call, Chain, Choice, Expression, Member, MethodCall, Name, Number, Text, Unary
from local.batch.formula.values import MEMBERS, Value, combine, negate, number, show, truth
from local.batch.formula.variables import DEDICATED, INTERVALS, LOW_PRIORITY, METRICS, OPTION, OPTIONS, WRITABLE

_MOST_NODES = 2**31 - 1


@dataclass(frozen=True)
class Situation:
    """What a formula can see of its pool.

    lag: samples younger than this are not visible yet. current: present values of the node metrics.
    dedicated, low_priority: the targets so far. seed: what `rand()` depends on.
    """

    now: datetime
    history: History
    lag: timedelta
    current: Mapping[str, float]
    dedicated: int
    low_priority: int
    seed: str = ""


@dataclass(frozen=True)
class Outcome:
    """The new targets, unchanged when there is an error: its (code, reason)."""

    dedicated: int
    low_priority: int
    option: str
    results: str
    error: tuple[str, str] | None = None


def evaluate(formula: str, situation: Situation) -> Outcome:
    """Evaluate a formula. Raises FormulaSyntaxError or FormulaTooLong for a text that is none."""
    statements = parse(formula)
    run = _Run(situation)
    try:
        for statement in statements:
            value = run.value(statement.expression)
            if statement.variable:
                run.assign(statement.variable, value, statement.position)
    except Stop:
        pass
    except FormulaEvaluationError as error:
        return _failed(situation, error)
    try:
        return run.outcome()
    except FormulaEvaluationError as error:
        return _failed(situation, error)


def _failed(situation: Situation, error: FormulaEvaluationError) -> Outcome:
    dedicated, low_priority, option = situation.dedicated, situation.low_priority, OPTIONS[0]
    return Outcome(dedicated, low_priority, option, _targets(dedicated, low_priority, option), (error.code, str(error)))


def _targets(dedicated: int, low_priority: int, option: str) -> str:
    return f"{DEDICATED}={dedicated};{LOW_PRIORITY}={low_priority};{OPTION}={option}"


class _Run:
    """The variables of one evaluation."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._surroundings = Surroundings(situation.now, random.Random(situation.seed))
        self._own: dict[str, Value] = {}
        self._set: dict[str, Value] = {}

    def assign(self, name: str, value: Value, position: Position) -> None:
        if name not in WRITABLE:
            self._own[name] = value
            return
        try:
            if WRITABLE[name] != OPTION:
                value = number(value)
            elif value not in OPTIONS:
                raise FormulaEvaluationError(f"{OPTION} is one of {', '.join(OPTIONS)}")
        except FormulaEvaluationError as error:
            raise FormulaEvaluationError(f"{position}: {error}", error.code) from None
        self._set[name] = value

    def outcome(self) -> Outcome:
        """Targets are cut to whole numbers."""
        dedicated = self._nodes(DEDICATED)
        low_priority = self._nodes(LOW_PRIORITY)
        option = str(self._set.get(OPTION, OPTIONS[0]))
        own = [f"${name}={show(value)}" for name, value in sorted(self._own.items())]
        return Outcome(dedicated, low_priority, option, ";".join([_targets(dedicated, low_priority, option), *own]))

    def _nodes(self, name: str) -> int:
        value = number(self._written(name))
        if not math.isfinite(value) or not 0 <= int(value) <= _MOST_NODES:
            raise FormulaEvaluationError(f"{name} cannot be {show(value)}")
        return int(value)

    def _written(self, name: str) -> Value:
        """A variable that can be written: as set under its full name, else under its alias, else as the pool has it."""
        full = WRITABLE[name]
        for known in (full, *(alias for alias, meant in WRITABLE.items() if meant == full)):
            if known in self._set:
                return self._set[known]
        if full == OPTION:
            return OPTIONS[0]
        return float(self._situation.dedicated if full == DEDICATED else self._situation.low_priority)

    def value(self, expression: Expression) -> Value:
        """The value of an expression; errors say where in the formula."""
        if isinstance(expression, Number | Text):
            return expression.value
        if isinstance(expression, Chain):
            return self._chain(expression)
        if isinstance(expression, Choice):
            chosen = expression.yes if self._true(expression.condition, expression.position) else expression.no
            return self.value(chosen)
        try:
            return self._single(expression)
        except FormulaEvaluationError as error:
            raise _placed(error, expression.position) from None

    def _single(self, expression: Name | Unary | Call | MethodCall | Member) -> Value:
        if isinstance(expression, Name):
            return self._variable(expression.name)
        if isinstance(expression, Unary):
            return negate(expression.sign, self.value(expression.operand))
        if isinstance(expression, Call):
            return FUNCTIONS[expression.function]([self.value(one) for one in expression.arguments], self._surroundings)
        target = self.value(expression.target)
        if isinstance(expression, MethodCall):
            if not isinstance(target, Metric):
                raise FormulaEvaluationError(f"only metrics have the method {expression.method}")
            return _call(target, expression.method, [self.value(one) for one in expression.arguments])
        if not isinstance(target, datetime):
            raise FormulaEvaluationError(f"only timestamps have the member {expression.name}")
        return float(MEMBERS[expression.name](target))

    def _chain(self, chain: Chain) -> Value:
        left = self.value(chain.first)
        for position, sign, operand in chain.rest:
            try:
                if sign == "&&":
                    left = float(truth(left) and truth(self.value(operand)))
                elif sign == "||":
                    left = float(truth(left) or truth(self.value(operand)))
                else:
                    left = combine(sign, left, self.value(operand))
            except FormulaEvaluationError as error:
                raise _placed(error, position) from None
        return left

    def _true(self, condition: Expression, position: Position) -> bool:
        try:
            return truth(self.value(condition))
        except FormulaEvaluationError as error:
            raise _placed(error, position) from None

    def _variable(self, name: str) -> Value:
        if name in WRITABLE:
            return self._written(name)
        if name in METRICS:
            at = self._situation
            return Metric(name, at.history, at.now, at.lag, at.current.get(name))
        if name in self._own:
            return self._own[name]
        if name in INTERVALS:
            return timedelta(seconds=INTERVALS[name])
        if name in OPTIONS:
            return name
        raise FormulaEvaluationError(f"the variable {name} is not defined")


class _Placed(FormulaEvaluationError):
    """An error whose reason begins with its position already."""


def _placed(error: FormulaEvaluationError, position: Position) -> FormulaEvaluationError:
    return error if isinstance(error, _Placed) else _Placed(f"{position}: {error}", error.code)


def _call(metric: Metric, method: str, arguments: Sequence[Value]) -> Value:
    if method in ("GetSamplePeriod", "Count", "HistoryBeginTime") and arguments:
        raise FormulaEvaluationError(f"{method} takes no argument")
    if method == "GetSamplePeriod":
        return timedelta(seconds=PERIOD_SECONDS)
    if method == "Count":
        return float(len(metric.samples()))
    if method == "HistoryBeginTime":
        return metric.begin()
    if method == "GetSample" and len(arguments) == 1 and isinstance(arguments[0], float):
        return metric.newest(int(arguments[0]))
    start, end, percent = _period(metric, method, arguments)
    return metric.percent(start, end) if method == "GetSamplePercent" else metric.between(start, end, percent)


def _period(metric: Metric, method: str, arguments: Sequence[Value]) -> tuple[datetime, datetime, float | None]:
    """(start [, end] [, percent]): timestamps, or intervals back from now, in either order."""
    moments = [
        moment if isinstance(moment, datetime) else metric.now - moment
        for moment in arguments
        if isinstance(moment, datetime | timedelta)
    ]
    numbers = [number(value) for value in arguments[len(moments) :]]
    most_numbers = 1 if method == "GetSample" else 0
    if not 1 <= len(moments) <= 2 or len(numbers) > most_numbers:
        raise FormulaEvaluationError(f"{method} needs a timestamp or a timeinterval")
    start, end = min(moments), max(moments) if len(moments) == 2 else metric.now
    return start, end, numbers[0] if numbers else None
