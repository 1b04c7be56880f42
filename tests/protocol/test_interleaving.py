"""The protocol's guarantees on the real driver, under random schedules and under all schedules near the plain one."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.protocol.interleaving import Entity, Violation
from tests.protocol.schedules import configuration, explore, walk, zombie_create
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
    ("name", "options", "deviations", "steps"),
    [
        ("one request, delivered again and again", {"with_moves": False, "with_save": False}, 2, 16),
        ("a cancel", {"with_moves": False, "with_save": False, "with_cancel": True}, 1, 45),
        ("two requests and HASTE's late saves", {"with_moves": False, "requests": 2}, 1, 45),
        ("a lost node and a follow-up", {"with_save": False, "with_follow_up": True}, 1, 45),
    ],
)
def test_all_schedules_near_the_plain_one(name: str, options: dict[str, Any], deviations: int, steps: int) -> None:
    runs = explore(lambda: Entity(**options), deviations, steps)
    assert runs > 50, f"{name}: only {runs} schedules were tried"


def test_a_create_that_comes_after_its_cancel_finds_its_id_spent() -> None:
    zombie_create(Entity(with_cancel=True, with_save=False, with_moves=False))


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_a_guarantee_breaks(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    switch, first_seed = RULES[rule]
    switch(monkeypatch)
    with pytest.raises(Violation):
        zombie_create(Entity(with_cancel=True, with_save=False, with_moves=False))
        for seed in range(first_seed, first_seed + 2000):
            walk(Entity(**configuration(seed)), seed)
