"""What happens to a task: waiting, running, put back, completed, forgotten."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from local.batch import exit_conditions, retention
from local.batch.retention import node_of
from local.batch.runner import Failure, Place, RunEnd, RunOrder
from local.batch.state import Job, Node, Run, Spec, Task, seconds_of

if TYPE_CHECKING:
    from local.batch.world import World

_RANK = {"": 0, "requeue": 1, "expired": 2, "terminated": 2, "deleted": 3}
_UNLIMITED_SECONDS = float("inf")


def create(world: World, job: Job, spec: Spec) -> Task:
    """A new task waits for a node. The caller has checked that the job takes it."""
    task = Task(**world.stamp(spec["id"], "active"), spec=spec)
    job.tasks[task.id.lower()] = task
    world.log("task_created", job=job.id, task=task.id)
    _wait(world, job, task)
    return task


def start(world: World, job: Job, task: Task, node: Node) -> None:
    """The task gets its slots on a node and runs."""
    _leave_queue(job, task)
    place = Place(node.pool, node.id, node.boot, job.id, task.id)
    run = Run(world.number(), job.id.lower(), task.id.lower(), place, task.slots, world.now)
    world.runs[run.number] = node.runs[run.number] = task.run = run
    task.start_time, task.place, task.files_cleaned = world.now, place, False
    retention.note_start(node, place, run.number)
    job.running += 1
    node.tasks_run += 1
    node.recent = [(job.id, task.id), *(entry for entry in node.recent if entry != (job.id, task.id))][:10]
    world.move(task, "running")
    world.log("task_started", job=job.id, task=task.id, pool=node.pool, node=node.id, run=run.number, slots=run.slots)
    watch_wall_clock(world, task, run)
    world.runner.start(RunOrder(run.number, place, node.dedicated, task.spec, _environment(world, job, task)))


def stop(world: World, run: Run, why: str) -> None:
    """Ask for the end of a run: requeue, expired, terminated or deleted. The strongest reason counts."""
    asked_before = bool(run.why_stopped)
    if _RANK[why] > _RANK[run.why_stopped]:
        run.why_stopped = why
    if asked_before or run.lost:
        return
    assumptions = world.config.assumptions
    uploads = {
        "terminated": assumptions.terminated_task_uploads_outputs,
        "expired": assumptions.expired_task_uploads_outputs,
    }
    world.runner.kill(run.number, uploads.get(why, False))


def run_ended(world: World, number: int, end: RunEnd) -> None:
    """The runner reports that a run's process is gone. A run that the world has given up is of no interest."""
    run = world.runs.get(number)
    if run is None or run.lost:
        return
    release(world, run)
    world.log("run_ended", **_names(run), run=number, exit_code=end.exit_code, killed=end.killed or None)
    job, task = find(world, run)
    if job is None or task is None:
        retention.wipe(world, run.place)
        return
    retention.note_end(world, task, run.place, number)
    if end.killed and run.why_stopped == "requeue":
        put_back(world, job, task, "user")
    elif end.killed and run.why_stopped:
        complete(world, job, task, end.exit_code, ended_failure(world, run.why_stopped))
    elif _may_retry(job, task, end):
        task.retry_count += 1
        task.last_retry = world.now
        put_back(world, job, task, "retry")
    else:
        complete(world, job, task, end.exit_code, end.failure or _exit_failure(end))


def run_lost(world: World, run: Run) -> None:
    """Batch has noticed that the run's node is lost: its task waits again, unless somebody had asked for its end."""
    release(world, run)
    job, task = find(world, run)
    if job is None or task is None:
        return
    assumptions = world.config.assumptions
    if run.why_stopped in ("terminated", "expired") and assumptions.task_lost_while_terminating == "completed":
        complete(world, job, task, None, ended_failure(world, run.why_stopped))
        return
    if not assumptions.preempted_task_keeps_node_info:
        task.place = task.start_time = None
    put_back(world, job, task, "node")


def put_back(world: World, job: Job, task: Task, cause: str) -> None:
    """A task that ran waits again: its program failed (retry), a user wanted it (user), or its node went (node)."""
    job.running -= 1
    task.run = None
    if cause == "user" or (cause == "node" and world.config.assumptions.preemption_counts_as_requeue):
        task.requeue_count += 1
        task.last_requeue = world.now
    world.move(task, "active")
    world.log("task_requeued", job=job.id, task=task.id, cause=cause)
    _wait(world, job, task)


def complete(world: World, job: Job, task: Task, exit_code: int | None, failure: Failure | None) -> None:
    """The task has come to its end, from waiting or from running."""
    if task.state == "running":
        job.running -= 1
        task.run = None
    else:
        _leave_queue(job, task)
    job.completed += 1
    job.succeeded += failure is None
    task.end_time, task.exit_code, task.failure = world.now, exit_code, failure
    task.result = "failure" if failure else "success"
    node = node_of(world, task.place)
    if node and not failure:
        node.tasks_succeeded += 1
    action = exit_conditions.job_action(job, task)
    job.action_due = action if action != "none" else job.action_due
    world.move(task, "completed")
    world.log(
        "task_completed",
        job=job.id,
        task=task.id,
        result=task.result,
        exit_code=exit_code,
        code=failure.code if failure else None,
    )
    world.after(world.config.timings.forget_completed_seconds, _forget, job.id, task.id, task.number, task.revision)


