"""All that is live for this tenant: jobs, pools in a cool-down, rejected messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

from operate.batch_words import InBatch, enabling, read_jobs, told_disabled
from operate.explanation import next_look
from shared.errors import Unreadable
from shared.ledger.pool_notes import PoolNotes
from shared.ledger.port import LiveSummary
from shared.protocol.record import State
from shared.storage.blob_container import BlobContainer
from shared.worker import Worker

_READERS = 8


@dataclass(frozen=True)
class LiveJob:
    """One live job; `next_look` is None where the timer looks with every run."""

    kind: str
    project: str
    entity: str
    state: str
    pool: str | None
    attempt: int
    asked: datetime
    next_look: datetime | None
    is_unwanted: bool
    why: str


@dataclass(frozen=True)
class Count:
    """So many jobs in this state on this pool (None = no pool yet)."""

    state: str
    pool: str | None
    jobs: int


@dataclass(frozen=True)
class SickPool:
    """A pool that comes last for a while, or whose nodes are all dead."""

    pool: str
    until: datetime | None
    why: str


@dataclass(frozen=True)
class RejectedMessages:
    """Messages of one queue that could not be accepted, kept for 30 days."""

    queue: str
    messages: int
    newest: datetime


@dataclass(frozen=True)
class Overview:
    """`jobs` are the oldest ones; `live` counts all. `faults` says what could not be found out."""

    tenant: str
    at: datetime
    live: int
    counts: tuple[Count, ...]
    jobs: tuple[LiveJob, ...]
    pools: tuple[SickPool, ...]
    rejected: tuple[RejectedMessages, ...]
    faults: tuple[str, ...]


def look(worker: Worker, blobs: BlobContainer, most_jobs: int) -> Overview:
    """Lists for all, and one read for each job that is shown."""
    listed = worker.ledger.live()
    live = sorted(listed, key=lambda one: (one.asked, one.key))
    in_batch = read_jobs(worker, {one.job_id for one in live if one.state is State.PLACED and one.job_id})
    states = {one.key: _state(one, in_batch) for one in live}
    counted = Counter((states[one.key], one.pool_id) for one in live)
    with ThreadPoolExecutor(_READERS) as readers:
        read = list(readers.map(lambda one: _live_job(worker, one, states[one.key], in_batch), live[:most_jobs]))
        jobs = tuple(job for job in read if isinstance(job, LiveJob))
        unreadable = tuple(job for job in read if isinstance(job, str))
    return Overview(
        worker.tenant,
        worker.now(),
        len(live),
        tuple(Count(*key, jobs=number) for key, number in sorted(counted.items(), key=str)),
        jobs,
        tuple(_sick_pools(worker.notes.read(), worker.now())),
        tuple(_rejected(blobs)),
        (*in_batch.faults, *(f"stands still: {one.why}" for one in listed.standing_still), *unreadable),
    )


def to_json(found: Overview) -> str:
    """One JSON object."""
    return TypeAdapter(Overview).dump_json(found, indent=2).decode()


def _state(one: LiveSummary, in_batch: InBatch) -> str:
    """As users see it while a task is placed: queued or running, by Batch's own state."""
    return in_batch.states.get(one.task_id or "", "placed") if one.state is State.PLACED else one.state.value


def _live_job(worker: Worker, one: LiveSummary, state: str, in_batch: InBatch) -> LiveJob | str | None:
    """None: it has ended since the list. A text says why it cannot be told."""
    try:
        version = worker.ledger.read(one.key)
    except Unreadable as error:
        return str(error)
    if version is None:  # ended between list and read
        return None
    record = version.record
    entity = record.entity
    placed, why = record.placement, record.reason
    is_to_start = state in ("queued", "placed") and not record.is_unwanted
    if placed is not None and is_to_start and placed.job_id in in_batch.disabled_jobs:
        why = f"{told_disabled(placed.job_id)}: {enabling(placed.job_id)}"
    return LiveJob(
        entity.kind.value,
        entity.project_id,
        entity.entity_id,
        state,
        one.pool_id,
        record.attempt,
        record.request.asked,
        next_look(record, worker.now()),
        record.is_unwanted,
        why,
    )


def _sick_pools(notes: PoolNotes, now: datetime) -> Iterable[SickPool]:
    for pool, note in sorted(notes.pools.items()):
        if note.cool_down is not None and note.cool_down.until > now:
            yield SickPool(pool, note.cool_down.until, note.cool_down.why)
        elif note.is_dead:
            yield SickPool(pool, None, "all its nodes are lost or unusable")


def _rejected(blobs: BlobContainer) -> Iterable[RejectedMessages]:
    messages: Counter[str] = Counter()
    newest: dict[str, datetime] = {}
    for name, _metadata, version in blobs.list_with_metadata("rejected/"):
        queue = name.split("/")[1]
        messages[queue] += 1
        newest[queue] = max(version.written_at, newest.get(queue, version.written_at))
    return [RejectedMessages(queue, messages[queue], newest[queue]) for queue in sorted(messages)]
