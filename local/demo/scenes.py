"""The checks of the demo's three scenes: a pool at its quota, a job that waits for capacity, a node lost twice.

Each is read from HASTE's records and from the Batch emulator's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from local.batch.iso8601 import parse_time
from local.demo.attempts import attempts, succeeded
from local.demo.evidence import Evidence
from local.demo.finding import Finding
from local.demo.haste_log import WAITING, WAITING_AGAIN, said


def is_quota_error(code: str) -> bool:
    """A resize error that more quota would mend."""
    return code.endswith("CoreQuotaReached")


def spilled_over(evidence: Evidence) -> Finding:
    """The training's preferred pool was at its quota when the task was added to the next one, which was not."""
    (training,) = evidence.requests_of("training")
    preferred, *_ = evidence.candidates["training"]
    task = evidence.tasks_of(training)[0]
    added = _added_at(evidence, task.task_id)
    wrong = []
    if task.pool_id == preferred:
        wrong.append(f"it went to {preferred}")
    if task.pool_id not in evidence.candidates["training"]:
        wrong.append(f"{task.pool_id} is no pool for training")
    if not _quota_errors(evidence, preferred, added):
        wrong.append(f"{preferred} was not at its quota")
    if _quota_errors(evidence, task.pool_id, added):
        wrong.append(f"{task.pool_id} was at its quota, too")
    told = ", ".join(_quota_errors(evidence, preferred, added))
    return Finding(wrong, f"{preferred} ({told}), so to {task.pool_id}")


def waited_for_capacity(evidence: Evidence) -> Finding:
    """HASTE's page said that the second layer waits, with all its pools at their quota; then it ran on one of them."""
    second = evidence.requests_of("imageryprep")[1]
    waits = said(evidence.record(second), second, WAITING)
    tasks = evidence.tasks_of(second)
    wrong = []
    if not waits:
        wrong.append(f"HASTE's page never said {WAITING.pattern!r}")
    if len(tasks) != 1:
        wrong.append(f"{len(tasks)} tasks instead of 1")
    if wrong:
        return Finding(wrong, "")
    since, (task,) = waits[0], tasks
    added = _added_at(evidence, task.task_id)
    for pool in evidence.candidates["imageryprep"]:
        if not _quota_errors(evidence, pool, since):
            wrong.append(f"{pool} was not at its quota when it began to wait")
    if added <= since:
        wrong.append("its task was added before it waited")
    if _quota_errors(evidence, task.pool_id, added):
        wrong.append(f"{task.pool_id} was still at its quota when the task was added")
    if not succeeded(evidence, task.task_id):
        wrong.append("its task did not succeed")
    pools = " and ".join(evidence.candidates["imageryprep"])
    return Finding(
        wrong, f"{(added - since).total_seconds():.0f} s, {pools} being at their quota; ran on {task.pool_id}"
    )


def preempted_twice(evidence: Evidence) -> Finding:
    """The training lost its node two times, HASTE's page said so each time, and it ran again and succeeded."""
    (training,) = evidence.requests_of("training")
    ids = [task.task_id for task in evidence.tasks_of(training)]
    runs = [event for event in evidence.select("task_started", "run_lost") if event.get("task") in ids]
    lost = [event for event in runs if event["event"] == "run_lost"]
    wrong = []
    if len(lost) != 2:
        wrong.append(f"{len(lost)} losses instead of 2")
    if [event["event"] for event in runs] != ["task_started", "run_lost"] * len(lost) + ["task_started"]:
        wrong.append("it did not run again after each loss")
    told = said(evidence.record(training), training, WAITING_AGAIN)
    if len(told) != 2:
        wrong.append(f"HASTE's page said {WAITING_AGAIN.pattern!r} {len(told)} times")
    if not ids or not succeeded(evidence, ids[-1]):
        wrong.append("its last task did not succeed")
    places = ", then on ".join(str(event["pool"]) for event in lost)
    return Finding(wrong, f"on {places}; {len(attempts(evidence, training))} tasks, {len(runs) - len(lost)} runs")


def _added_at(evidence: Evidence, task_id: str) -> datetime:
    return parse_time(evidence.select("task_created", task_id=task_id)[0]["time"])


def _quota_errors(evidence: Evidence, pool_id: str, at: datetime) -> list[str]:
    """The quotas at which the pool's last resize had ended at that time; none while it is being resized."""
    mine = [
        event
        for event in evidence.select("pool_resizing", "pool_steady")
        if event["pool"] == pool_id and parse_time(event["time"]) <= at
    ]
    last: Mapping[str, Any] = mine[-1] if mine else {}
    return [code for code in last.get("errors", ()) if is_quota_error(code)]
