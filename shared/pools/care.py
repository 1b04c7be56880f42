"""Notices sick pools: nodes that fail every task at once, nodes that never become usable, autoscale that has stopped.

A sick pool comes last for a cool-down and is reported. Only managed pools are acted on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum, auto

import structlog

from shared.batch.types import PoolCounts, PoolView, TaskView
from shared.errors import NeedsOperator, Unreadable, WorkerError
from shared.ledger.pool_notes import QUICK, PoolNotes, QuickFailure
from shared.pools import waking
from shared.pools.readings import Readings
from shared.protocol.record import Record, State
from shared.telemetry.operator import tell_operator
from shared.worker import Worker

log = structlog.get_logger(__name__)

_EXIT_CODE = "FailureExitCode"
#: While others of our tasks are on the pool, a failure within seconds is not judged sooner: they may fail as well.
_JUDGED_AFTER = timedelta(minutes=1)
#: An autoscale pool is evaluated every few minutes; one that was not for so long has stopped.
_AUTO_SCALE_STOPPED = timedelta(minutes=25)


class Blame(StrEnum):
    """Whose fault a failure is."""

    PROGRAM = auto()
    NODE = auto()
    OPEN = auto()
    """told by the next runs of the timer"""


def blame(worker: Worker, record: Record, task: TaskView, readings: Readings) -> Blame:
    """Who is to blame for a task that failed. If it is a node that fails every task at once, its pool is demoted.

    A single program that fails within seconds is its user's affair. All failures that this tick can see count, and
    while more may come the question is open for a minute, so that the first user is not told of a failure before the
    last one tells whose fault it is.
    """
    failure = _quick_failure(task, record.request.request_id)
    if failure is None:
        return Blame.PROGRAM
    pool_id, node_id = record.placed.pool_id, failure.node_id
    failures = [failure, *_others_on(worker, pool_id, task, readings)]

    def with_failures(notes: PoolNotes) -> PoolNotes:
        for failure in failures:
            notes = notes.with_quick_failure(pool_id, failure)
        return notes

    notes = worker.notes.update(with_failures)
    if not notes.is_black_hole(pool_id, node_id):
        is_recent = worker.batch_now() - failure.at < _JUDGED_AFTER
        return Blame.OPEN if is_recent and _has_others(record, pool_id, readings) else Blame.PROGRAM
    _cool_down(worker, pool_id, f"node {node_id[-12:]} fails every task at once")
    if worker.managed_pools is not None:
        _disable(worker, pool_id, node_id)
    return Blame.NODE


def _has_others(record: Record, pool_id: str, readings: Readings) -> bool:
    return any(
        one.state is State.PLACED and one.pool_id == pool_id and one.key != record.entity.key for one in readings.live()
    )


def _quick_failure(task: TaskView, request_id: str) -> QuickFailure | None:
    """The task's failure if its program failed at once, None if it did not."""
    if task.failure_code != _EXIT_CODE or task.node_id is None or task.started_at is None or task.ended_at is None:
        return None
    if task.ended_at - task.started_at >= QUICK:
        return None
    return QuickFailure(task.node_id, task.task_id, request_id, task.ended_at)


def _others_on(worker: Worker, pool_id: str, task: TaskView, readings: Readings) -> Iterator[QuickFailure]:
    """Other tasks of ours that failed at once on the same node and have not been looked at yet."""
    for summary, other in readings.tasks_placed_on(pool_id):
        if other.node_id != task.node_id or other.task_id == task.task_id or _quick_failure(other, "") is None:
            continue
        try:
            version = worker.ledger.read(summary.key)
        except Unreadable:  # told when its own turn comes
            continue
        if version is None:
            continue
        failure = _quick_failure(other, version.record.request.request_id)
        if failure is not None:
            yield failure


def _disable(worker: Worker, pool_id: str, node_id: str) -> None:
    try:
        worker.batch.disable_node(pool_id, node_id)
    except WorkerError as error:  # its tasks go elsewhere all the same
        log.error("node not disabled", pool=pool_id, node=node_id, error=str(error))
    else:
        log.error("scheduling disabled on a node that fails every task", pool=pool_id, node=node_id)


def look_at_pools(worker: Worker, readings: Readings) -> None:
    """Demote pools whose nodes never become usable, or whose autoscale has stopped while our tasks wait there."""
    for pool_id in sorted({pool for kind in worker.recovery for pool in worker.placer.candidates(kind)}):
        try:
            _look_at_pool(worker, pool_id, readings)
        except NeedsOperator as error:
            tell_operator(error)
        except WorkerError as error:  # one pool must not keep the others from being looked at
            log.warning("pool not looked after", pool=pool_id, error=str(error))


def _look_at_pool(worker: Worker, pool_id: str, readings: Readings) -> None:
    reading = readings.pools()
    counts, view = (reading.counts or {}).get(pool_id), (reading.pools or {}).get(pool_id)
    if counts is not None:
        _note_counts(worker, counts)
    if view is None or not readings.taken()[pool_id]:
        return
    waking.wake(worker, view)
    if _has_stopped(worker, view):
        _revive(worker, view)


def _note_counts(worker: Worker, counts: PoolCounts) -> None:
    notes = worker.notes.update(lambda notes: notes.with_counts(counts))
    if notes.never_usable(counts.pool_id):
        _cool_down(worker, counts.pool_id, "its nodes never become usable")
        worker.notes.update(lambda notes: notes.counting_anew(counts.pool_id))


def _has_stopped(worker: Worker, view: PoolView) -> bool:
    return (
        view.auto_scales
        and view.auto_scaled_at is not None
        and (worker.batch_now() - view.auto_scaled_at >= _AUTO_SCALE_STOPPED)
    )


def _revive(worker: Worker, view: PoolView) -> None:
    why = f"its autoscale has stopped ({view.auto_scale_error or 'no evaluation'} since {view.auto_scaled_at})"
    if worker.managed_pools is not None and view.allocation_state == "steady":
        worker.batch.evaluate_auto_scale_now(view)
        log.error("autoscale enabled again", pool=view.pool_id, why=why)
    elif view.pool_id not in worker.notes.read().avoid(worker.now()):
        _cool_down(worker, view.pool_id, why)


def _cool_down(worker: Worker, pool_id: str, why: str) -> None:
    until = worker.now() + worker.pool_cool_down
    worker.notes.update(lambda notes: notes.with_cool_down(pool_id, until, why))
    log.error("pool demoted", pool=pool_id, why=why, until=until.isoformat())
