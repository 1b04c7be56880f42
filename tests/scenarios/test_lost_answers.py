"""Batch does what it is asked, but the answer is an error, or none, or too late: the task is there once and runs once.

Each case has a tenant of its own, so that all can be gone through at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from local.certificates import Certificates
from local.stack import Stack, running_stack
from tests.support.outside import BatchAccount, Haste, wait_for
from tests.support.stacks import options

#: What goes wrong with the answer to adding a task, by tenant.
TASKS: Mapping[str, dict[str, Any]] = {
    "taskthen500": {"status": 500, "times": 1},
    "taskthen503": {"status": 503, "times": 2},
    "taskthennothing": {"drop_connection": True, "times": 1},
    "tasktoolate": {"delay_seconds": 22, "times": 1},  # the worker waits for 20
}
JOB = "jobthen500"
TENANTS = (*TASKS, JOB)


class LostAnswers:
    """One layer per tenant, all of them asked for."""

    def __init__(self, stack: Stack) -> None:
        self.batch = BatchAccount(stack)
        self.hastes = {tenant: Haste(stack, tenant) for tenant in TENANTS}
        for tenant, fault in TASKS.items():
            route = rf"/jobs/{tenant}-[^/]+/tasks"
            self.batch.admin("POST", "/faults", {"operation": "create_task", "route": route, "when": "after", **fault})
        self.layers = {tenant: self.hastes[tenant].new_layer() for tenant in TASKS}
        for tenant in TASKS:
            wait_for(lambda tenant=tenant: self.batch.created(tenant=tenant))  # type: ignore[misc]
        self.batch.admin("POST", "/faults", {"operation": "create_job", "status": 500, "when": "after", "times": 1})
        self.layers[JOB] = self.hastes[JOB].new_layer()


@pytest.fixture(scope="module")
def lost(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LostAnswers]:
    with running_stack(options(tmp_path_factory.mktemp("run"), certificates, tenants=TENANTS)) as running:
        yield LostAnswers(running.stack)


@pytest.mark.parametrize("tenant", TENANTS)
def test_one_task_runs_once(lost: LostAnswers, tenant: str) -> None:
    layer = lost.layers[tenant]
    assert layer.ended() == "Processed"
    wait_for(lost.hastes[tenant].is_idle)
    assert lost.batch.created(tenant=tenant) == [layer.record["preprocessJob"]["taskId"]]
    assert len(lost.batch.events("task_started", tenant=tenant)) == 1


def test_every_answer_was_lost(lost: LostAnswers) -> None:
    """Else the tests above would prove nothing."""
    for layer in lost.layers.values():
        layer.ended()
    rules = lost.batch.admin("GET", "/faults")
    assert [rule["used"] for rule in rules] == [rule["times"] for rule in rules]
    assert len(rules) == len(TENANTS)
