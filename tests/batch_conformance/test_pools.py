"""How pools get and give back nodes, by hand and by formula."""

from __future__ import annotations

from typing import Any

import pytest

from tests.batch_conformance.wire import POOL, Wire, account

_SHORT = {"errors": [{"code": "AllocationFailed", "message": "no machines"}]}


def _allocation(wire: Wire, pool: str = POOL) -> str:
    return str(wire.get(f"/pools/{pool}")["allocationState"])


def _errors(wire: Wire) -> list[str]:
    return [error["code"] for error in wire.get(f"/pools/{POOL}").get("resizeErrors", [])]


def _resize(wire: Wire, nodes: int, **options: Any) -> Any:
    return wire.send("POST", f"/pools/{POOL}/resize", {"targetLowPriorityNodes": nodes} | options)


def test_a_new_pool_resizes_first() -> None:
    with account(timings={"resize_seconds": 20, "node_start_seconds": 10}) as wire:
        wire.done("POST", "/pools", {"id": "new", "vmSize": "standard_d2s_v3", "targetDedicatedNodes": 1})

        assert _allocation(wire, "new") == "resizing"
        wire.advance(20)
        assert _allocation(wire, "new") == "steady"
        assert [node["state"] for node in wire.list("/pools/new/nodes")] == ["creating"]
        wire.advance(10)
        assert [node["state"] for node in wire.list("/pools/new/nodes")] == ["idle"]


def test_a_resize_is_refused_while_another_goes_on(wire: Wire) -> None:
    assert _resize(wire, 2).status == 202

    assert _resize(wire, 3).refusal == (409, "PoolBeingResized")
    enable = wire.send("POST", f"/pools/{POOL}/enableautoscale", {"autoScaleFormula": "$TargetDedicatedNodes = 0;"})
    assert enable.refusal == (409, "PoolBeingResized")
    wire.advance(1)
    assert _resize(wire, 3).status == 202


def test_a_resize_that_waits_for_tasks_blocks_others_until_it_is_stopped(wire: Wire) -> None:
    wire.job()
    wire.task()
    assert _resize(wire, 0, nodeDeallocationOption="taskcompletion").status == 202
    wire.advance(600)
    assert _allocation(wire) == "resizing"
    assert _resize(wire, 1).refusal == (409, "PoolBeingResized")

    wire.done("POST", f"/pools/{POOL}/stopresize")

    assert _allocation(wire) == "stopping"
    wire.advance(1)
    assert (_allocation(wire), _errors(wire), wire.state()) == ("steady", ["ResizeStopped"], "running")


@pytest.mark.parametrize(("option", "state"), [("requeue", "active"), ("terminate", "completed")])
def test_what_shrinking_does_to_running_tasks(wire: Wire, option: str, state: str) -> None:
    wire.job()
    wire.task()

    _resize(wire, 0, nodeDeallocationOption=option)
    wire.advance(1)

    assert (wire.state(), wire.list(f"/pools/{POOL}/nodes")) == (state, [])


def test_retaineddata_is_as_taskcompletion(wire: Wire) -> None:
    wire.job()
    wire.task()

    _resize(wire, 0, nodeDeallocationOption="retaineddata")
    wire.advance(600)

    assert (_allocation(wire), wire.state()) == ("resizing", "running")
    wire.end()
    assert (_allocation(wire), wire.list(f"/pools/{POOL}/nodes")) == ("steady", [])


def test_resize_errors_stay_until_the_next_resize(wire: Wire) -> None:
    wire.admin("PUT", f"/pools/{POOL}/resize-errors", _SHORT | {"now": False})
    assert _errors(wire) == []

    _resize(wire, 3)
    assert _errors(wire) == []
    wire.advance(1)
    assert (_allocation(wire), _errors(wire)) == ("steady", ["AllocationFailed"])
    wire.advance(7 * 86400)
    assert _errors(wire) == ["AllocationFailed"]
    pool = wire.get(f"/pools/{POOL}")
    assert (pool["targetLowPriorityNodes"], pool["currentLowPriorityNodes"]) == (3, 1)
    wire.admin("PUT", f"/pools/{POOL}/resize-errors", {"errors": [], "now": False})
    assert _errors(wire) == ["AllocationFailed"]
    _resize(wire, 2)
    wire.advance(1)

    assert (_errors(wire), wire.get(f"/pools/{POOL}")["currentLowPriorityNodes"]) == ([], 2)


def test_node_counts_tell_preempted_nodes_from_others() -> None:
    with account(nodes=3) as wire:
        wire.job()
        wire.task()
        wire.task("second")
        wire.admin("POST", f"/pools/{POOL}/nodes/any-running/preempt", {"return_after_seconds": None})

        (counts,) = wire.list("/nodecounts", _filter=f"poolId eq '{POOL}'")

        low = counts["lowPriority"]
        assert (low["running"], low["idle"], low["preempted"], low["total"]) == (2, 0, 1, 3)
        states = {"creating", "idle", "offline", "preempted", "rebooting", "reimaging", "running", "starting", "total"}
        states |= {"startTaskFailed", "leavingPool", "unknown", "unusable", "waitingForStartTask"}
        assert states <= set(low)
        assert counts["dedicated"]["total"] == 0


