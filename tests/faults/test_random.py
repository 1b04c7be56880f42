"""Random fault schedules under manual time: nothing lost, nothing doubled, everything ends once faults stop.

`HASTE_FAULT_SCHEDULES=5000` plays more of them, `HASTE_FAULT_SEED=765` plays that one alone.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.plan import make_plan
from tests.faults.playing import failure, shortened
from tests.faults.tenant import MovingWaits

_SCHEDULES = int(os.environ.get("HASTE_FAULT_SCHEDULES", "500"))
_AT_ONCE = 20
_ONLY = os.environ.get("HASTE_FAULT_SEED")
_SEEDS = (
    [range(int(_ONLY), int(_ONLY) + 1)]
    if _ONLY
    else [range(first, min(first + _AT_ONCE, _SCHEDULES)) for first in range(0, _SCHEDULES, _AT_ONCE)]
)


@pytest.mark.parametrize("seeds", _SEEDS, ids=[f"seeds-{seeds.start}-{seeds.stop - 1}" for seeds in _SEEDS])
def test_nothing_is_lost_or_doubled_and_all_ends(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    waits = MovingWaits.installed(monkeypatch)
    for seed in seeds:
        plan = make_plan(seed)
        why = failure(waits, plan)
        if why is not None:
            short = shortened(waits, plan)
            pytest.fail(
                f"{why}\n\nshortest schedule that fails: {failure(waits, short)}\n{short.told()}", pytrace=False
            )
