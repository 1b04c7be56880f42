"""What the demo promises, each a pure function of the evidence: HASTE's records, storage's listing, Batch's log.

The worker's own ledger is no source here; it is only searched for secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from local.demo.attempts import attempts, succeeded, was_ended_by_us, was_preempted
from local.demo.blobs import expected_blobs, missing_blobs
from local.demo.evidence import UNKNOWN, Evidence, entity_of
from local.demo.finding import Finding
from local.demo.leaks import leaks
from local.demo.scenes import preempted_twice, spilled_over, waited_for_capacity
from local.producer.names import label_project_blob, partition

PROCESSED = "Processed"
_MOST_SHOWN = 5


@dataclass(frozen=True)
class Check:
    """One expectation: whether it held, and what was found."""

    name: str
    ok: bool
    detail: str


def run_checks(evidence: Evidence) -> list[Check]:
    """All checks; one that cannot read the evidence has failed."""
    return [_run(name, check, evidence) for name, check in CHECKS.items()]


def played_to_the_end(evidence: Evidence) -> Finding:
    """No step failed or took too long."""
    return Finding([evidence.trouble] if evidence.trouble else [], "every step came true in its time")


def every_record_processed(evidence: Evidence) -> Finding:
    """HASTE's records and the jobs in them say so, at 100 %."""
    model = evidence.model
    found = {
        "training": model.get("status"),
        "training's job": (model.get("trainingJob") or {}).get("status"),
        "inference": model.get("inferenceStatus"),
    }
    found |= {f"inference job {n}": job.get("status") for n, job in enumerate(model.get("inferenceJobs") or [], 1)}
    progress = {"training": model.get("progressPct"), "inference": model.get("inferenceProgressPct")}
    for number, layer in enumerate(evidence.layers, 1):
        found[f"layer {number}"] = layer.get("status")
        found[f"layer {number}'s job"] = (layer.get("preprocessJob") or {}).get("status")
        progress[f"layer {number}"] = layer.get("progressPct")
    wrong = [f"{what} is {status}" for what, status in found.items() if status != PROCESSED]
    wrong += [f"{what} is at {percent} %" for what, percent in progress.items() if percent != 100]
    if len(evidence.layers) != 2:
        wrong.append(f"{len(evidence.layers)} layers instead of 2")
    return Finding(wrong, f"{len(found)} status fields")


def every_blob_present(evidence: Evidence) -> Finding:
    """Configs, labels, results and logs, by the names of HASTE's contract."""
    wrong = [f"{name} is missing" for name in missing_blobs(evidence)]
    return Finding(wrong, f"{len(expected_blobs(evidence))} blobs")


def training_moved(evidence: Evidence) -> Finding:
    """The training lost its node, was ended by us, and succeeded as another task on another pool."""
    (request,) = evidence.requests_of("training")
    found = attempts(evidence, request)
    told = " -> ".join(f"{attempt.pool} ({attempt.outcome})" for attempt in found) or "no attempt"
    wrong = []
    if len(found) != 2:
        wrong.append(f"{len(found)} attempts instead of 2")
    else:
        first, second = found
        if first.pool == second.pool:
            wrong.append("both attempts were on one pool")
        if not was_preempted(evidence, first.task_id):
            wrong.append("the first attempt did not lose its node")
        if not was_ended_by_us(evidence, first.task_id):
            wrong.append("the first attempt was not ended by the worker")
        if not succeeded(evidence, second.task_id):
            wrong.append("the second attempt did not succeed")
    return Finding([*wrong, told] if wrong else [], told)


