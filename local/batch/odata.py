"""The part of OData that Batch's list operations understand: `$filter` and `$select`."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from local.batch.errors import BatchError
from local.batch.iso8601 import parse_time

Row = Mapping[str, Any]
Test = Callable[[Row], bool]

_TOKEN = re.compile(
    r"\s*(?:(?P<time>[Dd]ate[Tt]ime'[^']*')|(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-z_][\w/]*)|(?P<sign>[(),]))"
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda left, right: bool(left == right),
    "ne": lambda left, right: bool(left != right),
    "gt": lambda left, right: bool(left > right),
    "ge": lambda left, right: bool(left >= right),
    "lt": lambda left, right: bool(left < right),
    "le": lambda left, right: bool(left <= right),
}
_WORDS = {"true": True, "false": False, "null": None}


def parse_filter(expression: str, fields: Iterable[str]) -> Test:
    """Turn a `$filter` into a test of rendered resources. 400 InvalidQueryParameterValue for what Batch does not know.

    `fields` are the names that may be filtered on; `executionInfo/poolId` reaches into an object.
    """
    return _Parser(expression, set(fields)).parse()


def parse_select(names: str, known: Iterable[str]) -> set[str]:
    """The property names of a `$select`; 400 InvalidQueryParameterValue for an unknown one."""
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    unknown = wanted - set(known)
    if unknown:
        raise refused("$select", names, f"{sorted(unknown)[0]} is not a property")
    return wanted


def refused(parameter: str, value: str, reason: str) -> BatchError:
    """400 InvalidQueryParameterValue with the three values that Batch gives."""
    return BatchError(
        "InvalidQueryParameterValue", QueryParameterName=parameter, QueryParameterValue=value, Reason=reason
    )


class _Parser:
    """Recursive descent: or, and, not, parentheses, comparisons, startswith."""

    def __init__(self, expression: str, fields: set[str]) -> None:
        self._expression = expression
        self._fields = fields
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while expression[position:].strip():
            found = _TOKEN.match(expression, position)
            if not found or not found.lastgroup:
                raise self._refuse(f"it cannot be read from character {position} on")
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            position = found.end()

    def parse(self) -> Test:
        test = self._either()
        if self._tokens:
            raise self._refuse(f"{self._tokens[0][1]!r} is not expected")
        return test

    def _refuse(self, reason: str) -> BatchError:
        return refused("$filter", self._expression, reason)

    def _next(self, kind: str = "", value: str = "") -> str:
        if not self._tokens:
            raise self._refuse("it ends too early")
        found_kind, found = self._tokens.pop(0)
        if (kind and found_kind != kind) or (value and found != value):
            raise self._refuse(f"{found!r} is not expected")
        return found

    def _ahead(self, value: str) -> bool:
        if self._tokens and self._tokens[0][1] == value:
            self._tokens.pop(0)
            return True
        return False

    def _either(self) -> Test:
        tests = [self._both()]
        while self._ahead("or"):
            tests.append(self._both())
        return lambda row: any(test(row) for test in tests)

    def _both(self) -> Test:
        tests = [self._single()]
        while self._ahead("and"):
            tests.append(self._single())
        return lambda row: all(test(row) for test in tests)

    def _single(self) -> Test:
        if self._ahead("not"):
            test = self._single()
            return lambda row: not test(row)
        if self._ahead("("):
            test = self._either()
            self._next("sign", ")")
            return test
        if self._ahead("startswith"):
            self._next("sign", "(")
            field = self._field()
            self._next("sign", ",")
            start = self._literal()
            self._next("sign", ")")
            return lambda row: str(_value(row, field) or "").startswith(str(start))
        field = self._field()
        compare = _COMPARE.get(self._next("name"))
        if compare is None:
            raise self._refuse("a comparison is expected")
        literal = self._literal()
        return lambda row: _compare(compare, _value(row, field), literal)

    def _field(self) -> str:
        name = self._next("name")
        if name not in self._fields:
            raise self._refuse(f"{name} cannot be filtered on")
        return name

    def _literal(self) -> object:
        kind, value = self._tokens[0] if self._tokens else ("", "")
        self._next()
        if kind == "text":
            return value[1:-1].replace("''", "'")
        if kind == "number":
            return float(value)
        if kind == "time":
            try:
                return parse_time(value[9:-1])
            except ValueError:
                raise self._refuse(f"{value} is not a time") from None
        if kind == "name" and value in _WORDS:
            return _WORDS[value]
        raise self._refuse("a value is expected")


def _value(row: Row, field: str) -> Any:
    value: Any = row
    for name in field.split("/"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _compare(compare: Callable[[Any, Any], bool], value: Any, literal: object) -> bool:
    if isinstance(literal, datetime) and isinstance(value, str):
        value = parse_time(value)
    if value is None or literal is None:
        return compare in (_COMPARE["eq"], _COMPARE["ne"]) and compare(value, literal)
    try:
        return compare(value, literal)
    except TypeError:
        return False
