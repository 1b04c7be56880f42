"""Which of the tasks that wait for a node one run of the timer looks into: thousands may wait, and few can be helped.

A task that has waited too long is looked into when there is something to do about it: a slot is free on another
candidate (as many tasks as there are such slots), its pool is gone, or its credentials run out. The others take turns,
a few in each run: is HASTE's record still there? If not, the user has deleted it, and the task must not start. Once in
a while such a turn is a whole look, so that what a handler left half done is mended and every reason is up to date.
"""

from __future__ import annotations

from datetime import datetime

import structlog

from shared.batch.types import TaskView
from shared.errors import NeedsOperator, WorkerError
from shared.kinds import Kind
from shared.ledger.port import LiveSummary
from shared.pools.readings import Readings
from shared.protocol.record import State
from shared.worker import Worker

log = structlog.get_logger(__name__)

MOST_IN_TURN = 5


class QueuedTasks:
    """The queued tasks of one run of the timer, asked about in the order of their requests."""

    def __init__(self, worker: Worker, readings: Readings) -> None:
        self._worker = worker
        self._readings = readings
        self._in_turn: frozenset[str] | None = None
        self._for_free_slots = 0

    def is_worth_a_look(self, summary: LiveSummary, task: TaskView) -> bool:
        """Whether to read the record of this task, which is queued and was never interrupted."""
        now = self._worker.batch_now()
        kind = Kind(summary.key.partition("/")[0])
        policy = self._worker.recovery[kind]
        since = max(filter(None, (task.created_at, task.state_changed_at)), default=now)
        if policy.max_wait is not None and task.created_at is not None and now - task.created_at >= policy.max_wait:
            return True
        if now - since >= policy.queued_too_long and self._can_be_helped(kind, summary, now):
            return True
        if not self._has_its_turn(summary, now):
            return False
        return self._worker.memory.queued.is_due(str(summary.task_id), now) or self._is_deleted(summary)

    def _has_its_turn(self, summary: LiveSummary, now: datetime) -> bool:
        if self._in_turn is None:
            queued = (one.key for one in self._readings.live() if _seems_queued(one))
            self._in_turn = self._worker.memory.records.next(queued, MOST_IN_TURN, now)
        return summary.key in self._in_turn

    def _is_deleted(self, summary: LiveSummary) -> bool:
        """HASTE's record is gone: whoever looks closer will see it too, and end the task."""
        try:
            version = self._worker.ledger.read_listed(summary)
            return version is not None and self._worker.haste.is_gone(version.record.entity)
        except WorkerError as error:  # a failed read decides nothing
            log.warning("HASTE's record not looked for", record=summary.key, error=str(error))
            return False

    def _can_be_helped(self, kind: Kind, summary: LiveSummary, now: datetime) -> bool:
        candidates = self._worker.placer.candidates(kind)
        try:
            pools = self._readings.pools().pools
        except NeedsOperator:  # told when its turn comes, or when the pools are looked after
            return False
        if pools is not None and summary.pool_id not in pools:
            return self._worker.memory.progress.is_due(f"{summary.task_id} without its pool", now)
        idle = sum(
            counts.idle * (pools[pool].task_slots_per_node if pools and pool in pools else 1)
            for pool in candidates
            if pool != summary.pool_id and (counts := self._readings.counts(pool)) is not None
        )
        if self._for_free_slots >= idle:
            return False
        if not self._worker.memory.progress.is_due(f"{summary.task_id} for a free slot", now):
            return False  # one that cannot use the slot must not keep the next one from it
        self._for_free_slots += 1
        return True


def _seems_queued(summary: LiveSummary) -> bool:
    """As far as the ledger knows; the progress of one that runs is written anyway."""
    return summary.state is State.PLACED and not summary.is_unwanted and not summary.is_running
