"""Worlds that run real processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from azure.batch import BatchClient

from local.batch import RealClock, World, WorldConfig
from local.batch.clock import Clock
from local.batch.process_runner import ProcessRunner
from tests.batch_emulator.support import POOL, act

_DEADLINE_SECONDS = 60.0


def process_world(root: Path, clock: Clock | None = None, slots: int = 1, **keys: Any) -> World:
    """One idle low-priority node; tasks are processes below `root`."""
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "taskSlotsPerNode": slots, "start_seconds": 0}
    config = WorldConfig.from_json({"root": str(root), "pools": [pool], **keys})
    return World(config, clock or RealClock(), ProcessRunner(config))


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition; a request to the world in it makes the world catch up."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.02)


def add_task(client: BatchClient, task_id: str = "task", **body: Any) -> None:
    """A task from its wire form."""
    act(client, "/jobs/job/tasks", {"id": task_id, **body})


def finished(client: BatchClient, task_id: str = "task") -> Any:
    """The execution info of a task, once it is completed."""
    until(lambda: client.get_task("job", task_id).state == "completed")
    return client.get_task("job", task_id).execution_info


def read(client: BatchClient, path: str, task_id: str = "task") -> str:
    """A file of a task through the API."""
    return b"".join(client.download_task_file("job", task_id, path)).decode()
