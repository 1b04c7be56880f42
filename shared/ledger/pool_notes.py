"""What a tenant's processes remember about pools: cool-downs, nodes that fail every task, pools of dead nodes.

And Batch jobs that somebody has deleted, or that were over, while a task of ours was to be in them.

Pure values and transitions; one blob of the worker's container holds them, written under its ETag.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from shared.batch.types import PoolCounts

#: A task that fails within this time has hardly begun.
QUICK = timedelta(seconds=10)
_REMEMBERED = timedelta(hours=1)
_BLACK_HOLE_TASKS = 3
_BLACK_HOLE_REQUESTS = 2
_DEAD_CYCLES = 3
#: A handler that has stalled while it added a task is dead long before; then the job's id may be used again.
_JOB_GONE_FOR = timedelta(hours=24)


@dataclass(frozen=True)
class Avoid:
    """A candidate not to be taken, and why. `for_good` = not even when there is no other."""

    why: str
    for_good: bool = False


@dataclass(frozen=True)
class CoolDown:
    """A pool that comes last until a time, and why."""

    until: datetime
    why: str


@dataclass(frozen=True)
class QuickFailure:
    """A task that failed within seconds of its start."""

    node_id: str
    task_id: str
    request_id: str
    at: datetime


@dataclass(frozen=True)
class PoolNote:
    """What is remembered of one pool. `dead_cycles` counts how often all its nodes have become unusable in a row."""

    cool_down: CoolDown | None = None
    quick_failures: tuple[QuickFailure, ...] = ()
    dead_cycles: int = 0
    is_dead: bool = False


@dataclass(frozen=True)
class PoolNotes:
    """All pools of which something is remembered. `jobs_gone`: Batch job id -> when it was noticed last."""

    pools: dict[str, PoolNote] = field(default_factory=dict)
    jobs_gone: dict[str, datetime] = field(default_factory=dict)

    def gone(self, now: datetime) -> frozenset[str]:
        """Ids of Batch jobs that must not be made again yet: a create that is still under way would find them."""
        return frozenset(job_id for job_id, at in self.jobs_gone.items() if now - at < _JOB_GONE_FOR)

    def with_job_gone(self, job_id: str, at: datetime) -> PoolNotes:
        """This Batch job takes no task any more, or is not there."""
        kept = {one: self.jobs_gone[one] for one in self.gone(at)}
        return replace(self, jobs_gone={**kept, job_id: at})

    def avoid(self, now: datetime) -> dict[str, Avoid]:
        """Pools in their cool-down."""
        return {
            pool: Avoid(f"{note.cool_down.why} (until {note.cool_down.until:%H:%M:%S})")
            for pool, note in self.pools.items()
            if note.cool_down is not None and note.cool_down.until > now
        }

    def with_cool_down(self, pool_id: str, until: datetime, why: str) -> PoolNotes:
        """The pool comes last until then."""
        return self._with(pool_id, replace(self._note(pool_id), cool_down=CoolDown(until, why)))

    def with_quick_failure(self, pool_id: str, failure: QuickFailure) -> PoolNotes:
        """One more task that failed at once, counted once per task."""
        note = self._note(pool_id)
        if failure in note.quick_failures:
            return self
        kept = [
            one for one in note.quick_failures if failure.at - one.at < _REMEMBERED and one.task_id != failure.task_id
        ]
        return self._with(pool_id, replace(note, quick_failures=(*kept, failure)))

    def is_black_hole(self, pool_id: str, node_id: str) -> bool:
        """The node fails every task at once: three tasks of two requests. One user's broken program is not that."""
        there = [one for one in self._note(pool_id).quick_failures if one.node_id == node_id]
        return len(there) >= _BLACK_HOLE_TASKS and len({one.request_id for one in there}) >= _BLACK_HOLE_REQUESTS

    def with_counts(self, counts: PoolCounts) -> PoolNotes:
        """Whether the pool's nodes are all dead now, and how often that has happened in a row."""
        note = self._note(counts.pool_id)
        is_dead = counts.lost > 0 and not (counts.idle or counts.running or counts.starting)
        cycles = 0 if counts.idle or counts.running else note.dead_cycles + int(is_dead and not note.is_dead)
        if (is_dead, cycles) == (note.is_dead, note.dead_cycles):
            return self
        return self._with(counts.pool_id, replace(note, is_dead=is_dead, dead_cycles=cycles))

    def never_usable(self, pool_id: str) -> bool:
        """The pool's nodes have come and died too often in a row."""
        return self._note(pool_id).dead_cycles >= _DEAD_CYCLES

    def counting_anew(self, pool_id: str) -> PoolNotes:
        """The pool was demoted for its dead nodes: after that it gets as many chances as before."""
        return self._with(pool_id, replace(self._note(pool_id), dead_cycles=0))

    def _note(self, pool_id: str) -> PoolNote:
        return self.pools.get(pool_id, PoolNote())

    def _with(self, pool_id: str, note: PoolNote) -> PoolNotes:
        return replace(self, pools={**self.pools, pool_id: note})
