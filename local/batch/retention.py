"""How long a task's directory stays on a node that has run it. It never outlives the node's disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.batch.runner import Place
from local.batch.state import Job, Node, Task, seconds_of

if TYPE_CHECKING:
    from local.batch.world import World

_DEFAULT_SECONDS = 7 * 86400.0


def note_start(node: Node, place: Place, run: int) -> None:
    """A run makes the task's directory on a node anew."""
    node.directories[_key(place)] = (run, place)


def note_end(world: World, task: Task, place: Place, run: int) -> None:
    """The run is over: its directory goes after the task's retentionTime."""
    world.after(seconds_of(task.constraint("retentionTime"), _DEFAULT_SECONDS), _clean_up, place, run)


def wipe(world: World, place: Place) -> None:
    """The directory goes now."""
    node = node_of(world, place)
    if node:
        node.directories.pop(_key(place), None)
    world.runner.wipe_task(place)


def wipe_everywhere(world: World, job: Job, task: Task) -> None:
    """On every node. Where the task's process still lives, `wipe` is for the time when it has gone."""
    key = (job.id.lower(), task.id.lower())
    for pool in world.pools.values():
        for node in pool.nodes.values():
            number, place = node.directories.get(key, (0, None))
            if place and number not in node.runs:
                wipe(world, place)


def node_of(world: World, place: Place | None) -> Node | None:
    """The node of a place, while it is in its pool."""
    pool = world.pools.get(place.pool.lower()) if place else None
    return pool.nodes.get(place.node) if pool and place else None


def _clean_up(world: World, place: Place, run: int) -> None:
    node = node_of(world, place)
    if node is None or node.directories.get(_key(place), (0, place))[0] != run:
        return  # gone, or made anew by a later run, whose own time counts
    wipe(world, place)
    job = world.jobs.get(place.job.lower())
    task = job.tasks.get(place.task.lower()) if job else None
    if task and task.place == place:
        task.files_cleaned = True


def _key(place: Place) -> tuple[str, str]:
    return place.job.lower(), place.task.lower()
