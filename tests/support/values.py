"""Records and ends for tests of the pure decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result, Run
from shared.protocol.record import Done, EndReason, Placement, Record, Request, State, task_id

ENTITY = Entity(Kind.TRAINING, "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34", "4821")
NOON = datetime(2026, 8, 12, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """So many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def request(name: str = "m1", asked: float = 0, **fields: Any) -> Request:
    return Request(name, at(asked), **fields)


def placement(name: str = "m1", attempt: int = 1, pool: str = "h100") -> Placement:
    return Placement(pool, f"job-{pool}", task_id(Kind.TRAINING, name, attempt), at(1), "has a free slot")


def record(state: State, **fields: Any) -> Record:
    """A record of request m1, asked at noon."""
    base: dict[str, Any] = {"request": request(), "not_before": at(60)}
    if state in (State.PLACED, State.ENDING):
        base["placement"] = placement()
    if state is State.ENDING:
        base["end_reason"] = EndReason.MOVE
    if state is State.FINISHING:
        base["outcome"] = Outcome(Result.COMPLETED, "a sentence", at(100))
    base["earlier"] = tuple(placement(attempt=number) for number in range(1, fields.get("attempt", 1)))
    return Record(ENTITY, state=state, **(base | fields))


def in_state(live: Record, state: State, **fields: Any) -> Record:
    """A placed record as it would be in this state, with an outcome or a reason to end if that belongs to it."""
    told: dict[str, Any] = {"state": state, "outcome": None, "end_reason": None}
    if state is State.ENDING:
        told["end_reason"] = EndReason.MOVE
    if state is State.FINISHING:
        told["outcome"] = Outcome(Result.COMPLETED, "a sentence", at(100))
    return replace(live, **(told | fields))


def ended(
    name: str, asked: float, result: Result = Result.COMPLETED, *, attempts: int = 1, held: tuple[str, ...] = ()
) -> Done:
    """What is left of a request that ended with this result."""
    outcome = Outcome(result, "a sentence", at(asked + 100))
    run = Run(ENTITY, name, attempts, "job-h100", task_id(Kind.TRAINING, name, attempts), at(asked + 1))
    return Done(name, at(asked), outcome, None if result is Result.SUPERSEDED else run, held)


def cancelled(name: str, asked: float) -> Done:
    """What is left of a cancel message."""
    return Done(name, at(asked))
