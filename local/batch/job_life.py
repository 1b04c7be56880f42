"""What happens to a job: active, disabled, terminated, deleted. Each change takes a while, as on the service."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from local.batch import task_life
from local.batch.state import Job, Spec, seconds_of

if TYPE_CHECKING:
    from local.batch.world import World

_IN_BETWEEN = ("disabling", "enabling", "terminating", "deleting")


def create(world: World, spec: Spec) -> Job:
    """A new active job. The caller has checked id and quota."""
    job = Job(**world.stamp(spec["id"], "active"), spec=spec)
    world.jobs[job.id.lower()] = job
    world.log("job_state", job=job.id, state="active", pool=job.pool_id)
    watch_wall_clock(world, job)
    world.changed = True
    return job


def watch_wall_clock(world: World, job: Job) -> None:
    """Terminate the job when its maxWallClockTime, counted from its creation, is over."""
    limit = seconds_of(job.constraint("maxWallClockTime"), float("inf"))
    age = (world.now - job.created).total_seconds()
    world.after(limit - age, _expire, job.id, job.number, job.constraint("maxWallClockTime"))


def _expire(world: World, job_id: str, number: int, limit: str) -> None:
    job = world.jobs.get(job_id.lower())
    if job is None or job.number != number or job.constraint("maxWallClockTime") != limit:
        return
    if job.state not in ("terminating", "completed", "deleting"):
        terminate(world, job, "MaxWallClockTimeExpiry")


def disable(world: World, job: Job, option: str) -> None:
    """No task starts any more; running ones are put back (requeue), ended (terminate) or awaited (wait)."""
    _begin(world, job, "disabling", world.config.timings.job_action_seconds)
    if option != "wait":
        _stop_runs(world, job, "requeue" if option == "requeue" else "terminated")


def enable(world: World, job: Job) -> None:
    """Tasks start again."""
    _begin(world, job, "enabling", world.config.timings.job_action_seconds)


def terminate(world: World, job: Job, reason: str) -> None:
    """Running tasks are ended, waiting ones stay as they are for ever."""
    job.terminate_reason = reason
    _begin(world, job, "terminating", world.config.timings.job_action_seconds)
    _stop_runs(world, job, "terminated")


def delete(world: World, job: Job) -> None:
    """The job goes with all its tasks and their files."""
    _begin(world, job, "deleting", world.config.timings.job_delete_seconds)
    _stop_runs(world, job, "terminated")


def settle(world: World) -> None:
    """End the in-between states that are over; terminate jobs whose tasks are all complete."""
    for job in list(world.jobs.values()):
        if job.state == "active" and job.action_due != "none":
            _act_on_failure(world, job)
        if job.state in _IN_BETWEEN:
            _finish(world, job)
        elif job.state in ("active", "disabled") and job.ends_by_itself and not job.queue and not job.running:
            terminate(world, job, "AllTasksComplete")


def _act_on_failure(world: World, job: Job) -> None:
    action, job.action_due = job.action_due, "none"
    if action == "terminate":
        terminate(world, job, "TaskFailed")
    else:
        disable(world, job, "requeue")


def counts_for_quota(job: Job) -> bool:
    """Every job that is not completed counts, disabled ones too."""
    return job.state != "completed"


def _begin(world: World, job: Job, state: str, seconds: float) -> None:
    job.action_over = world.now + timedelta(seconds=seconds)
    _set_state(world, job, state)
    world.after(seconds, _wake)


def _wake(world: World) -> None:
    world.changed = True


def _finish(world: World, job: Job) -> None:
    if job.action_over and world.now < job.action_over:
        return
    if job.state != "enabling" and any(run.job == job.id.lower() and not run.stuck for run in world.runs.values()):
        return
    if job.state == "enabling":
        _set_state(world, job, "active")
    elif job.state == "disabling":
        _set_state(world, job, "disabled")
    elif job.state == "terminating":
        for task in [task for task in job.tasks.values() if task.run]:
            assert task.run
            task_life.release(world, task.run)
            task_life.complete(world, job, task, None, task_life.ended_failure(world, "terminated"))
        job.ends = world.now
        _set_state(world, job, "completed")
    else:
        for task in list(job.tasks.values()):
            task_life.remove(world, job, task)
        del world.jobs[job.id.lower()]
        world.log("job_state", job=job.id, state="gone")


def _stop_runs(world: World, job: Job, why: str) -> None:
    for run in [run for run in world.runs.values() if run.job == job.id.lower()]:
        task_life.stop(world, run, why)


def _set_state(world: World, job: Job, state: str) -> None:
    world.move(job, state)
    world.log("job_state", job=job.id, state=state)
