"""A low-priority node is taken away: what Azure documents, and what has been seen of it."""

from __future__ import annotations

from typing import Any

from tests.batch_conformance.wire import POOL, Wire, account


def _node(wire: Wire) -> Any:
    (node,) = wire.list(f"/pools/{POOL}/nodes")
    return node


def test_the_node_is_preempted_and_comes_back_under_its_id_with_a_new_boot_time() -> None:
    with account(pool={"start_seconds": 60}) as wire:
        wire.advance(60)
        wire.job()
        wire.task()
        wire.advance(100)
        before = _node(wire)
        assert before["state"] == "running"

        wire.admin("POST", f"/pools/{POOL}/nodes/any-running/preempt", {"return_after_seconds": 90})

        lost = _node(wire)
        assert (lost["id"], lost["state"], lost["runningTasksCount"]) == (before["id"], "preempted", 0)
        assert wire.get(f"/pools/{POOL}")["currentLowPriorityNodes"] == 1
        seen = []
        for _ in range(6):
            seen.append(_node(wire)["state"])
            wire.advance(30)
        assert seen == ["preempted", "preempted", "preempted", "creating", "starting", "running"]
        back = _node(wire)
        assert (back["id"], back["allocationTime"]) == (before["id"], before["allocationTime"])
        assert back["lastBootTime"] > before["lastBootTime"]


def test_the_node_may_pass_through_unusable(wire: Wire) -> None:
    wire.job()
    wire.task()

    wire.admin("POST", f"/pools/{POOL}/nodes/any-running/preempt", {"via_unusable_seconds": 30})

    assert _node(wire)["state"] == "unusable"
    wire.advance(29)
    assert _node(wire)["state"] == "unusable"
    wire.advance(1)
    assert _node(wire)["state"] == "preempted"
    assert wire.state() == "active"


def test_its_tasks_wait_again_with_their_counters_untouched_and_no_failure(wire: Wire) -> None:
    wire.job()
    wire.task(constraints={"maxTaskRetryCount": 0})
    before = wire.get("/jobs/job/tasks/task")
    wire.advance(100)

    wire.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 60})

    task = wire.get("/jobs/job/tasks/task")
    assert (task["state"], task["previousState"]) == ("active", "running")
    assert task["stateTransitionTime"] > before["stateTransitionTime"]
    assert task["eTag"] != before["eTag"]
    info = task["executionInfo"]
    assert (info["retryCount"], info["requeueCount"]) == (0, 0)
    assert not {"failureInfo", "result", "exitCode", "endTime", "lastRequeueTime", "lastRetryTime"} & set(info)
    wire.advance(60)
    again = wire.get("/jobs/job/tasks/task")
    assert (again["state"], again["nodeInfo"]["nodeId"]) == ("running", before["nodeInfo"]["nodeId"])
    assert again["executionInfo"]["startTime"] > before["executionInfo"]["startTime"]
    assert (again["executionInfo"]["retryCount"], again["executionInfo"]["requeueCount"]) == (0, 0)


def test_the_exit_conditions_of_a_preempted_task_do_not_act(wire: Wire) -> None:
    wire.job(onTaskFailure="performexitoptionsjobaction")
    wire.task(exitConditions={"default": {"jobAction": "terminate"}, "preProcessingError": {"jobAction": "terminate"}})

    wire.admin("POST", "/jobs/job/tasks/task/preempt")

    assert (wire.state(), wire.state("/jobs/job")) == ("active", "active")


def test_a_task_may_stick_in_running(wire: Wire) -> None:
    wire.job()
    wire.task()

    wire.admin("POST", "/jobs/job/tasks/task/preempt", {"stuck": True, "return_after_seconds": 60})

    wire.advance(3600)
    assert (wire.state(), _node(wire)["state"]) == ("running", "idle")
    assert wire.send("POST", "/jobs/job/tasks/task/terminate").status == 204
    wire.advance(3600)
    assert wire.state() == "running"
    assert wire.send("DELETE", "/jobs/job/tasks/task").status == 200
    assert wire.send("GET", "/jobs/job/tasks/task").refusal == (404, "TaskNotFound")
