"""A tenant with a cap on its live tasks: which of its waiting jobs has the next turn, and how many turns there are."""

from __future__ import annotations

from collections.abc import Iterable

from shared.ledger.port import LiveSummary
from shared.placement.placer import PRIORITY
from shared.protocol.record import State

#: A record in one of these has a task that may be in Batch.
LIVE_STATES = frozenset({State.PLACED, State.ENDING})


def free_turns(live: Iterable[LiveSummary], most_live_tasks: int) -> int:
    """How many tasks more the tenant may have in Batch."""
    return max(0, most_live_tasks - sum(one.state in LIVE_STATES for one in live))


def in_turn(due: Iterable[LiveSummary]) -> list[LiveSummary]:
    """The waiting jobs among `due`: people's before trainings, the oldest of a class first."""
    waiting = [one for one in due if one.state is State.WAITING and not one.is_unwanted]
    return sorted(waiting, key=lambda one: (-PRIORITY[one.job_class], one.asked, one.key))
