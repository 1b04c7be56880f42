"""The attempts of a request, told from the Batch emulator's event log."""

from __future__ import annotations

from dataclasses import dataclass

from local.demo.evidence import BatchTask, Evidence, Request


@dataclass(frozen=True)
class Attempt:
    """One Batch task of a request; times as Batch writes them, None for what has not happened."""

    pool: str
    task_id: str
    queued_at: str
    started_at: str | None
    ended_at: str | None
    outcome: str


def attempts(evidence: Evidence, request: Request) -> list[Attempt]:
    """In the order in which they were added to Batch."""
    return [_attempt(evidence, task) for task in evidence.tasks_of(request)]


def was_preempted(evidence: Evidence, task_id: str) -> bool:
    """A run of the task was lost together with its node."""
    return bool(evidence.select("run_lost", task_id=task_id))


def was_ended_by_us(evidence: Evidence, task_id: str) -> bool:
    """Somebody asked Batch to terminate the task, and it did not end with success."""
    asked = any(
        event.get("operation") == "terminate_task" and f"/tasks/{task_id}/" in f"{event.get('path')}/"
        for event in evidence.select("request")
    )
    return asked and _result(evidence, task_id) == "failure"


def succeeded(evidence: Evidence, task_id: str) -> bool:
    """The task completed with exit code 0 and with its outputs uploaded."""
    return _result(evidence, task_id) == "success"


def _result(evidence: Evidence, task_id: str) -> str | None:
    ends = evidence.select("task_completed", task_id=task_id)
    return str(ends[-1]["result"]) if ends else None


def _attempt(evidence: Evidence, task: BatchTask) -> Attempt:
    def time(which: int, *kinds: str) -> str | None:
        found = evidence.select(*kinds, task_id=task.task_id)
        return str(found[which]["time"]) if found else None

    starts = evidence.select("task_started", task_id=task.task_id)
    return Attempt(
        pool=str(starts[-1]["pool"]) if starts else task.pool_id,
        task_id=task.task_id,
        queued_at=time(0, "task_created") or "",
        started_at=time(0, "task_started"),
        ended_at=time(-1, "task_completed", "task_deleted"),
        outcome=_outcome(evidence, task.task_id),
    )


def _outcome(evidence: Evidence, task_id: str) -> str:
    if succeeded(evidence, task_id):
        return "preempted, run again, succeeded" if was_preempted(evidence, task_id) else "succeeded"
    words = ["preempted"] if was_preempted(evidence, task_id) else []
    if was_ended_by_us(evidence, task_id):
        words.append("ended by the worker")
    elif evidence.select("task_deleted", task_id=task_id):
        words.append("deleted")
    elif _result(evidence, task_id) == "failure":
        words.append("failed")
    else:
        words.append("not ended")
    return ", ".join(words)
