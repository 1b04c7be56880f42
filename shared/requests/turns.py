"""A tenant with a cap on its live tasks: which of its waiting jobs has the next turn, and how many turns there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.ledger.port import LiveSummary
from shared.pools.placer import PRIORITY
from shared.protocol.record import LIVE_STATES, State


def free_turns(live: Iterable[LiveSummary], most_live_tasks: int) -> int:
    """How many tasks more the tenant may have in Batch."""
    return max(0, most_live_tasks - sum(one.state in LIVE_STATES for one in live))


def takes_a_turn(one: LiveSummary) -> bool:
    """It waits for a place. One that is not wanted ends instead, and a task that is taken over is in Batch already."""
    return one.state is State.WAITING and not one.is_unwanted and not one.is_taken_over


def in_turn(due: Sequence[LiveSummary]) -> list[LiveSummary]:
    """The same records; in the places of those that take a turn, people's come before trainings, and the oldest first.

    So all others keep their places, and whoever is looked at last in one run is looked at first in the next.
    """
    takers = filter(takes_a_turn, due)
    turns = iter(sorted(takers, key=lambda one: (-PRIORITY[one.job_class], one.asked, one.key)))
    return [next(turns) if takes_a_turn(one) else one for one in due]
