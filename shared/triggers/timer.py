"""The timer: poison queues, then all live records that are due, then the house, now and then. Idempotent and bounded.

For the live records it makes one ledger list, and one task list per Batch job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from shared.batch.types import JobState
from shared.errors import Conflict, Transient, Unreadable
from shared.housekeeping import janitor
from shared.housekeeping.expiring import OldEntries
from shared.housekeeping.past_jobs import PastJobs
from shared.housekeeping.sweep import sweep
from shared.kinds import Kind
from shared.ledger.port import LiveSummary, Versioned
from shared.pools import care
from shared.pools.readings import Readings
from shared.protocol import transitions
from shared.protocol.record import LIVE_STATES, State
from shared.requests import driver
from shared.requests.attempt import send_resume
from shared.requests.queued_tasks import QueuedTasks
from shared.requests.turns import free_turns, in_order, in_turn, takes_a_turn
from shared.retry import at_most
from shared.storage.lease import BlobLease
from shared.storage.queues import QueueReader
from shared.storage.rejected import Rejected
from shared.triggers import poison
from shared.worker import Worker

log = structlog.get_logger(__name__)

#: A tick begins no new record after this; the next one begins with the rest.
MOST_SECONDS = 90
_WOKEN_AGAIN_AFTER = timedelta(minutes=5)


_KEEP_HOUSE_EVERY = timedelta(minutes=10)
#: After this no call is begun: where Batch does not answer, each call could take its whole time.
_MOST_HOUSEKEEPING_SECONDS = 120


@dataclass
class Timer:
    """What a run of the timer does. `queue_names`: queue -> HASTE kind, None for our own queue."""

    rejected: Rejected
    poison_queues: QueueReader
    queue_names: Mapping[str, Kind | None]
    lease: BlobLease
    old_entries: OldEntries
    past_jobs: PastJobs
    shares_pools: bool
    _kept_house_at: datetime | None = None

    def run(self, worker: Worker) -> None:
        """One run, alone among all processes of this tenant while it holds the lease."""
        with self.lease.held() as is_ours:
            if not is_ours:
                return
            readings = Readings(worker, by_list=True)
            faults: list[Exception] = []
            for part in (self._empty_poison_queues, self._watch, self._keep_house_sometimes):
                try:
                    part(worker, readings)
                except Exception as error:  # none of them must keep the others from their turn; raised below
                    log.exception("part of the run failed", part=part.__name__.strip("_"))
                    faults.append(error)
            if faults:
                raise ExceptionGroup("the timer's run", faults)

    def _empty_poison_queues(self, worker: Worker, _readings: Readings) -> None:
        poison.empty(worker, self.rejected, self.poison_queues, self.queue_names)

    def _watch(self, worker: Worker, readings: Readings) -> None:
        tick(worker, readings, time.monotonic, self.lease.renew)

    def _keep_house_sometimes(self, worker: Worker, readings: Readings) -> None:
        now = worker.now()
        if self._kept_house_at is not None and now - self._kept_house_at < _KEEP_HOUSE_EVERY:
            return
        self._kept_house_at = now
        self.old_entries.expire(now)
        with at_most(_MOST_HOUSEKEEPING_SECONDS):
            tenants_jobs = worker.batch.jobs_of(worker.tenant)
            self.past_jobs.claim(worker.batch)
            if self.shares_pools:
                usable = [job.job_id for job in tenants_jobs if job.state is not JobState.OVER]
                sweep(worker, readings, usable, may_end=True)
            else:  # HASTE's own app and others may use these jobs
                placer = worker.placer
                jobs = {placer.job_id(kind, pool, now) for kind in Kind for pool in placer.candidates(kind)}
                sweep(worker, readings, sorted(jobs), may_end=False)
            janitor.tidy(worker, readings, tenants_jobs)


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
        waiting = transitions.looked_at_again(record, worker.now() + _WOKEN_AGAIN_AFTER)
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
