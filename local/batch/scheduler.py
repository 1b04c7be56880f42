"""Which waiting task starts on which node: higher priority first, then in the order of creation."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from local.batch import node_life, task_life
from local.batch.state import Job, Node, Pool, Task

if TYPE_CHECKING:
    from local.batch.world import World


def schedule(world: World) -> None:
    """Start every waiting task that fits somewhere."""
    jobs_of: dict[str, list[Job]] = {}
    for job in world.jobs.values():
        if job.state == "active" and job.queue:
            jobs_of.setdefault(job.pool_id.lower(), []).append(job)
    dying = {(run.job, run.task) for run in world.runs.values() if not run.lost}
    for pool in world.pools.values():
        for node in pool.nodes.values():
            node_life.show_load(world, node)
        if pool.state != "active":
            continue
        for job, task, node in plan(pool, jobs_of.get(pool.id.lower(), ()), world.now, dying):
            task_life.start(world, job, task, node)
            node_life.show_load(world, node)


def plan(
    pool: Pool, jobs: Iterable[Job], now: datetime, dying: Container[tuple[str, str]] = ()
) -> list[tuple[Job, Task, Node]]:
    """Choose starts without making them. A task that needs more slots than are free is passed over, not waited for.

    dying: (job, task) whose process of an earlier life still runs, because the task was deleted and made again.
    """
    free = {node.id: pool.slots_per_node - node.slots_used for node in pool.nodes.values() if takes_tasks(node)}
    total = sum(free.values())
    started: dict[str, int] = {}
    chosen: list[tuple[Job, Task, Node]] = []
    for job, task in _in_order(jobs) if total > 0 else ():
        if total <= 0:
            break
        if task.eligible_since is None or task.eligible_since > now:
            continue
        if (job.id.lower(), task.id.lower()) in dying:
            continue
        if 0 <= job.parallel_limit <= job.running + started.get(job.id, 0):
            continue
        fitting = [id for id, slots in free.items() if slots >= task.slots]
        if not fitting:
            continue
        node_id = min(fitting, key=free.__getitem__) if pool.packs else max(fitting, key=free.__getitem__)
        free[node_id] -= task.slots
        total -= task.slots
        started[job.id] = started.get(job.id, 0) + 1
        chosen.append((job, task, pool.nodes[node_id]))
    return chosen


def takes_tasks(node: Node) -> bool:
    """Whether a node may be given a task at all."""
    return node.state in ("idle", "running") and node.scheduling and not node.leaving and not node.action


def _in_order(jobs: Iterable[Job]) -> Iterator[tuple[Job, Task]]:
    def keyed(job: Job) -> Iterator[tuple[int, int, Job, str]]:
        return ((-job.priority, number, job, task) for number, task in job.queue)

    for _, _, job, task in heapq.merge(*(keyed(job) for job in jobs), key=lambda entry: entry[:2]):
        yield job, job.tasks[task]
