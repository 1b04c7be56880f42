"""A random fault schedule for a running stack as data, made from a seed alone: short tasks, short faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.kinds import Kind
from tests.faults.audit import FAILS
from tests.faults.plan import ANSWERS, OPERATIONS, Trouble

#: Requests are made and faults begin within this time; what a fault has taken comes back then at the latest.
FAULTY_SECONDS = 45.0
HOSTS = 2

#: What becomes of the first calls that add a request's task.
_FIRST_ADDED: tuple[dict[str, Any] | None, ...] = (
    *(None,) * 5,
    {"code": "InternalError", "when": "after", "times": 1},
    {"status": 503, "when": "after", "times": 2},
    {"drop_connection": True, "when": "after", "times": 1},
    {"drop_connection": True, "times": 1},
    {"status": 429, "code": "TooManyRequests", "retry_after": 2, "times": 2},
    {"delay_seconds": 22, "when": "after", "times": 1},  # the worker waits for 20
)


@dataclass(frozen=True)
class Work:
    """A layer or model; its programs take so long and end so."""

    kind: Kind
    seconds: float
    exit_code: int


@dataclass(frozen=True)
class Ask:
    """HASTE's API is asked for one of the schedule's works (by its number), or to cancel it or what follows it.

    The message is hidden at first, so that a later one may overtake it.
    """

    at: float
    work: int
    what: str
    hidden_seconds: int = 0
    first_added: dict[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """A schedule. `follows`: an inference follows each training.

    `what` of a trouble names a method of `http_troubles.Troubles`, which is given the facts. Those that are named
    `work` and `then` are for `http_playing.Playing`: what is hit, and what HASTE's API is asked for about it then.
    """

    seed: int
    follows: bool
    works: tuple[Work, ...]
    asks: tuple[Ask, ...]
    troubles: tuple[Trouble, ...]

    def told(self) -> str:
        """For people."""
        works = [f"  {number}: {work}" for number, work in enumerate(self.works)]
        happens: list[Ask | Trouble] = sorted([*self.asks, *self.troubles], key=lambda one: one.at)
        return "\n".join(
            [
                f"seed {self.seed}{', inference follows' if self.follows else ''}",
                *works,
                *(f"  {one}" for one in happens),
            ]
        )


def make_plan(seed: int) -> Plan:
    """The schedule of this seed."""
    chance = random.Random(f"http {seed}")
    follows = chance.random() < 0.4
    works = tuple(_work(chance) for _ in range(chance.choice((2, 2, 3))))
    asks = [ask for number, work in enumerate(works) for ask in _asks(chance, number, work, follows)]
    may_repeat = {Kind.INFERENCE} if follows else {Kind.INFERENCE, Kind.TRAINING}
    again = tuple(number for number, work in enumerate(works) if work.kind in may_repeat)
    weighed = [what for what, (weight, _facts) in _TROUBLES.items() for _ in range(weight)]
    kinds = [TROUBLES[seed % len(TROUBLES)], *chance.choices(weighed, k=chance.randint(2, 3))]  # so that all take place
    kinds += ["write_comes_late"] if again else []
    troubles = [_trouble(chance, what, asks, again, len(works)) for what in kinds]
    return Plan(seed, follows, works, tuple(asks), tuple(sorted(troubles, key=lambda one: one.at)))


def _work(chance: random.Random) -> Work:
    kind = chance.choice((Kind.IMAGERYPREP, Kind.TRAINING, Kind.TRAINING, Kind.INFERENCE))
    return Work(kind, chance.choice((0.5, 2.0, 4.0, 8.0)), chance.choices((0, FAILS), (92, 8))[0])


def _asks(chance: random.Random, number: int, work: Work, follows: bool) -> list[Ask]:
    """A request, perhaps others after it, perhaps cancels. HASTE asks for a layer once.

    A model whose training an inference follows is trained once: HASTE's API saves the whole record of both, so a
    request for the one that races with the end of the other may undo what it shows, whoever runs the tasks.
    """
    at = chance.uniform(0, 22)
    asks = [_ask(chance, at, number, "start")]
    if work.kind is Kind.IMAGERYPREP:
        return asks
    if work.kind is Kind.TRAINING and follows:
        return [*asks, Ask(at + 1, number, "cancel what follows")] if chance.random() < 0.25 else asks
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2))):
        at += chance.choice((2.0, 5.0, 12.0)) * chance.uniform(0.7, 1.0)
        asks.append(_ask(chance, at, number, chance.choice(("start", "start", "cancel"))))
    return asks


def _ask(chance: random.Random, at: float, number: int, what: str) -> Ask:
    first_added = chance.choice(_FIRST_ADDED) if what == "start" else None
    return Ask(at, number, what, chance.choice((0, 0, 0, 3)), first_added)


def _trouble(chance: random.Random, what: str, asks: list[Ask], again: tuple[int, ...], works: int) -> Trouble:
    """`again`: the works that may be asked for again, or cancelled, in the middle of a trouble."""
    facts = _TROUBLES[what][1](chance, works)
    if what in _THEN and again:
        facts |= {"work": chance.choice(again), "then": chance.choice(_THEN[what])}
    at = chance.uniform(1, FAULTY_SECONDS - 8)
    if what in _AT:
        at = chance.uniform(*_AT[what])
    elif "work" in facts:
        at = min(ask.at for ask in asks if ask.work == facts["work"])
        at += 0 if what == "write_comes_late" else chance.uniform(0, 4)
    return Trouble(at, what, facts)


def _answers(chance: random.Random, _works: int) -> dict[str, Any]:
    rule = chance.choice(OPERATIONS) | chance.choice(ANSWERS)
    if chance.random() < 0.5:
        rule |= {"probability": chance.choice((0.2, 0.5)), "seed": chance.randrange(1000)}
    return {"rule": rule, "seconds": chance.uniform(1, 4)}


def _preempts(chance: random.Random, works: int) -> dict[str, Any]:
    options = {
        "state": chance.choice(("preempted", "preempted", "unusable")),
        "return_after_seconds": chance.choice((None, 1, 5)),
        "requeue_after_seconds": chance.choice((0, 0, 3)),
    }
    return {"work": chance.randrange(works), "options": options}


def _preempts_unnoticed(chance: random.Random, works: int) -> dict[str, Any]:
    """Batch says for long that the task runs, and only then can it be ended."""
    options = {"return_after_seconds": 20, "requeue_after_seconds": 15}
    return {"work": chance.randrange(works), "options": options}


def _comes_late(chance: random.Random, works: int) -> dict[str, Any]:
    return {"work": chance.randrange(works), "state": "finishing", "seconds": chance.uniform(2, 5)}


def _touches(chance: random.Random, works: int) -> dict[str, Any]:
    return {"work": chance.randrange(works), "action": chance.choice(("delete", "terminate"))}


def _ends_job_at_quota(chance: random.Random, works: int) -> dict[str, Any]:
    return {"work": chance.randrange(works), "times": chance.choice((1, 2))}


def _comes_twice(chance: random.Random, _works: int) -> dict[str, Any]:
    return {"seconds": chance.uniform(2, 4)}


def _kills(chance: random.Random, _works: int) -> dict[str, Any]:
    return {"host": chance.randrange(HOSTS), "down_seconds": chance.uniform(0, 4)}


def _stands(chance: random.Random, _works: int) -> dict[str, Any]:
    return {"host": chance.randrange(HOSTS), "seconds": chance.choice((3.0, 12.0))}


def _storage(chance: random.Random, _works: int) -> dict[str, Any]:
    return {"seconds": chance.uniform(1, 4)}


#: How often of all beside those that are dealt out in turn, and the facts.
_TROUBLES: dict[str, tuple[int, Callable[[random.Random, int], dict[str, Any]]]] = {
    "answers": (3, _answers),
    "preempts": (5, _preempts),
    "preempts_unnoticed": (3, _preempts_unnoticed),
    "touches_task": (4, _touches),
    "touches_job": (0, _touches),
    "ends_job_at_quota": (0, _ends_job_at_quota),
    "messages_come_twice": (2, _comes_twice),
    "write_comes_late": (0, _comes_late),
    "kills_host": (1, _kills),
    "host_stands_still": (0, _stands),
    "storage_is_away": (0, _storage),
}
#: After a host's death in a tick the timer stands still for a minute, until its lease has ended. Who has met a quota
#: waits as long, and all newer jobs of its class with it. So these come when the others have met work under way.
_AT = {
    "kills_host": (FAULTY_SECONDS - 16, FAULTY_SECONDS - 4),
    "ends_job_at_quota": (FAULTY_SECONDS - 12, FAULTY_SECONDS - 5),
}
#: What HASTE's API is asked for as soon as the trouble has hit something.
_THEN: dict[str, tuple[str, ...]] = {
    "preempts_unnoticed": ("start", "cancel"),
    "write_comes_late": ("start", "start", "start", "cancel"),
}
TROUBLES = tuple(_TROUBLES)
