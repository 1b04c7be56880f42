"""A training loses its node, while it fetches its inputs or in mid-run, with and without another pool to go to.

Each case has a tenant of its own, so that all can be lived through at the same time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from local.certificates import Certificates
from local.stack import Stack, running_stack
from local.stack.world import default_world
from tests.support.gate import Gate, Matching
from tests.support.outside import BatchAccount, Haste, most_live, wait_for
from tests.support.stacks import options, training_image

TASK_SECONDS = 8.0
NODE_IS_BACK_AFTER_SECONDS = 5.0
OTHER = "t4-pool"
FAILING_IMAGE = "haste.azurecr.io/training:failing"

MOVES = ("movesload", "movesrun")
STAYS = ("staysload", "staysrun")
FAILS = "fails"
TENANTS = (*MOVES, *STAYS, FAILS)
#: A pool of one node for each, so that a lost task does not just start on another node of its pool.
POOLS: Mapping[str, str] = {tenant: f"{tenant}-pool" for tenant in TENANTS}
TASK_INPUT = Matching("GET", r"/trn-[^/]+/inputs/")


def world(folder: Path) -> dict[str, Any]:
    """Nodes for all, and an image whose program exits with 1."""
    made = default_world(TASK_SECONDS)
    failing = {FAILING_IMAGE: training_image(folder, HASTE_LOCAL_FAIL="1")}
    pools = [{"id": pool, "targetLowPriorityNodes": 1} for pool in POOLS.values()]
    pools.append({"id": OTHER, "targetLowPriorityNodes": len(TENANTS)})
    return made | {"pools": pools, "images": made["images"] | failing}


class Preempted:
    """One training per tenant; all but one have lost their node once."""

    def __init__(self, stack: Stack, gate: Gate) -> None:
        self.batch = BatchAccount(stack)
        self.hastes = {tenant: Haste(stack, tenant) for tenant in TENANTS}
        layers = {tenant: haste.new_layer() for tenant, haste in self.hastes.items()}
        assert {layer.ended() for layer in layers.values()} == {"Processed"}
        loading = [tenant for tenant in TENANTS if tenant.endswith("load")]
        with contextlib.ExitStack() as held:
            holds = [held.enter_context(gate.door(tenant, "blob").hold(TASK_INPUT, "before")) for tenant in loading]
            self.models = {tenant: self.hastes[tenant].new_model(layers[tenant]) for tenant in TENANTS}
            for tenant, hold in zip(loading, holds, strict=True):
                hold.wait()
                self._preempt(tenant)
        for tenant in ("movesrun", "staysrun"):
            wait_for(lambda tenant=tenant: self.models[tenant].record["currentStep"])  # type: ignore[misc]
            self._preempt(tenant)

    def _preempt(self, tenant: str) -> None:
        task = self.batch.created(tenant=tenant, prefix="trn-")[0]
        back_after = NODE_IS_BACK_AFTER_SECONDS if tenant in STAYS else None
        self.batch.preempt(task, return_after_seconds=back_after)


@pytest.fixture(scope="module")
def preempted(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preempted]:
    def adjust(tenant: str, settings: dict[str, str]) -> dict[str, str]:
        settings = gate.settings(tenant, settings)
        own = POOLS[tenant]
        settings["AZURE_BATCH_IMAGERYPREP_POOL_IDS"] = OTHER
        settings["AZURE_BATCH_TRAINING_POOL_IDS"] = own if tenant in STAYS else f"{own},{OTHER}"
        if tenant == FAILS:
            settings["AZURE_BATCH_DOCKER_IMAGE"] = FAILING_IMAGE
        return settings

    made = options(
        tmp_path_factory.mktemp("run"),
        certificates,
        tenants=TENANTS,
        world=world(tmp_path_factory.mktemp("failing-image")),
        adjust=adjust,
    )
    with Gate(certificates) as gate, running_stack(made) as running:
        yield Preempted(running.stack, gate)


@pytest.mark.parametrize("tenant", MOVES)
def test_it_moves_to_another_pool_that_is_free(preempted: Preempted, tenant: str) -> None:
    batch, model = preempted.batch, preempted.models[tenant]
    assert model.ended() == "Processed"
    wait_for(preempted.hastes[tenant].is_idle)

    first, second = batch.created(tenant=tenant, prefix="trn-")
    assert model.record["trainingJob"]["taskId"] == second
    assert "moving to other hardware" in model.record["statusMessage"]
    assert [event["pool"] for event in batch.events("task_started", task=first)] == [POOLS[tenant]]
    assert [event["pool"] for event in batch.events("task_started", task=second)] == [OTHER]
    assert len(batch.events("run_lost", task=first)) == 1

    ended, added = batch.events("task_completed", task=first), batch.events("task_created", task=second)
    assert ended[0]["seq"] < added[0]["seq"]
    assert (ended[0]["result"], ended[0]["code"]) == ("failure", "TaskEnded")
    assert batch.events("task_deleted", tenant=tenant) == []
    assert most_live(batch.events("task_created", "task_completed", tenant=tenant), [first, second]) == 1


@pytest.mark.parametrize("tenant", STAYS)
def test_without_another_pool_it_waits_for_batch_to_run_it_again(preempted: Preempted, tenant: str) -> None:
    batch, model = preempted.batch, preempted.models[tenant]
    assert model.ended() == "Processed"

    (task,) = batch.created(tenant=tenant, prefix="trn-")
    assert model.record["trainingJob"]["taskId"] == task
    assert len(re.findall(r"Interrupted( after \d+ min)?, waiting to run again", model.record["statusMessage"])) == 1
    starts = batch.events("task_started", task=task)
    assert [event["pool"] for event in starts] == [POOLS[tenant]] * 2
    assert len({event["node"] for event in starts}) == 1
    assert len(batch.events("run_lost", task=task)) == 1


def test_a_program_that_fails_has_failed_and_is_not_tried_elsewhere(preempted: Preempted) -> None:
    batch, model = preempted.batch, preempted.models[FAILS]
    assert model.ended() == "Failed"
    wait_for(preempted.hastes[FAILS].is_idle)

    (task,) = batch.created(tenant=FAILS, prefix="trn-")  # although the other pool is free
    assert len(batch.events("task_started", task=task)) == 1
    assert batch.events("task_completed", task=task)[0]["exit_code"] == 1
    assert "Interrupted" not in model.record["statusMessage"]
    assert "exit code 1" in model.record["statusMessage"]
