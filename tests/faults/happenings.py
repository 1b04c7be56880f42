"""What goes wrong around a training, as data: how it begins, how long it lasts, how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.batch import control
from tests.faults.states import Scene

_QUOTA = {"code": "AccountLowPriorityCoreQuotaReached", "message": "The quota is used up"}
_NO_MACHINES = {"code": "AllocationTimedout", "message": "There were no machines"}


class NothingToHit(Exception):
    """The fault cannot happen in this state; the text says why."""


def _nothing(_scene: Scene) -> None:
    pass


@dataclass(frozen=True)
class Happening:
    """A fault. It lasts so many ticks. `kills`: the host of the first "timer" or "handler" dies at work."""

    begin: Callable[[Scene], None] = _nothing
    end: Callable[[Scene], None] = _nothing
    ticks: int = 3
    tick_seconds: float = 30
    kills: str = ""


# --- Batch's answers ----------------------------------------------------------------------------------------------


def answers(**rule: Any) -> Happening:
    """All requests of the worker that the rule says are answered so for 90 s."""

    def begin(scene: Scene) -> None:
        scene.tenant.batch.faults.add(rule)

    def end(scene: Scene) -> None:
        scene.tenant.batch.faults.clear()

    return Happening(begin, end)


# --- people with access to the account ----------------------------------------------------------------------------


def by_hand(method: str, what: str, suffix: str = "") -> Happening:
    """Somebody deletes or terminates the training's latest task, or that task's job or pool."""

    def begin(scene: Scene) -> None:
        tasks = scene.tasks()
        if not tasks:
            raise NothingToHit("the training has no task in Batch")
        job, task = tasks[-1]
        pool = scene.tenant.batch.jobs[job.lower()].pool_id
        path = {"task": f"/jobs/{job}/tasks/{task}", "job": f"/jobs/{job}", "pool": f"/pools/{pool}"}[what]
        answer = scene.tenant.by_hand(method, path + suffix)
        if answer.status == 409:
            raise NothingToHit("its task is completed")
        assert answer.status < 300, answer.json()

    return Happening(begin)


# --- hosts ---------------------------------------------------------------------------------------------------------


def message_comes(scene: Scene) -> None:
    """A message of the training is about to be taken."""
    scene.tenant.collect_own()
    if not any(not letter.is_cancel for letter in scene.tenant.letters):
        raise NothingToHit("no message is on its way")


# --- machines -----------------------------------------------------------------------------------------------------


def preempt(scene: Scene, **options: Any) -> None:
    """The node that the training runs on is taken away."""
    if not scene.running():
        raise NothingToHit("the training runs on no node")
    control.preempt_task(scene.tenant.batch, *scene.running()[-1], **options)


def preempt_twice(scene: Scene) -> None:
    """A node comes back, runs the task again, and is taken away again."""
    preempt(scene, return_after_seconds=5)
    scene.tick(10)
    if scene.running():
        preempt(scene, return_after_seconds=5)


def no_capacity(scene: Scene) -> None:
    """Every machine is taken away, and Azure has no other."""
    for pool in scene.tenant.world.candidates:
        scene.tenant.take_capacity(pool)


def capacity(scene: Scene) -> None:
    """Azure has machines again."""
    for pool in scene.tenant.world.candidates:
        scene.tenant.give_capacity(pool)


def at_quota(scene: Scene) -> None:
    """Every machine is taken away, and each pool has just been told that the account's quota is used up."""
    for pool in scene.tenant.world.candidates:
        scene.tenant.take_machines(pool)
        control.set_resize_errors(scene.tenant.batch, pool, [_QUOTA])
        target = {"targetLowPriorityNodes": 2}
        assert scene.tenant.by_hand("POST", f"/pools/{pool}/resize", target).status == 202
    scene.tenant.pass_seconds(2)


def old_resize_error(scene: Scene) -> None:
    """Each pool still lists what went wrong when it was resized days ago."""
    for pool in scene.tenant.world.candidates:
        control.set_resize_errors(scene.tenant.batch, pool, [_NO_MACHINES], later=False)


HAPPENINGS: dict[str, Happening] = {
    "throttled": answers(status=429, code="TooManyRequests"),
    "throttled-with-retry-after": answers(status=429, code="TooManyRequests", retry_after=20),
    "error-after-commit": answers(code="InternalError", when="after", method="POST"),
    "unavailable-90s": answers(status=503),
    "dropped": answers(drop_connection=True),
    "dropped-after-commit": answers(drop_connection=True, when="after"),
    "access-denied": answers(status=403, code="AuthorizationFailure"),
    "access-denied-to-pools": answers(status=403, code="AuthorizationFailure", route="/(pools.*|nodecounts)"),
    "job-quota": answers(operation="create_job", code="ActiveJobAndScheduleQuotaReached"),
    "task-deleted": by_hand("DELETE", "task"),
    "task-terminated": by_hand("POST", "task", "/terminate"),
    "job-deleted": by_hand("DELETE", "job"),
    "job-terminated": by_hand("POST", "job", "/terminate"),
    "pool-deleted": by_hand("DELETE", "pool"),
    "preempted": Happening(preempt),
    "preempted-twice": Happening(preempt_twice),
    "no-capacity": Happening(no_capacity, capacity, ticks=10, tick_seconds=120),
    "pools-at-quota": Happening(at_quota, capacity),
    "old-resize-error": Happening(old_resize_error),
    "capacity-returning": Happening(no_capacity, capacity, ticks=1),
    "timer-killed": Happening(kills="timer"),
    "handler-killed": Happening(message_comes, kills="handler"),
}
