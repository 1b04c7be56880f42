"""Reads a formula: statements of assignments and expressions, as Azure Batch documents the language."""

from functools import lru_cache

from local.batch.formula.errors import FormulaSyntaxError, FormulaTooLong, Position
from local.batch.formula.functions import FUNCTIONS
from local.batch.formula.lexer import Token, tokens
from local.batch.formula.samples import METHODS
from local.batch.formula.syntax import (
    Call,
    Chain,
    Choice,
    Expression,
    Member,
    MethodCall,
    Name,
    Number,
    Statement,
    Text,
    Unary,
)
from local.batch.formula.values import MEMBERS
from local.batch.formula.variables import INTERVALS, METRICS, OPTIONS, WRITABLE

LONGEST_CHARACTERS = 8192
_MOST_STATEMENTS = 100
_DEEPEST = 40
_RANKS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/"))


@lru_cache(maxsize=256)
def parse(formula: str) -> tuple[Statement, ...]:
    """The statements of a formula. Raises FormulaSyntaxError or FormulaTooLong.

    Functions, methods and members must exist, and only variables that can be written may be assigned; whether the
    variables that are read exist shows when the formula is evaluated.
    """
    if len(formula) > LONGEST_CHARACTERS:
        raise FormulaTooLong(f"a formula has at most {LONGEST_CHARACTERS} characters")
    statements = _Parser(tokens(formula)).statements()
    if len(statements) > _MOST_STATEMENTS:
        raise FormulaTooLong(f"a formula has at most {_MOST_STATEMENTS} statements")
    return statements


class _Parser:
    """Recursive descent, one token of lookahead (two to tell an assignment)."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    def statements(self) -> tuple[Statement, ...]:
        found: list[Statement] = []
        while self._now.kind != "end":
            if self._take(";"):
                continue
            found.append(self._statement())
            if self._now.kind != "end":
                self._need(";")
        if not found:
            raise FormulaSyntaxError(self._now.position, "the formula is empty")
        return tuple(found)

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _take(self, *signs: str) -> Token | None:
        token = self._now
        if token.kind != "sign" or token.text not in signs:
            return None
        self._at += 1
        return token

    def _need(self, sign: str) -> Token:
        return self._take(sign) or self._fail(f"{sign!r} is expected")

    def _fail(self, reason: str) -> Token:
        found = repr(self._now.text) if self._now.text else "the end"
        raise FormulaSyntaxError(self._now.position, f"{reason}, {found} is found")

    def _statement(self) -> Statement:
        token = self._now
        if token.kind == "name" and self._tokens[self._at + 1].text == "=":
            self._at += 2
            return Statement(token.position, _written(token), self._expression())
        return Statement(token.position, "", self._expression())

    def _expression(self) -> Expression:
        self._deeper()
        condition = self._ranked(0)
        asked = self._take("?")
        if asked:
            yes = self._expression()
            self._need(":")
            condition = Choice(asked.position, condition, yes, self._expression())
        self._depth -= 1
        return condition

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise FormulaSyntaxError(self._now.position, f"more than {_DEEPEST} expressions in each other")

    def _ranked(self, rank: int) -> Expression:
        if rank == len(_RANKS):
            return self._unary()
        first = self._ranked(rank + 1)
        rest: list[tuple[Position, str, Expression]] = []
        while sign := self._take(*_RANKS[rank]):
            rest.append((sign.position, sign.text, self._ranked(rank + 1)))
        return Chain(first, tuple(rest)) if rest else first

    def _unary(self) -> Expression:
        sign = self._take("-", "!")
        if not sign:
            return self._with_members(self._single())
        self._deeper()
        operand = self._unary()
        self._depth -= 1
        return Unary(sign.position, sign.text, operand)

    def _with_members(self, target: Expression) -> Expression:
        while self._take("."):
            name = self._now
            if name.kind != "name":
                self._fail("a member's name is expected")
            self._at += 1
            if self._now.text == "(":
                _check_known(name, METHODS, "method")
                target = MethodCall(name.position, target, name.text, self._arguments())
            else:
                _check_known(name, MEMBERS, "member")
                target = Member(name.position, target, name.text)
        return target

    def _single(self) -> Expression:
        token = self._now
        if self._take("("):
            inner = self._expression()
            self._need(")")
            return inner
        if token.kind == "number":
            self._at += 1
            return Number(token.position, float(token.text))
        if token.kind == "text":
            self._at += 1
            return Text(token.position, token.text[1:-1])
        if token.kind != "name":
            self._fail("a value is expected")
        self._at += 1
        if self._now.text != "(":
            return Name(token.position, _variable(token.text))
        _check_known(token, FUNCTIONS, "function")
        return Call(token.position, token.text, self._arguments())

    def _arguments(self) -> tuple[Expression, ...]:
        self._need("(")
        found: list[Expression] = []
        while not self._take(")"):
            if found:
                self._need(",")
            found.append(self._expression())
        return tuple(found)


def _check_known(name: Token, known: object, kind: str) -> None:
    assert isinstance(known, (dict, frozenset))
    if name.text not in known:
        raise FormulaSyntaxError(name.position, f"there is no {kind} {name.text}")


def _variable(name: str) -> str:
    """The dollar sign of a variable of one's own is optional: `$x` and `x` are the same."""
    return name if name in METRICS or name in WRITABLE else name.removeprefix("$")


def _written(token: Token) -> str:
    name = _variable(token.text)
    if name in METRICS or name in INTERVALS or name in OPTIONS:
        raise FormulaSyntaxError(token.position, f"{token.text} cannot be set")
    return name