def test_a_formula_is_evaluated_when_it_is_enabled_and_at_every_interval(wire: Wire) -> None:
    formula = "$TargetDedicatedNodes = 0; $TargetLowPriorityNodes = 1 + 2; $NodeDeallocationOption = taskcompletion;"
    body = {"autoScaleFormula": formula, "autoScaleEvaluationInterval": "PT5M"}

    wire.done("POST", f"/pools/{POOL}/enableautoscale", body)
    wire.advance(1)

    first = wire.get(f"/pools/{POOL}")
    assert (first["enableAutoScale"], first["autoScaleFormula"]) == (True, formula)
    assert (first["targetDedicatedNodes"], first["targetLowPriorityNodes"]) == (0, 3)
    parts = first["autoScaleRun"]["results"].split(";")
    expected = ["$TargetDedicatedNodes=0", "$TargetLowPriorityNodes=3", "$NodeDeallocationOption=taskcompletion"]
    assert parts[:3] == expected
    wire.advance(299)
    assert wire.get(f"/pools/{POOL}")["autoScaleRun"]["timestamp"] > first["autoScaleRun"]["timestamp"]
    assert _resize(wire, 1).status == 409


def test_a_formula_follows_the_tasks() -> None:
    formula = (
        "window = 2 * TimeInterval_Minute;"
        "tasks = $PendingTasks.GetSamplePercent(window) < 1 ? 0 : max(0, $PendingTasks.GetSample(1));"
        "$TargetLowPriorityNodes = min(3, tasks);"
        "$NodeDeallocationOption = taskcompletion;"
    )
    with account(nodes=0) as wire:
        body = {"autoScaleFormula": formula, "autoScaleEvaluationInterval": "PT5M"}
        wire.done("POST", f"/pools/{POOL}/enableautoscale", body)
        wire.job()
        wire.task()
        wire.task("second")

        wire.advance(900)

        assert wire.get(f"/pools/{POOL}")["targetLowPriorityNodes"] == 2
        assert (wire.state(), wire.state("/jobs/job/tasks/second")) == ("running", "running")
        wire.end()
        wire.end("second")
        wire.advance(900)
        assert wire.get(f"/pools/{POOL}")["currentLowPriorityNodes"] == 0


def test_a_formula_without_samples_fails_in_a_200_and_leaves_the_targets() -> None:
    with account(nodes=2) as wire:
        body = {"autoScaleFormula": "$TargetLowPriorityNodes = 2;", "autoScaleEvaluationInterval": "PT5M"}
        wire.done("POST", f"/pools/{POOL}/enableautoscale", body)

        run = wire.done(
            "POST",
            f"/pools/{POOL}/evaluateautoscale",
            {"autoScaleFormula": "$TargetLowPriorityNodes = avg($PendingTasks.GetSample(TimeInterval_Hour, 90));"},
        ).json()

        assert run["error"]["code"] == "InsufficientSampleData"
        (value,) = run["error"]["values"]
        assert "$PendingTasks wanted 90%, received 0%" in value["value"]
        assert wire.get(f"/pools/{POOL}")["targetLowPriorityNodes"] == 2


def test_auto_scale_is_enabled_at_most_every_30_seconds(wire: Wire) -> None:
    body = {"autoScaleFormula": "$TargetLowPriorityNodes = 1;"}
    path = f"/pools/{POOL}/enableautoscale"
    wire.done("POST", path, body)
    wire.advance(10)

    assert wire.send("POST", path, body).refusal == (503, "TooManyEnableAutoScaleRequests")
    wire.advance(20)
    assert wire.send("POST", path, body).status == 200


@pytest.mark.parametrize(
    ("quotas", "kind", "code"),
    [
        ({"dedicated_cores": 7}, "Dedicated", "AccountCoreQuotaReached"),
        ({"family_cores": {"standardDSv3Family": 7}}, "Dedicated", "AccountVMSeriesCoreQuotaReached"),
        ({"low_priority_cores": 7}, "LowPriority", "AccountLowPriorityCoreQuotaReached"),
    ],
)
def test_core_quotas_limit_what_a_pool_gets(quotas: dict[str, Any], kind: str, code: str) -> None:
    with account(nodes=0, quotas=quotas) as wire:
        for pool, nodes in (("first", 2), ("second", 2)):
            body = {"id": pool, "vmSize": "standard_d2s_v3", f"target{kind}Nodes": nodes}
            wire.done("POST", "/pools", body)
            wire.advance(60)

        first, second = wire.get("/pools/first"), wire.get("/pools/second")

        assert (first[f"current{kind}Nodes"], first.get("resizeErrors")) == (2, None)
        assert (second[f"target{kind}Nodes"], second[f"current{kind}Nodes"]) == (2, 1)
        assert [error["code"] for error in second["resizeErrors"]] == [code]


@pytest.mark.parametrize(
    ("outcome", "seconds", "code"), [("fail", 1, "AllocationFailed"), ("timeout", 600, "AllocationTimedout")]
)
def test_an_allocation_may_end_before_its_target(wire: Wire, outcome: str, seconds: float, code: str) -> None:
    wire.admin("PUT", f"/pools/{POOL}/allocations", {"allocations": [{"outcome": outcome, "nodes": 1}]})

    _resize(wire, 4, resizeTimeout="PT10M")

    wire.advance(seconds - 1)
    assert _allocation(wire) == "resizing"
    wire.advance(1)
    assert (_allocation(wire), _errors(wire)) == ("steady", [code])
    assert wire.get(f"/pools/{POOL}")["currentLowPriorityNodes"] == 2
    _resize(wire, 3)
    wire.advance(1)
    assert (_errors(wire), wire.get(f"/pools/{POOL}")["currentLowPriorityNodes"]) == ([], 3)
