"""Azure calls: for one submission, and for a job that runs for an hour."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bench.deployment import TICK_SECONDS, Deployment, told
from bench.figures import Figure
from local.images.training.app.event_file import record, scalar_event, version_event

_PER_SUBMIT, _PER_JOB_HOUR = 15, 200
_SUBMITS = 10
_HOUR_SECONDS = 3600
_EPOCH_SECONDS = 300
_LEGACY = {
    "AZURE_BATCH_USE_SAS": "false",
    "AZURE_BATCH_MANAGE_POOLS": "true",
    "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": (
        "/subscriptions/0/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pool"
    ),
}
_LOGGED_EVERY_SECONDS = 30


def _pools(nodes: int, count: int = 2) -> list[dict[str, Any]]:
    return [{"id": f"pool-{n}", "targetLowPriorityNodes": nodes, "start_seconds": 0} for n in range(count)]


def per_submit() -> Figure:
    """With SAS and two candidate pools; as HASTE is set up by default for comparison."""
    calls = _submissions(Deployment(_pools(_SUBMITS + 1)))
    default = _submissions(Deployment(_pools(_SUBMITS + 1, count=1), _LEGACY))
    detail = (
        f"a training, two candidate pools, SAS; of these: {told(calls, _SUBMITS)} "
        f"(with default settings and one pool: {sum(default.values()) / _SUBMITS:g})"
    )
    return Figure("calls_per_submit", sum(calls.values()) / _SUBMITS, "calls", _PER_SUBMIT, detail)


def _submissions(deployment: Deployment) -> Counter[str]:
    """One after the other, each with a free node; the first, which makes the week's job, is left out."""
    deployment.train()
    deployment.count_anew()
    for _ in range(_SUBMITS):
        with deployment.uncounted():
            deployment.tick()
        deployment.train()
    return deployment.calls()


def per_job_hour(jobs: int, goal: float | None) -> Figure:
    """So many trainings run in two pools for an hour; every one has logged something new whenever it is looked at."""
    deployment = Deployment(_pools(-(-jobs // 2)))
    for _ in range(jobs):
        deployment.train()
        deployment.tick()  # notes that it runs: until then it counts as one that will take a slot
    running = deployment.runner.running()
    assert len(running) == jobs
    began = deployment.clock.now().timestamp()
    contents = dict.fromkeys(running, record(version_event(began)))
    deployment.count_anew()
    for tick in range(1, _HOUR_SECONDS // TICK_SECONDS + 1):
        for job, task in running:
            contents[job, task] += _logged(began, tick * TICK_SECONDS)
            deployment.runner.put_file(job, task, "wd/logs/version_0/events.out.tfevents.1.0", contents[job, task])
        deployment.tick()
    assert deployment.runner.running() == running
    calls = deployment.calls()
    detail = (
        f"{jobs} trainings in 2 pools for one hour, {_HOUR_SECONDS // TICK_SECONDS} runs of the timer, "
        f"something new to show at every look; per job-hour: {told(calls, jobs)}"
    )
    return Figure(f"calls_per_job_hour_{jobs}", sum(calls.values()) / jobs, "calls", goal, detail)


def _logged(began: float, seconds: int) -> bytes:
    """What a training appends to its event file every 30 s."""
    epoch, step = seconds // _EPOCH_SECONDS, seconds // _LOGGED_EVERY_SECONDS
    scalars = {"epoch": float(epoch), "train_loss": 1 / step, "train_MulticlassAccuracy": 1 - 1 / step}
    return b"".join(record(scalar_event(began + seconds, step, tag, value)) for tag, value in scalars.items())


def measure() -> list[Figure]:
    """All figures of this module."""
    return [per_submit(), per_job_hour(20, _PER_JOB_HOUR), per_job_hour(1, None)]
