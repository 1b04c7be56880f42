"""The parts of a formula that has been read."""

from __future__ import annotations

from dataclasses import dataclass

from local.batch.formula.errors import Position


@dataclass(frozen=True)
class Number:
    position: Position
    value: float


@dataclass(frozen=True)
class Text:
    position: Position
    value: str


@dataclass(frozen=True)
class Name:
    """A variable (without its dollar sign, unless it belongs to the service) or a word of the language."""

    position: Position
    name: str


@dataclass(frozen=True)
class Unary:
    position: Position
    sign: str
    operand: Expression


@dataclass(frozen=True)
class Chain:
    """Operators of one rank, applied from left to right: `a - b + c`. A flat list, so that long sums stay shallow."""

    first: Expression
    rest: tuple[tuple[Position, str, Expression], ...]


@dataclass(frozen=True)
class Choice:
    """`condition ? yes : no`; only the chosen side is evaluated."""

    position: Position
    condition: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True)
class Call:
    position: Position
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class MethodCall:
    position: Position
    target: Expression
    method: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Member:
    position: Position
    target: Expression
    name: str


Expression = Number | Text | Name | Unary | Chain | Choice | Call | MethodCall | Member


@dataclass(frozen=True)
class Statement:
    """`variable = expression`, or an expression alone (`variable` is empty)."""

    position: Position
    variable: str
    expression: Expression
