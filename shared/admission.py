"""Which waiting jobs a tenant with a cap on its live tasks may place now: a pure decision, taken by the timer alone."""

from __future__ import annotations

from collections.abc import Iterable

from shared.ledger.port import LiveSummary
from shared.placement.placer import PRIORITY
from shared.protocol.record import State


def admitted(due: Iterable[LiveSummary], live: Iterable[LiveSummary], most_live_tasks: int) -> frozenset[str]:
    """Keys of the waiting jobs among `due` that fit below the cap: the oldest of a class, people's before trainings."""
    taken = sum(one.state in (State.PLACED, State.ENDING) for one in live)
    waiting = [one for one in due if one.state is State.WAITING and not one.is_unwanted]
    waiting.sort(key=lambda one: (-PRIORITY[one.job_class], one.asked, one.key))
    return frozenset(one.key for one in waiting[: max(0, most_live_tasks - taken)])
