"""Chooses a pool for an attempt: gathers what the decision rests on, decides, and makes sure of the Batch job there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import structlog

from shared.errors import WorkerError
from shared.pools import recovery
from shared.pools.readings import Readings
from shared.pools.routing import Avoid, Circumstances, Decision, PoolReading, route
from shared.protocol.record import Placement, Record
from shared.worker import Worker

log = structlog.get_logger(__name__)


def choose(
    worker: Worker,
    record: Record,
    readings: Readings,
    closed: Mapping[str, WorkerError],
    but: str | None = None,
) -> Decision:
    """The pool for the next attempt of this request. With one candidate nothing is read.

    `but` is the pool that a live attempt would leave: it comes last, and jobs that are on their way already are taken
    to go where this one would. A job that moved for nothing would lose its place in the queue.
    Raises NeedsOperator if a reading that the choice rests on is denied: it is not made blind.
    `closed` are pools where the job could not be placed a moment ago, and why: they come last.
    """
    kind, now = record.entity.kind, worker.batch_now()
    policy = worker.recovery[kind]
    candidates = list(worker.placer.candidates(kind))
    if but is not None and but not in candidates:
        candidates.append(but)  # the settings have changed since: it may go on there
    avoid = {pool: Avoid(str(why)) for pool, why in closed.items()} | recovery.pools_to_avoid(record, policy, now)
    if len(candidates) == 1:
        return route(candidates, PoolReading(), Circumstances(now, avoid))
    taken = readings.taken()
    if but is not None:
        avoid.setdefault(but, Avoid("is where it waits"))
        taken = taken + Counter(dict.fromkeys(candidates, readings.on_their_way()))
    around = Circumstances(
        at=now,
        avoid=readings.notes().avoid(worker.now()) | avoid,
        taken=taken,
        fresh_for=policy.pool_cool_down,
    )
    decision = route(candidates, readings.counted(), around)
    preferred = next((pool for pool in candidates if pool not in around.avoid), None)
    if not decision.has_free_slot or decision.pool_id != preferred:  # else the counts are all it takes
        decision = route(candidates, readings.pools(), around)
    for warning in decision.warnings:
        log.warning("unknown resize error, taken for lack of capacity", what=warning)
    return decision


def make_sure_of_job(
    worker: Worker, record: Record, decision: Decision, readings: Readings, name: str = ""
) -> Placement:
    """The placement by a decision; its Batch job takes tasks. Raises JobDisabled, QuotaReached, Refused and others."""
    used = (*record.earlier, record.placement) if record.placement else record.earlier
    gone = lambda: readings.notes().gone(worker.now())  # noqa: E731
    return worker.placer.place(record.entity.kind, decision, name, worker.batch_now(), used, gone)
