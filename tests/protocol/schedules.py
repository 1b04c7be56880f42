"""Schedules of one entity's events: random ones, and all that leave the plain one a few times."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.protocol.interleaving import Entity


def configuration(number: int) -> dict[str, Any]:
    """All combinations of one to three requests with cancel, late saves, a follow-up and a second pool."""
    return {
        "requests": 1 + number % 3,
        "with_cancel": bool(number // 3 % 2),
        "with_save": bool(number // 6 % 2),
        "with_follow_up": bool(number // 12 % 2),
        "with_moves": bool(number // 24 % 2),
    }


def walk(entity: Entity, seed: int, steps: int = 80) -> None:
    """A random schedule, then the end. Raises Violation."""
    chance = random.Random(seed)
    for _ in range(steps):
        choices = entity.choices()
        name, event = chance.choices(choices, [_weight(name) for name, _ in choices])[0]
        entity.do(name, event)
    entity.end_well()


def _weight(name: str) -> float:
    if "crashes" in name:
        return 0.15
    return 0.3 if "pass" in name or "loses" in name else 1.0


def explore(make: Callable[[], Entity], deviations: int, most_steps: int) -> int:
    """Every schedule that leaves the plain one at most `deviations` times, each run to its end. Returns their number.

    The plain schedule always takes the first thing that can happen except crashes: actors run to their end one after
    the other. A deviation takes something else instead: another actor first, a crash, a stall until later.
    """
    runs = 0
    stack: list[tuple[tuple[int, int], ...]] = [()]
    while stack:
        plan = stack.pop()
        runs += 1
        entity = make()
        widths = _follow(entity, dict(plan), most_steps)
        entity.end_well()
        if len(plan) < deviations:
            first = plan[-1][0] + 1 if plan else 0
            stack += [(*plan, (at, other)) for at in range(first, len(widths)) for other in range(1, widths[at])]
    return runs


def _follow(entity: Entity, plan: dict[int, int], most_steps: int) -> list[int]:
    widths: list[int] = []
    for at in range(most_steps):
        choices = sorted(entity.choices(), key=lambda choice: _rank(choice[0]))
        widths.append(len(choices))
        if at not in plan and _rank(choices[0][0]) > _rank("crashes"):
            break
        name, event = choices[plan.get(at, 0)] if plan.get(at, 0) < len(choices) else choices[0]
        entity.do(name, event)
    return widths


def _rank(name: str) -> int:
    """The plain order: whoever is at work goes on, then the API, messages, the task, a tick; never a crash."""
    order = ("goes on", "API", "takes", "completes", "ticks", "crashes", "pass", "loses")
    return next(n for n, word in enumerate(order) if word in name)


def zombie_create(entity: Entity) -> None:
    """A handler stalls just before it adds the task; a cancel is carried out meanwhile; then it goes on."""
    _take(entity, "API puts request")
    _take(entity, "H1 takes request-1")
    while "create_task" not in entity.actors["H1"].at:
        _take(entity, "H1 goes on")
    _take(entity, "API puts cancel")
    _take(entity, "H2 takes cancel")
    while "H2" in entity.actors:
        _take(entity, "H2 goes on")
    for _ in range(4):
        _take(entity, "T1 ticks")
        while "T1" in entity.actors:
            _take(entity, "T1 goes on")
        entity.pass_seconds(61)
    _take(entity, "H1 goes on")
    entity.end_well()


def _take(entity: Entity, name: str) -> None:
    entity.do(*next(choice for choice in entity.choices() if choice[0].startswith(name)))
