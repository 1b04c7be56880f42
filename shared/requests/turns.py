"""The order in which the timer looks at live records, and whose turn it is where the live tasks are limited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from shared.ledger.port import LiveSummary
from shared.pools.placer import PRIORITY
from shared.protocol.record import LIVE_STATES, State

#: How many older waiting jobs of a class are tried before a newer one that is due.
_MOST_OLDER = 20


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


def in_order(live: Iterable[LiveSummary], now: datetime) -> list[LiveSummary]:
    """What is due, in the order of the requests.

    A job that has been refused a place comes before newer ones of its class whenever one of those is due, even if its
    own pause is longer: newer jobs do not overtake it.
    """
    by_class: dict[str, list[LiveSummary]] = {}
    for one in live:
        by_class.setdefault(one.job_class, []).append(one)
    chosen: list[LiveSummary] = []
    for of_class in by_class.values():
        due = [one for one in of_class if _is_due(one, now)]
        newest = max((one.asked for one in due if one.state is State.WAITING and not one.is_unwanted), default=None)
        older = [one for one in of_class if newest and one.holds_back(newest) and not _is_due(one, now)]
        chosen += due + sorted(older, key=lambda one: one.asked)[:_MOST_OLDER]
    return sorted(chosen, key=lambda one: (one.asked, one.key))


def _is_due(summary: LiveSummary, now: datetime) -> bool:
    return summary.state in (State.PLACED, State.ENDING) or summary.not_before <= now
