"""Azure Batch's language for the size of a pool: it reads a formula and carries it out on a pool's samples."""

from local.batch.formula.errors import FormulaSyntaxError, FormulaTooLong
from local.batch.formula.evaluation import Outcome, Situation, evaluate
from local.batch.formula.parser import parse
from local.batch.formula.samples import PERIOD_SECONDS, History

__all__ = [
    "PERIOD_SECONDS",
    "FormulaSyntaxError",
    "FormulaTooLong",
    "History",
    "Outcome",
    "Situation",
    "evaluate",
    "parse",
]
