"""The autoscale formulas as they are deployed, in the emulator's interpreter."""

from __future__ import annotations

import pytest

from local.batch import formula
from tests.infra import expectations
from tests.infra.snapshots import load, metadata, names, pools

SLOTS = {"pool-four-slots": (4, 1)}
SCALED = [
    (name, pool_id)
    for name in names("pool")
    for pool_id, pool in pools(load(name)).items()
    if "autoScale" in pool["properties"]["scaleSettings"]
]


@pytest.mark.parametrize(("name", "pool_id"), SCALED)
def test_it_scales_as_promised(name: str, pool_id: str) -> None:
    pool = pools(load(name))[pool_id]
    scale = pool["properties"]["scaleSettings"]["autoScale"]
    slots, minimum = SLOTS.get(name, (1, 0))
    expectations.formula_scales(
        scale["formula"],
        "TargetDedicatedNodes" if "-dedicated" in name else "TargetLowPriorityNodes",
        slots=slots,
        minimum=minimum,
        maximum=int(metadata(pool)["maximumNodes"]),
        minutes=int(scale["evaluationInterval"].strip("PTM")),
    )


@pytest.mark.parametrize(("name", "pool_id"), SCALED)
def test_it_is_within_the_limits_of_batch(name: str, pool_id: str) -> None:
    text = pools(load(name))[pool_id]["properties"]["scaleSettings"]["autoScale"]["formula"]
    assert len(text.encode()) <= 8 * 1024
    assert len(list(formula.parse(text))) <= 100