def reactivate(world: World, job: Job, task: Task) -> None:
    """A failed task may run again, its retries counted from 0."""
    job.completed -= 1
    task.retry_count = 0
    task.end_time = task.exit_code = task.failure = task.result = None
    world.move(task, "active")
    world.log("task_reactivated", job=job.id, task=task.id)
    _wait(world, job, task)


def remove(world: World, job: Job, task: Task, event: str = "task_deleted") -> None:
    """The task leaves the job, with its files; its process is killed."""
    if task.run:
        stop(world, task.run, "deleted")
        job.running -= 1
        if task.run.stuck:
            release(world, task.run)
    retention.wipe_everywhere(world, job, task)
    if task.state == "completed":
        job.completed -= 1
        job.succeeded -= task.result == "success"
    _leave_queue(job, task)
    del job.tasks[task.id.lower()]
    world.log(event, job=job.id, task=task.id)
    world.changed = True


def release(world: World, run: Run) -> None:
    """The run's slots are free."""
    world.runs.pop(run.number, None)
    node = node_of(world, run.place)
    if node and node.runs.pop(run.number, None):
        world.changed = True


def find(world: World, run: Run) -> tuple[Job | None, Task | None]:
    """The job and task of a run; None for a task that was deleted meanwhile (and perhaps made again)."""
    job = world.jobs.get(run.job)
    task = job.tasks.get(run.task) if job else None
    return job, task if task and task.run is run else None


def ended_failure(world: World, why: str) -> Failure:
    """The failureInfo of a task that did not end by itself."""
    if why == "expired":
        category = world.config.assumptions.expired_task_category
        return Failure("TaskEnded", category, "The task was ended: it ran longer than its maxWallClockTime")
    return Failure("TaskEnded", "usererror", "The task was ended at the request of a user")


def _wait(world: World, job: Job, task: Task) -> None:
    insort(job.queue, (task.number, task.id.lower()))
    task.eligible_since = None
    world.changed = True
    delay = world.config.timings.schedule_seconds
    if delay > 0:
        world.after(delay, _may_start, job.id, task.id, task.revision)
    else:
        task.eligible_since = world.now


def _may_start(world: World, job_id: str, task_id: str, revision: int) -> None:
    job = world.jobs.get(job_id.lower())
    task = job.tasks.get(task_id.lower()) if job else None
    if task and task.revision == revision:
        task.eligible_since = world.now
        world.changed = True


def _leave_queue(job: Job, task: Task) -> None:
    entry = (task.number, task.id.lower())
    index = bisect_left(job.queue, entry)
    if index < len(job.queue) and job.queue[index] == entry:
        del job.queue[index]


def watch_wall_clock(world: World, task: Task, run: Run) -> None:
    """End the run when the task's maxWallClockTime, counted from the run's start, is over."""
    limit = task.constraint("maxWallClockTime")
    age = (world.now - run.started).total_seconds()
    world.after(seconds_of(limit, _UNLIMITED_SECONDS) - age, _expire, run.number, limit)


def _expire(world: World, number: int, limit: str | None) -> None:
    run = world.runs.get(number)
    _, task = find(world, run) if run else (None, None)
    if run and task and task.constraint("maxWallClockTime") == limit:
        stop(world, run, "expired")


def _forget(world: World, job_id: str, task_id: str, number: int, revision: int) -> None:
    job = world.jobs.get(job_id.lower())
    task = job.tasks.get(task_id.lower()) if job else None
    if job and task and (task.number, task.revision) == (number, revision):
        remove(world, job, task, "task_forgotten")


def _may_retry(job: Job, task: Task, end: RunEnd) -> bool:
    launch_failed = end.failure is not None and end.failure.code.startswith("Command")
    if end.killed or not (end.exit_code or launch_failed):
        return False
    limit = task.constraint("maxTaskRetryCount")
    limit = job.constraint("maxTaskRetryCount") or 0 if limit is None else limit
    return bool(limit == -1 or task.retry_count < limit)


def _exit_failure(end: RunEnd) -> Failure | None:
    if end.exit_code == 0:
        return None
    return Failure(
        "FailureExitCode", "usererror", "The task's process ended with a failure", {"exitCode": str(end.exit_code)}
    )


def _environment(world: World, job: Job, task: Task) -> dict[str, str]:
    environment = dict(world.config.task_environment)
    for settings in (job.spec.get("commonEnvironmentSettings"), task.spec.get("environmentSettings")):
        environment.update({setting["name"]: setting.get("value") or "" for setting in settings or ()})
    return environment


def _names(run: Run) -> dict[str, str]:
    return {"job": run.place.job, "task": run.place.task, "pool": run.place.pool, "node": run.place.node}
