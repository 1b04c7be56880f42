"""The protocol's guarantees on the real driver, under random schedules and under all schedules near the plain one."""

from __future__ import annotations

import os

import pytest

from tests.protocol.interleaving import Entity, Violation, configuration, explore, walk
from tests.protocol.switched_off import RULES

#: More with HASTE_WORKER_WALKS=20000; a failure prints its seed and its steps.
WALKS = int(os.environ.get("HASTE_WORKER_WALKS", "800"))
_SHARDS = 4


@pytest.mark.parametrize("shard", range(_SHARDS))
def test_random_schedules_keep_the_guarantees(shard: int) -> None:
    for seed in range(shard, WALKS, _SHARDS):
        try:
            walk(Entity(**configuration(seed)), seed)
        except Violation as violation:
            pytest.fail(f"seed {seed}, {configuration(seed)}: {violation}")


@pytest.mark.parametrize(
    ("name", "options", "deviations"),
    [
        ("one request, delivered again and again", {"with_moves": False, "with_save": False}, 2),
        ("a cancel", {"with_moves": False, "with_save": False, "with_cancel": True}, 1),
        ("two requests and HASTE's late saves", {"with_moves": False, "requests": 2}, 1),
        ("a lost node and a follow-up", {"with_save": False, "with_follow_up": True}, 1),
    ],
)
def test_all_schedules_near_the_plain_one(name: str, options: dict[str, object], deviations: int) -> None:
    runs = explore(lambda: Entity(**options), deviations, most_steps=45)  # type: ignore[arg-type]
    assert runs > 50, f"{name}: only {runs} schedules were tried"


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_a_guarantee_breaks(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    RULES[rule](monkeypatch)
    with pytest.raises(Violation):
        for seed in range(2000):
            walk(Entity(**configuration(seed)), seed)
