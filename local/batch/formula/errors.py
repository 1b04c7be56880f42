"""What can be wrong with a formula: it cannot be read, or it cannot be evaluated now."""

from dataclasses import dataclass

EVALUATION_ERROR = "AutoScalingFormulaEvaluationError"
INSUFFICIENT_DATA = "InsufficientSampleData"


@dataclass(frozen=True, order=True)
class Position:
    """Where in the text, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"Line {self.line}, Col {self.column}"


class FormulaSyntaxError(ValueError):
    """The text is no formula; a pool never takes it."""

    def __init__(self, position: Position, reason: str) -> None:
        super().__init__(f"{position}: {reason}")


class FormulaTooLong(ValueError):
    """More text or more statements than Batch takes."""


class FormulaEvaluationError(Exception):
    """The evaluation ends here; the pool keeps its targets. `reason` is put behind the position once that is known."""

    def __init__(self, reason: str, code: str = EVALUATION_ERROR) -> None:
        super().__init__(reason)
        self.code = code
