"""A random fault schedule as data: who asks for what when, and what goes wrong when. Made from a seed alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from shared.kinds import Kind

#: Faults begin and end within this time; then everything works again.
FAULTY_SECONDS = 1800.0
POOLS = ("h100", "t4")

ANSWERS: tuple[dict[str, Any], ...] = (
    {"status": 429, "code": "TooManyRequests"},
    {"status": 429, "code": "TooManyRequests", "retry_after": 15},
    {"status": 503},
    {"code": "InternalError", "when": "after"},
    {"code": "InternalError"},
    {"drop_connection": True},
    {"drop_connection": True, "when": "after"},
    {"status": 403, "code": "AuthorizationFailure"},
)
OPERATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"method": "POST"},
    {"method": "GET"},
    {"operation": "create_task"},
    {"operation": "terminate_task"},
    {"operation": "list_tasks"},
    {"operation": "list_nodes"},
    {"operation": "list_pool_node_counts"},
    {"operation": "create_job"},
)
_QUOTA: dict[str, Any] = {"operation": "create_job", "code": "ActiveJobAndScheduleQuotaReached"}
_RESIZE_ERRORS = ("AccountLowPriorityCoreQuotaReached", "AllocationTimedout", "AllocationFailedWithDetails")


@dataclass(frozen=True)
class Ask:
    """HASTE's API puts a message about one of the tenant's layers and models (by its number).

    `number` makes the message's id, so that it stays the same when other messages are left out.
    """

    at: float
    number: int
    entity: int
    cancel: bool = False
    arrives_after: float = 0
    saved_after: float = 0
    copies: int = 1


@dataclass(frozen=True)
class Trouble:
    """Something goes wrong at a time; `what` names a method of `Play`, which is given the facts."""

    at: float
    what: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """A schedule. `ticks`: when the timer runs while faults last."""

    seed: int
    kinds: tuple[Kind, ...]
    asks: tuple[Ask, ...]
    troubles: tuple[Trouble, ...]
    ticks: tuple[float, ...]

    def without(self, trouble: Trouble) -> Plan:
        """The same schedule with one thing less that goes wrong."""
        return replace(self, troubles=tuple(one for one in self.troubles if one is not trouble))

    def told(self) -> str:
        """For people."""
        happens: list[Ask | Trouble] = sorted([*self.asks, *self.troubles], key=lambda one: one.at)
        return "\n".join([f"seed {self.seed}: {', '.join(self.kinds)}", *(f"  {one}" for one in happens)])


def make_plan(seed: int) -> Plan:
    """The schedule of this seed."""
    chance = random.Random(seed)
    kinds = tuple(chance.choice(list(Kind)) for _ in range(chance.randint(3, 6)))
    asks = [ask for number in range(len(kinds)) for ask in _asks(chance, number)]
    asks = [replace(ask, number=number) for number, ask in enumerate(asks, start=1)]
    troubles = [_trouble(chance) for _ in range(chance.randint(4, 16))]
    ticks, at = [], 0.0
    while at < FAULTY_SECONDS:
        at += chance.uniform(20, 90)
        ticks.append(at)
    return Plan(seed, kinds, tuple(asks), tuple(sorted(troubles, key=lambda one: one.at)), tuple(ticks))


def _asks(chance: random.Random, entity: int) -> list[Ask]:
    """A request, perhaps others after it, perhaps cancels; a queue may deliver late, twice, and out of order."""
    asks = []
    at = chance.uniform(0, 600)
    for number in range(chance.choice((1, 1, 1, 2, 2, 3))):
        asks.append(_ask(chance, at, entity, cancel=number > 0 and chance.random() < 0.4))
        at += chance.choice((1.0, 40.0, 400.0)) * chance.random()
    if chance.random() < 0.3:
        asks.append(_ask(chance, at, entity, cancel=True))
    return asks


def _ask(chance: random.Random, at: float, entity: int, cancel: bool) -> Ask:
    return Ask(
        at,
        0,
        entity,
        cancel,
        arrives_after=chance.choice((0, 0, 0, 2, 50)) * chance.random(),
        saved_after=chance.choice((0, 0, 5, 55)) * chance.random(),
        copies=chance.choice((1, 1, 1, 2)),
    )


def _trouble(chance: random.Random) -> Trouble:
    what, facts = chance.choice(_KINDS_OF_TROUBLE)
    return Trouble(chance.uniform(0, FAULTY_SECONDS - 300), what, facts(chance))


def _answers(chance: random.Random) -> dict[str, Any]:
    rule = chance.choice(OPERATIONS) | chance.choice(ANSWERS)
    if chance.random() < 0.5:
        rule |= {"probability": chance.choice((0.2, 0.5)), "seed": chance.randrange(1000)}
    return {"rule": rule, "seconds": chance.choice((20.0, 90.0, 250.0))}


def _preempts(chance: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "state": chance.choice(("preempted", "preempted", "unusable")),
        "return_after_seconds": chance.choice((None, 5, 60, 300)),
        "requeue_after_seconds": chance.choice((0, 0, 30, 200)),
    }
    if chance.random() < 0.1:
        options["stuck"] = True
    return {"pool": chance.choice(POOLS), "options": options}


def _takes_capacity(chance: random.Random) -> dict[str, Any]:
    error = chance.choice((None, *_RESIZE_ERRORS))
    return {
        "pools": chance.choice((POOLS, *((pool,) for pool in POOLS))),
        "error": error,
        "seconds": chance.uniform(20, 290),
    }


def _by_hand(chance: random.Random) -> dict[str, Any]:
    return {"action": chance.choice(("delete", "terminate")), "which": chance.randrange(100)}


def _pool(chance: random.Random) -> dict[str, Any]:
    return {"pool": chance.choice(POOLS), "seconds": chance.uniform(20, 290)}


def _host(chance: random.Random) -> dict[str, Any]:
    stands = chance.choice((None, None, 10.0, 60.0, 280.0))
    return {"who": chance.choice(("timer", "handler")), "access": chance.randrange(25), "stands_seconds": stands}


_KINDS_OF_TROUBLE: tuple[tuple[str, Callable[[random.Random], dict[str, Any]]], ...] = (
    ("answers", _answers),
    ("answers", _answers),
    ("answers", lambda chance: {"rule": _QUOTA, "seconds": chance.uniform(20, 290)}),
    ("preempts", _preempts),
    ("preempts", _preempts),
    ("preempts", _preempts),
    ("takes_capacity", _takes_capacity),
    ("touches_task", _by_hand),
    ("touches_job", _by_hand),
    ("deletes_pool", _pool),
    ("stops_host", _host),
    ("stops_host", _host),
    ("stops_host", _host),
)
