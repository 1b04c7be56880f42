"""The timer's tick: one ledger list, one task list per Batch job, and a look at what is due. Idempotent and bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from shared.errors import Conflict, Transient, Unreadable
from shared.ledger.port import LiveSummary, Versioned
from shared.pools import care
from shared.pools.readings import Readings
from shared.protocol.record import LIVE_STATES, State
from shared.requests import driver
from shared.requests.place import send_resume
from shared.requests.queued_tasks import QueuedTasks
from shared.requests.turns import free_turns, in_turn, takes_a_turn
from shared.worker import Worker

log = structlog.get_logger(__name__)

#: A tick begins no new record after this; the next one begins with the rest.
MOST_SECONDS = 90
_WOKEN_AGAIN_AFTER = timedelta(minutes=5)
#: How many older waiting jobs of a class are tried before a newer one that is due.
_MOST_OLDER = 20


def tick(
    worker: Worker,
    readings: Readings,
    monotonic_seconds: Callable[[], float],
    is_alone: Callable[[], bool] = lambda: True,
) -> int:
    """Look at every live record that is due, by fresh readings. Returns how many are live.

    A record that cannot be dealt with now never keeps the others waiting, and one that cannot be read stands still;
    what went wrong unexpectedly is raised at the end, so that the invocation shows as failed. `is_alone`: no other run
    counts this tenant's live tasks now.
    """
    until = monotonic_seconds() + MOST_SECONDS
    now = worker.now()
    queued = QueuedTasks(worker, readings)
    live = readings.live()
    for one in live.standing_still:
        _tell_standing_still(worker, one.key, one.why)
    faults: list[Exception] = []
    stopped_before: LiveSummary | None = None
    order = worker.memory.turn.ordered(in_order(live, now))
    cap = worker.limits.most_live_tasks
    turns = _Turns(free_turns(live, cap), is_alone) if cap else None
    for place, summary in zip(order, in_turn(order) if cap else order, strict=True):
        if monotonic_seconds() > until:
            log.warning("tick cut short", live=len(live.records))
            stopped_before = place
            break
        if turns is not None and not turns.free and takes_a_turn(summary):
            continue
        try:
            if not _is_calm(worker, summary, readings, queued, now):
                _look_at(worker, summary, readings, turns)
        except Unreadable as error:
            _tell_standing_still(worker, summary.key, str(error))
        except (Conflict, Transient) as error:
            log.warning("left for the next tick", record=summary.key, error=str(error))
        except Exception as error:  # one broken record must not stop the others; raised below
            log.exception("record not looked at", record=summary.key)
            faults.append(error)
    worker.memory.turn.stopped_before(stopped_before)
    if live.records and worker.memory.pools.is_due("pools", now):
        care.look_at_pools(worker, readings)
    if faults:
        raise ExceptionGroup("records that could not be looked at", faults)
    return len(live.records)


def _tell_standing_still(worker: Worker, key: str, why: str) -> None:
    """It may stand still for days: operators are told, but not with every run."""
    if worker.memory.standing_still.is_due(key, worker.now()):
        log.error("record not looked at", record=key, error=why)


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


def _is_calm(worker: Worker, summary: LiveSummary, readings: Readings, queued: QueuedTasks, now: datetime) -> bool:
    """A live task about which nothing is new: its record need not be read before its progress is due again."""
    if summary.state is not State.PLACED or summary.is_unwanted:
        return False
    if summary.job_id is None or summary.task_id is None or summary.pool_id is None:
        return False
    task = readings.calm_task(summary.job_id, summary.task_id, summary.pool_id)
    if task is None:
        return False
    if task.state == "active":
        return not queued.is_worth_a_look(summary, task)
    run = f"{summary.task_id} {task.state} {task.started_at}"  # one that Batch has started anew is looked at at once
    return not worker.memory.progress.is_due(run, now)


@dataclass
class _Turns:
    """How many tasks more a tenant whose live tasks are limited may add in this run."""

    free: int
    is_alone: Callable[[], bool]


def _look_at(worker: Worker, summary: LiveSummary, readings: Readings, turns: _Turns | None) -> None:
    version = worker.ledger.read_listed(summary)
    if version is None:
        return
    record = version.record
    if record.state is not State.WAITING or record.is_unwanted:
        driver.advance(worker, version, readings)  # an unwanted one ends here, or is ended from where it is
    elif turns is not None and takes_a_turn(summary):
        if turns.is_alone():
            _take_a_turn(worker, version, readings, turns)
    else:
        # first the next look, then the message: a handler that takes it up must not lose its write to us
        waiting = replace(record, not_before=worker.now() + _WOKEN_AGAIN_AFTER)
        worker.ledger.replace(version, waiting)
        send_resume(worker, waiting)


def _take_a_turn(worker: Worker, version: Versioned, readings: Readings, turns: _Turns) -> None:
    """Try to place a job. If no pool takes it, the next one has its turn."""
    turns.free -= 1
    try:
        driver.advance(worker, version, readings)
    finally:
        latest = worker.ledger.read(version.record.entity.key)
        turns.free += latest is None or latest.record.state not in LIVE_STATES
