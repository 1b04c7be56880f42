"""Cuts a formula into tokens."""

import re
from dataclasses import dataclass

from local.batch.formula.errors import FormulaSyntaxError, Position

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
      | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
      | (?P<name>\$?[A-Za-z_]\w*)
      | (?P<text>"[^"\n]*")
      | (?P<sign><=|>=|==|!=|&&|\|\||[-+*/<>=!?:;,.()])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """`kind` is number, name, text, sign or end."""

    kind: str
    text: str
    position: Position


def tokens(formula: str) -> list[Token]:
    """All tokens without blanks and comments, and one of kind `end`. FormulaSyntaxError for a foreign character."""
    found: list[Token] = []
    at, line, line_start = 0, 1, 0
    while at < len(formula):
        position = Position(line, at - line_start + 1)
        match = _TOKEN.match(formula, at)
        if match is None or match.lastgroup is None:
            raise FormulaSyntaxError(position, f"{formula[at]!r} is not expected")
        text = match[0]
        if match.lastgroup != "blank":
            found.append(Token(match.lastgroup, text, position))
        if "\n" in text:
            line += text.count("\n")
            line_start = at + text.rindex("\n") + 1
        at = match.end()
    found.append(Token("end", "", Position(line, at - line_start + 1)))
    return found
