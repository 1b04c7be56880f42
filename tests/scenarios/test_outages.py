"""Storage or Batch cannot be reached for a minute while a job is under way, or Batch is too busy to take it.

Each kind of outage has a tenant of its own, so that all can be lived through at the same time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from local.certificates import Certificates
from local.stack import running_stack
from tests.support.gate import Door, Gate, Matching
from tests.support.outside import BatchAccount, Haste, Layer, wait_for
from tests.support.stacks import options

OUTAGE_SECONDS = 60.0
BUSY_SECONDS = 90.0
STORAGE, BATCH, BUSY = "nostorage", "nobatch", "busybatch"
TENANTS = (STORAGE, BATCH, BUSY)


class Outages:
    """One layer per tenant, and every status that its record has shown."""

    def __init__(self, batch: BatchAccount, hastes: dict[str, Haste], gate: Gate) -> None:
        self.batch = batch
        self.hastes = hastes
        self.layers: dict[str, Layer] = {}
        self.shown: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
        with contextlib.ExitStack() as busy:
            busy.enter_context(gate.door(BUSY, "batch").refusing(Matching(), 503, "ServerBusy"))
            busy_until = time.monotonic() + BUSY_SECONDS
            self.layers = {tenant: hastes[tenant].new_layer() for tenant in TENANTS}
            for tenant in (STORAGE, BATCH):
                wait_for(lambda tenant=tenant: self.layers[tenant].record["currentStep"])  # type: ignore[misc]
            for door in self._gone(gate):
                door.shut()
            self._watch(time.monotonic() + OUTAGE_SECONDS)
            for door in self._gone(gate):
                door.open()
            self._watch(busy_until)
        self._watch(time.monotonic() + 5)

    @staticmethod
    def _gone(gate: Gate) -> Iterator[Door]:
        yield from (gate.door(STORAGE, "blob"), gate.door(STORAGE, "queue"), gate.door(BATCH, "batch"))

    def _watch(self, until: float) -> None:
        while time.monotonic() < until:
            for tenant, layer in self.layers.items():
                if self.shown[tenant][-1:] != [layer.status]:
                    self.shown[tenant].append(layer.status)
            time.sleep(0.2)


@pytest.fixture(scope="module")
def outages(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outages]:
    run_folder = tmp_path_factory.mktemp("run")
    with (
        Gate(certificates) as gate,
        running_stack(
            options(run_folder, certificates, tenants=TENANTS, task_seconds=8, lease_seconds=15, adjust=gate.settings)
        ) as running,
    ):
        hastes = {tenant: Haste(running.stack, tenant) for tenant in TENANTS}
        yield Outages(BatchAccount(running.stack), hastes, gate)


@pytest.mark.parametrize("tenant", TENANTS)
def test_the_job_ends_once_and_nothing_is_shown_as_failed(outages: Outages, tenant: str) -> None:
    haste, layer = outages.hastes[tenant], outages.layers[tenant]
    assert layer.ended() == "Processed"
    assert outages.shown[tenant][-1] in ("Queued", "InProgress", "Processed")
    assert set(outages.shown[tenant]) <= {"Queued", "InProgress", "Processed"}
    wait_for(haste.is_idle)
    assert haste.poisoned() == 0
    assert outages.batch.created(tenant=tenant) == [layer.record["preprocessJob"]["taskId"]]


def test_the_outages_came_in_mid_job(outages: Outages) -> None:
    """Else the tests above would prove nothing."""
    for tenant in (STORAGE, BATCH):
        assert outages.shown[tenant][0] == "InProgress"
    assert outages.shown[BUSY][0] == "Queued"
