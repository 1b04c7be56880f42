"""A few looks in each run of the timer come to everybody, whoever comes and goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.memory import InTurn

NOON = datetime(2026, 8, 12, 12, tzinfo=UTC)
EVERY, TICK, MOST = timedelta(minutes=2), timedelta(seconds=30), 5


def test_everybody_in_turn_and_nobody_too_soon() -> None:
    turns, keys = InTurn(EVERY), [f"{number:02}" for number in range(50)]
    seen = [key for tick in range(10) for key in sorted(turns.next(keys, MOST, NOON + tick * TICK))]
    assert seen == keys
    assert turns.next(keys, MOST, NOON + 10 * TICK) == frozenset(keys[:5])


def test_few_are_not_looked_at_in_every_run() -> None:
    turns = InTurn(EVERY)
    looks = [len(turns.next(["a", "b"], MOST, NOON + tick * TICK)) for tick in range(9)]
    assert looks == [2, 0, 0, 0, 2, 0, 0, 0, 2]


@given(st.integers(1, 60), st.integers(0, 4))
def test_those_that_come_new_keep_nobody_from_it(count: int, new_each_tick: int) -> None:
    turns, keys = InTurn(EVERY), [f"old-{number}" for number in range(count)]
    waiting = set(keys)
    for tick in range(200):
        keys = keys + [f"new-{tick}-{number}" for number in range(new_each_tick)]
        chosen = turns.next(keys, MOST, NOON + tick * TICK)
        assert len(chosen) <= MOST
        waiting -= chosen
        if not waiting:
            break
    assert not waiting
    assert tick <= max(4, count)
