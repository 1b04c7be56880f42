"""The functions host dies by SIGKILL between two steps of a job: after its restart the job ends once, and right.

Each point has a tenant of its own, so that all can be gone through at the same time.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from local.certificates import Certificates
from local.stack import BlockingStack, running_stack
from tests.support.gate import Door, Gate, Hold, Matching
from tests.support.outside import BatchAccount, Haste, Layer, Model, most_live, wait_for
from tests.support.stacks import options

LAYER_SAVED = r"/data/[0-9a-f]{64}/imagelayer_"


@dataclass(frozen=True)
class Point:
    """Where the host dies: when this request has been answered by the service, or before it gets there."""

    service: str
    matching: Matching
    when: str


def ledger(kind: str, state: str) -> Matching:
    """The write that brings a job of this kind into this state."""
    return Matching("PUT", rf"/haste-worker/active/{kind}/", {"x-ms-meta-state": state})


POINTS: Mapping[str, Point] = {
    "recordcreated": Point("blob", ledger("imageryprep", "waiting"), "after"),
    "placementwritten": Point("blob", ledger("imageryprep", "placed"), "after"),
    "taskadded": Point("batch", Matching("POST", r"^/jobs/[^/]+/tasks\?"), "after"),
    "outcomefixed": Point("blob", ledger("imageryprep", "finishing"), "after"),
    "recordnotpatched": Point("blob", Matching("PUT", LAYER_SAVED, body='"status": ?"Processed"'), "before"),
}
#: A training has ended. Its inference is in the ledger and nobody has been told; or it goes on by itself, and what led
#: to it is gone through again.
FOLLOW_UPS: Mapping[str, Point] = {
    "followupcreated": Point("blob", ledger("inference", "waiting"), "after"),
    "followupasked": Point("blob", Matching("PUT", r"/haste-worker/done/training/"), "before"),
}
TENANTS = (*POINTS, *FOLLOW_UPS)


class Killed:
    """The tenants' jobs, each of which has lost its host once."""

    def __init__(self, running: BlockingStack, gate: Gate) -> None:
        self.batch = BatchAccount(running.stack)
        self.hastes = {tenant: Haste(running.stack, tenant) for tenant in TENANTS}
        self.layers: dict[str, Layer] = {}
        self._running = running
        self._gate = gate
        with contextlib.ExitStack() as held:
            holds = {tenant: held.enter_context(self._hold(gate, tenant, point)) for tenant, point in POINTS.items()}
            self.layers = {tenant: self.hastes[tenant].new_layer() for tenant in POINTS}
            for tenant, hold in holds.items():
                self._restart_when_killed(tenant, hold)
        self.models = self._trained(gate)

    def finished(self, tenant: str) -> bool:
        """The training is done with: the last of its steps, which the killed host never took, has been taken."""
        return self._gate.door(tenant, "blob").count("DELETE", r"/haste-worker/active/training/") > 0

    def _trained(self, gate: Gate) -> dict[str, Model]:
        layers = {tenant: self.hastes[tenant].prepared_layer() for tenant in FOLLOW_UPS}
        with contextlib.ExitStack() as held:
            holds = {tenant: held.enter_context(self._hold(gate, tenant, at)) for tenant, at in FOLLOW_UPS.items()}
            models = {tenant: self.hastes[tenant].new_model(layers[tenant], inference=True) for tenant in FOLLOW_UPS}
            for tenant, hold in holds.items():
                self._restart_when_killed(tenant, hold)
        return models

    def _hold(self, gate: Gate, tenant: str, point: Point) -> contextlib.AbstractContextManager[Hold]:
        door: Door = gate.door(tenant, point.service)
        child = self._running.stack.hosts[TENANTS.index(tenant)].service.child
        assert point.when in ("before", "after")
        return door.hold(
            point.matching,
            "before" if point.when == "before" else "after",
            then=lambda: child.signal_group(signal.SIGKILL),
        )

    def _restart_when_killed(self, tenant: str, hold: Hold) -> None:
        index = TENANTS.index(tenant)
        hold.wait()
        child = self._running.stack.hosts[index].service.child
        assert wait_for(lambda: child.exit_code) == -signal.SIGKILL
        hold.drop()
        self._running.restart_host(index)


@pytest.fixture(scope="module")
def killed(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    run_folder = tmp_path_factory.mktemp("run")
    with (
        Gate(certificates) as gate,
        running_stack(
            options(run_folder, certificates, tenants=TENANTS, lease_seconds=5, adjust=gate.settings)
        ) as running,
    ):
        yield Killed(running, gate)


@pytest.mark.parametrize("point", POINTS)
def test_the_job_ends_once_and_right(killed: Killed, point: str) -> None:
    haste, layer = killed.hastes[point], killed.layers[point]
    assert layer.ended(120) == "Processed"
    wait_for(haste.is_idle)
    assert haste.poisoned() == 0

    created = killed.batch.created(tenant=point)
    assert created == [layer.record["preprocessJob"]["taskId"]]
    assert len(killed.batch.events("task_started", tenant=point)) == 1
    label_projects = [name for name in haste.blob_names() if "/labels_" in name and name.endswith(".json")]
    assert [layer.record["labelProjectId"] in name for name in label_projects] == [True]


@pytest.mark.parametrize("point", FOLLOW_UPS)
def test_what_follows_a_training_follows_once(killed: Killed, point: str) -> None:
    haste, model = killed.hastes[point], killed.models[point]
    wait_for(lambda: killed.finished(point), 120)
    wait_for(haste.is_idle)
    assert model.inference_ended() == "Processed"
    assert model.status == "Processed"

    trainings = killed.batch.created(tenant=point, prefix="trn-")
    inferences = killed.batch.created(tenant=point, prefix="inf-")
    assert trainings == [model.record["trainingJob"]["taskId"]]
    assert inferences == [job["taskId"] for job in model.record["inferenceJobs"]]
    assert len(inferences) == 1
    events = killed.batch.events("task_created", "task_completed", tenant=point)
    assert most_live(events, [*trainings, *inferences]) == 1
