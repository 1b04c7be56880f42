"""Whatever the samples: a formula that caps its target keeps to the cap, and no text breaks the interpreter."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from local.batch.formula import FormulaSyntaxError, FormulaTooLong, History, evaluate
from local.batch.formula.variables import NODE_METRICS, TASK_METRICS
from tests.batch_emulator.formulas import on_active_tasks, on_pending_tasks
from tests.batch_emulator.test_formula import NOW, situation

_CAP, _FLOOR = 27, 1
_COUNT = st.integers(0, 1000).map(float)
_SAMPLE = st.none() | st.dictionaries(st.sampled_from((*TASK_METRICS, *NODE_METRICS)), _COUNT)


def _history(values: list[dict[str, float] | None]) -> History:
    """The newest first; None is a sample that got lost."""
    history = History()
    for age, sample in reversed(list(enumerate(values))):
        if sample is not None:
            history.add(NOW - timedelta(seconds=30 * age), sample)
    return history


@settings(max_examples=300, deadline=None)
@given(st.lists(_SAMPLE, max_size=40), st.sampled_from([0, 45, 60, 90, 1800]), st.integers(1, 8), st.integers(0, _CAP))
def test_any_samples_keep_the_target_within_its_limits(
    values: list[dict[str, float] | None], lag: int, slots: int, target: int
) -> None:
    current = dict.fromkeys(NODE_METRICS, 0.0) | {"$TaskSlotsPerNode": float(slots)}
    seen = situation(_history(values), lag=timedelta(seconds=lag), current=current, dedicated=0, low_priority=target)

    for formula in (on_active_tasks(_CAP, _FLOOR), on_pending_tasks(_CAP, _FLOOR)):
        outcome = evaluate(formula, seen)
        assert outcome.dedicated == 0
        if outcome.error is None:
            assert _FLOOR <= outcome.low_priority <= _CAP
        else:
            assert outcome.error[0] == "InsufficientSampleData"
            assert outcome.low_priority == target
    assert evaluate(on_pending_tasks(_CAP, _FLOOR), seen).error is None


_PIECES = st.sampled_from(
    [
        *("1", "0", "2.5", "x", "$x", "$ActiveTasks", "$TargetDedicatedNodes", "requeue", '"a"', "time()", "vec(1, 2)"),
        *("TimeInterval_Minute", ".GetSample(1)", ".hour", "max(", "rand()", "stop()", "GetSamplePercent"),
        *("+", "-", "*", "/", "<", "==", "!", "&&", "||", "?", ":", "=", ";", "(", ")", ",", ".", " ", "\n", "//"),
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(_PIECES, max_size=25).map("".join) | st.text(max_size=40))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    try:
        outcome = evaluate(text, situation(_history([{"$ActiveTasks": 3.0}] * 4)))
    except (FormulaSyntaxError, FormulaTooLong):
        return
    assert outcome.dedicated >= 0 and outcome.low_priority >= 0
    assert outcome.results.startswith("$TargetDedicatedNodes=")
    if outcome.error:
        assert (outcome.dedicated, outcome.low_priority) == (1, 2)
