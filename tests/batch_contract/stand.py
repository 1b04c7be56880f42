"""The emulated account that the contract is tried on, and the few steps that most tests begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from azure.batch import BatchClient, models
from azure.core.polling import LROPoller

from local.batch import ScriptedRunner, World
from tests.batch_emulator.support import INSTANT

POOL, AUTO = "pool", "auto"
FORMULA = "$TargetDedicatedNodes = 1;"
_POLLER_SECONDS = 30

#: Two idle low-priority nodes of two slots. What takes the service a while is done at once, so that the SDK's pollers,
#: which sleep by the computer's clock, never sleep.
WORLD: dict[str, Any] = {
    "timings": INSTANT,
    "pools": [
        {
            "id": POOL,
            "vmSize": "standard_d2s_v3",
            "taskSlotsPerNode": 2,
            "targetLowPriorityNodes": 2,
            "start_seconds": 0,
            "metadata": [{"name": "class", "value": "gpu"}],
        }
    ],
}


def make_world() -> World:
    """A world of its own for one test, on a manual clock and with tasks that end when the test says so."""
    return World.from_json(WORLD)


@dataclass(frozen=True)
class Stand:
    """The real client on a world that the test holds in its hands."""

    client: BatchClient
    world: World

    @property
    def runner(self) -> ScriptedRunner:
        assert isinstance(self.world.runner, ScriptedRunner)
        return self.world.runner

    def job(self, job_id: str = "job", **options: Any) -> None:
        pool_info = models.BatchPoolInfo(pool_id=options.pop("pool_id", POOL))
        self.client.create_job(models.BatchJobCreateOptions(id=job_id, pool_info=pool_info, **options))

    def task(self, task_id: str = "task", **options: Any) -> None:
        """A task in `job`; it runs at once when a slot is free."""
        options = {"command_line": "program"} | options
        self.client.create_task("job", models.BatchTaskCreateOptions(id=task_id, **options))

    def ended(self, task_id: str = "task", exit_code: int = 0) -> None:
        """A job with one task whose program has ended."""
        self.job()
        self.task(task_id)
        self.runner.finish("job", task_id, exit_code)

    def auto_scaling(self) -> None:
        """A pool of one dedicated node that a formula asks for."""
        self.client.create_pool(
            models.BatchPoolCreateOptions(
                id=AUTO, vm_size="standard_d2s_v3", enable_auto_scale=True, auto_scale_formula=FORMULA
            )
        )
        self.world.advance(60)

    def node(self, pool_id: str = POOL) -> str:
        """The id of the pool's first node."""
        return next(iter(self.client.list_nodes(pool_id))).id

    def leaving(self) -> None:
        """A pool that cannot end its resize, because the node that is to go has a task."""
        self.job()
        self.task()
        self.client.begin_resize_pool(
            POOL,
            models.BatchPoolResizeOptions(target_low_priority_nodes=0, node_deallocation_option="taskcompletion"),
            polling_interval=1,
        )


def wait(poller: LROPoller[None]) -> None:
    """The SDK's own poller comes to its end by itself, and it is a good one."""
    poller.wait(_POLLER_SECONDS)
    assert poller.done()
    assert poller.status() == "Succeeded"
