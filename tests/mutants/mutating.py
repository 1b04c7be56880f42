"""What can be changed in a module: numbers, boundaries, logic, and calls whose answer nobody uses."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED = {
    "<": ("<=",),
    "<=": ("<",),
    ">": (">=",),
    ">=": (">",),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
}
_LOGIC = {ast.And: ("and", "or"), ast.Or: ("or", "and")}


@dataclass(frozen=True)
class Mutant:
    """`path` with the characters from `begin` to `end` replaced by `text`. `line` is where that begins."""

    path: str
    line: int
    begin: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """The module's text with the change."""
        return source[: self.begin] + self.text + source[self.end :]

    def diff(self, source: str) -> str:
        """The change as lines."""
        lines = difflib.unified_diff(source.splitlines(), self.applied(source).splitlines(), n=1, lineterm="")
        return "\n".join([f"{self.path}:{self.line}", *(line for line in list(lines)[3:])])


def mutants(path: str, source: str) -> list[Mutant]:
    """Every change that is tried in a module, in the order of its text. What is logged is left as it is."""
    place = _Places(source)
    tree = ast.parse(source)
    left_alone = {id(inner) for node in ast.walk(tree) if _is_left_alone(node) for inner in ast.walk(node)}
    found = [
        Mutant(path, source.count("\n", 0, begin) + 1, begin, end, text)
        for node in ast.walk(tree)
        if id(node) not in left_alone
        for begin, end, text in _changes(node, source, place)
    ]
    return sorted(found, key=lambda one: (one.begin, one.end, one.text))


class _Places:
    """Offsets in the text, of positions that the parser gives as lines and bytes."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def begin(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _is_left_alone(node: ast.AST) -> bool:
    """Log lines, annotations' own constants, and f-strings, whose parts have no places in Python 3.11."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).startswith(("log.", "_log."))
    return isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom))


def _changes(node: ast.AST, source: str, place: _Places) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, ast.Constant):
        for text in _constants(node.value):
            yield place.begin(node), place.end(node), text
    elif isinstance(node, ast.Compare):
        between = zip([node.left, *node.comparators], node.comparators, strict=False)
        for left, right in between:
            begin, end = place.end(left), place.begin(right)
            operator = re.search(r"not\s+in|is\s+not|in|is|[<>=!]=|[<>]", source[begin:end])
            assert operator is not None
            for text in _COMPARED[" ".join(operator.group().split())]:
                yield begin + operator.start(), begin + operator.end(), text
    elif isinstance(node, ast.BoolOp):
        old, new = _LOGIC[type(node.op)]
        for left, right in zip(node.values, node.values[1:], strict=False):
            begin = place.end(left)
            operator = re.search(rf"\b{old}\b", source[begin : place.begin(right)])
            assert operator is not None
            yield begin + operator.start(), begin + operator.end(), new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        word = re.match(r"not\s*", source[place.begin(node) :])
        assert word is not None
        yield place.begin(node), place.begin(node) + word.end(), ""
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield place.begin(node), place.end(node), "pass"


def _constants(value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (str(not value),)
    if isinstance(value, (int, float)):
        tried = (value + 1, value - 1, value * 2, value * 3)
        return tuple(dict.fromkeys(repr(one) for one in tried if one != value))
    return ()