def never_two_live_tasks(evidence: Evidence) -> Finding:
    """At no instant were there two uncompleted tasks, or two running processes, of one kind for one entity."""
    owner = {task.task_id: entity_of(task) for task in evidence.tasks}
    live: set[tuple[tuple[str, str], str, str]] = set()
    wrong = [] if owner else ["no task was seen at all"]
    for event in evidence.events:
        task_id = str(event.get("task"))
        if task_id not in owner:
            continue
        kind, entity_id = owner[task_id]
        match event["event"]:
            case "task_created" | "task_reactivated":
                mine = (owner[task_id], "task", task_id)
            case "task_started":
                mine = (owner[task_id], "process", str(event["run"]))
            case "task_completed" | "task_deleted":
                live.discard((owner[task_id], "task", task_id))
                continue
            case "run_ended" | "run_lost":
                live.discard((owner[task_id], "process", str(event["run"])))
                continue
            case _:
                continue
        if any(other[:2] == mine[:2] and other != mine for other in live):
            wrong.append(f"a second live {mine[1]} of {kind} {entity_id} at {event['time']}")
        live.add(mine)
    ours = [kind for kind, _ in owner.values() if kind != UNKNOWN]
    return Finding(wrong, f"{len(ours)} tasks, one at a time")


def no_secret_readable(evidence: Evidence) -> Finding:
    """No log, ledger record, status text, task environment or command line holds one."""
    wrong = leaks(evidence.texts, evidence.secrets) if evidence.texts else ["there was nothing to search"]
    characters = sum(len(text.content) for text in evidence.texts)
    told = f"{len(evidence.texts)} texts with {characters} characters searched for {len(evidence.secrets)} known values"
    return Finding(wrong, told)


def follow_ups_once(evidence: Evidence) -> Finding:
    """One label project for each layer; one inference task for each of the two inferences."""
    model = evidence.model
    wrong = []
    for layer in evidence.layers:
        folder = f"{partition(layer['projectId'])}/labels_"
        label_projects = [name for name in evidence.blob_names if name.startswith(folder)]
        if label_projects != [label_project_blob(layer["projectId"], str(layer.get("labelProjectId")))]:
            wrong.append(f"{len(label_projects)} label projects, the layer names {layer.get('labelProjectId')}")
    inferences = evidence.requests_of("inference")
    if [request.follows for request in inferences] != [True, False]:
        wrong.append(f"{len(inferences)} inferences instead of one that follows and one that was asked for")
    for number, request in enumerate(inferences, 1):
        tasks = evidence.tasks_of(request)
        if len(tasks) != 1:
            wrong.append(f"inference {number} had {len(tasks)} tasks")
    created = Counter(f"{event['job']}/{event['task']}" for event in evidence.select("task_created"))
    wrong += [f"task {task_id} was added {times} times" for task_id, times in created.items() if times > 1]
    jobs = [job.get("taskId") for job in model.get("inferenceJobs") or []]
    added = [task.task_id for request in inferences for task in evidence.tasks_of(request)]
    if jobs != added:
        wrong.append(f"the model lists {len(jobs)} inference jobs, {len(added)} tasks were added")
    return Finding(wrong, "one label project per layer, one inference task per request")


CHECKS: Mapping[str, Callable[[Evidence], Finding]] = {
    "played to the end": played_to_the_end,
    "every record Processed": every_record_processed,
    "every expected blob present": every_blob_present,
    "a pool at its quota: the training went to the other one": spilled_over,
    "both pools at their quota: the second layer waited, then ran": waited_for_capacity,
    "training moved pools after the preemption": training_moved,
    "the training lost its node twice and came to its end": preempted_twice,
    "never two live tasks for one request": never_two_live_tasks,
    "no secret in logs, ledger, task environments, command lines": no_secret_readable,
    "follow-ups exactly once": follow_ups_once,
}


def _run(name: str, check: Callable[[Evidence], Finding], evidence: Evidence) -> Check:
    try:
        finding = check(evidence)
    except (LookupError, TypeError, ValueError, StopIteration) as error:  # a demo broken off leaves gaps
        return Check(name, False, f"the evidence has gaps: {type(error).__name__} {error}")
    wrong = finding.wrong[:_MOST_SHOWN]
    if len(finding.wrong) > _MOST_SHOWN:
        wrong.append(f"and {len(finding.wrong) - _MOST_SHOWN} more")
    return Check(name, not wrong, "; ".join(wrong) or finding.well)
