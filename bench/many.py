"""One run of the timer over very many live jobs: how long it computes, what it asks, what it holds in memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from bench.deployment import Deployment, told
from bench.figures import Figure
from bench.storage_service import Blob
from local.producer.records import new_model
from shared.batch.types import TaskBody
from shared.kinds import Entity, Kind
from shared.protocol.record import NodeRun, Placement, Record, Request, State, task_id

_LIVE, _RUNNING, _POOLS = 10_000, 20, 20
_KINDS = (Kind.TRAINING, Kind.INFERENCE)  # of both classes: 40 Batch jobs
_TICKS = 6
_GOAL_SECONDS, _GOAL_CALLS, _GOAL_MB = 10, 100, 250
_MB = 1024 * 1024


def measure(live: int = _LIVE) -> list[Figure]:
    """Several runs in which nothing new happens; the first, of a process that has just started, is told apart."""
    deployment = Deployment([_pool(number) for number in range(_POOLS)])
    _fill(deployment, live)
    first = _tick(deployment)
    ticks = [_tick(deployment) for _ in range(_TICKS)]
    longest = max(ticks, key=lambda one: one.seconds)
    calls = sum(one.calls for one in ticks) / _TICKS
    most = max(ticks, key=lambda one: one.calls)
    peak, held = _traced(deployment)
    program = _program_mb()
    about = f"{live} live jobs ({_RUNNING} running, the rest queued) in {_POOLS * len(_KINDS)} Batch jobs"
    return [
        Figure(
            "tick_10000_seconds",
            longest.seconds,
            "s of one processor",
            _GOAL_SECONDS,
            f"{about}; the longest of {_TICKS} runs ({longest.wall_seconds:.1f} s by the clock of this busy or idle "
            f"machine), the emulated services included, which answer at once; "
            f"the first run of a process {first.seconds:.1f} s",
        ),
        Figure(
            "tick_10000_calls",
            calls,
            "calls",
            _GOAL_CALLS,
            f"{about}; mean of {_TICKS} runs, the most in one {most.calls} ({most.told}); "
            f"the first run of a process {first.calls} ({first.told})",
        ),
        Figure(
            "tick_10000_peak_mb",
            program + peak,
            "MB",
            _GOAL_MB,
            f"{about}; {program:.0f} MB for the program with its libraries and at most {peak:.0f} MB more during a run "
            f"(of which {held:.0f} MB stay after it); what the emulated services allocate for their answers included",
        ),
    ]


def _pool(number: int) -> dict[str, Any]:
    return {"id": f"pool-{number:02}", "targetLowPriorityNodes": _RUNNING // _POOLS, "start_seconds": 0}


def _fill(deployment: Deployment, live: int) -> None:
    """Placed records with their tasks and HASTE's records, spread evenly. Written as handlers do."""
    worker, now = deployment.app.worker, deployment.clock.now()
    slots = [(pool, kind) for pool in deployment.pools for kind in _KINDS]
    made: set[str] = set()
    haste = deployment.storage.containers["data"]
    for number in range(live):
        pool, kind = slots[number % len(slots)]
        pool_id, asked = str(pool["id"]), now + timedelta(milliseconds=number)
        name = task_id(kind, f"m{number}", 1)
        job_id = worker.placer.job_id(kind, pool_id, now)
        if job_id not in made:
            worker.batch.create_job(job_id, pool_id, 0, worker.tenant)
            made.add(job_id)
        worker.batch.create_task(job_id, _body(name))
        entity = Entity(kind, deployment.project_id, str(number))
        placed = Placement(pool_id, job_id, name, now, "has a free slot")
        record = Record(
            entity, Request(f"m{number}", asked), State.PLACED, now, placement=placed, reason="has a free slot"
        )
        worker.ledger.create(record)
        shown = worker.workloads[kind].submitted(record.run(), now)(_model(entity, deployment.layer_id))
        haste[worker.workloads[kind].record_name(entity)] = Blob(json.dumps(shown).encode(), f'"{number}"', now)
    running = {task for _job, task in deployment.runner.running()}
    assert len(running) == _RUNNING
    for summary in list(worker.ledger.live()):
        if summary.task_id in running:
            _note_run(deployment, summary.key)


def _model(entity: Entity, layer_id: str) -> dict[str, Any]:
    return new_model(
        entity.project_id, layer_id, name="Model", user_id="u", labelproject_id=None, model_id=entity.entity_id
    )


def _note_run(deployment: Deployment, key: str) -> None:
    """As an earlier run of the timer has noted it."""
    worker = deployment.app.worker
    version = worker.ledger.read(key)
    assert version is not None and version.record.placement is not None
    placed = version.record.placement
    task = worker.batch.task(placed.job_id, placed.task_id)
    assert task is not None and task.node_id is not None and task.started_at is not None
    run = NodeRun(task.node_id, task.started_at)
    worker.ledger.replace(version, replace(version.record, node_run=run))


def _body(name: str) -> TaskBody:
    return TaskBody(name, "work", "image", "--rm", (), (), {}, timedelta(hours=1), "task")


@dataclass(frozen=True)
class _Tick:
    seconds: float
    wall_seconds: float
    calls: int
    told: str


def _tick(deployment: Deployment) -> _Tick:
    deployment.world.advance(30)
    deployment.count_anew()
    began, wall_began = time.process_time(), time.perf_counter()
    deployment.app.tick()
    seconds, wall_seconds = time.process_time() - began, time.perf_counter() - wall_began
    calls = deployment.calls()
    return _Tick(seconds, wall_seconds, sum(calls.values()), told(calls))


def _traced(deployment: Deployment) -> tuple[float, float]:
    """Python memory at its peak during two runs, and after them, in MB above what was there before."""
    tracemalloc.start()
    for _ in range(2):
        deployment.world.advance(30)
        deployment.app.tick()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / _MB, held / _MB


def _program_mb() -> float:
    """What a process takes that has only loaded the app."""
    script = "import function_app, shared.app; print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024
