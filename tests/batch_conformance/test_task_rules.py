"""What Azure documents about tasks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.batch_conformance.wire import POOL, Wire, account


def _counters(wire: Wire) -> tuple[int, int]:
    info = wire.info()
    return info["retryCount"], info["requeueCount"]


def test_retries_are_for_programs_that_fail_and_only_they_are_counted_as_such(wire: Wire) -> None:
    wire.job()
    wire.task(constraints={"maxTaskRetryCount": 2})

    wire.end(end=3)
    assert (_counters(wire), wire.state()) == ((1, 0), "running")
    assert wire.info()["lastRetryTime"]
    wire.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 0})
    wire.advance(0)
    assert (_counters(wire), wire.state()) == ((1, 0), "running")
    wire.end(end=3)
    assert _counters(wire) == (2, 0)
    wire.end(end=3)

    info = wire.info()
    assert (wire.state(), info["retryCount"], info["exitCode"], info["result"]) == ("completed", 2, 3, "failure")
    assert info["failureInfo"]["code"] == "FailureExitCode"


def test_a_program_that_succeeds_is_not_tried_again(wire: Wire) -> None:
    wire.job()
    wire.task(constraints={"maxTaskRetryCount": -1})

    wire.end()

    assert (wire.state(), _counters(wire), wire.info()["result"]) == ("completed", (0, 0), "success")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/jobs/job/disable", {"disableTasks": "requeue"}),
        (f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 0, "nodeDeallocationOption": "requeue"}),
        (f"/pools/{POOL}/removenodes", {"nodeList": ["{node}"], "nodeDeallocationOption": "requeue"}),
        (f"/pools/{POOL}/nodes/{{node}}/disablescheduling", {"nodeDisableSchedulingOption": "requeue"}),
        (f"/pools/{POOL}/nodes/{{node}}/reboot", {"nodeRebootOption": "requeue"}),
    ],
)
def test_a_user_who_puts_a_task_back_is_counted(path: str, body: dict[str, Any]) -> None:
    with account(pool={"start_seconds": 60}) as wire:
        wire.advance(60)
        wire.job()
        wire.task()
        node = wire.list(f"/pools/{POOL}/nodes")[0]["id"]
        if "nodeList" in body:
            body = body | {"nodeList": [node]}

        wire.done("POST", path.replace("{node}", node), body)

        assert _counters(wire) == (0, 1)
        assert wire.info()["lastRequeueTime"]
        task = wire.get("/jobs/job/tasks/task")
        assert (task["state"], task["previousState"]) == ("active", "running")


@pytest.mark.parametrize(("code", "state"), [(3, "terminating"), (7, "disabling"), (1, "active")])
def test_exit_conditions_choose_what_happens_to_the_job(wire: Wire, code: int, state: str) -> None:
    wire.job(onTaskFailure="performexitoptionsjobaction")
    conditions = {
        "exitCodes": [{"code": 3, "exitOptions": {"jobAction": "terminate"}}],
        "exitCodeRanges": [{"start": 5, "end": 9, "exitOptions": {"jobAction": "disable"}}],
        "default": {"jobAction": "none"},
    }
    wire.task(exitConditions=conditions)

    wire.end(end=code)

    assert wire.state("/jobs/job") == state


def test_an_exit_condition_needs_a_job_that_looks_at_it(wire: Wire) -> None:
    wire.job()
    body = {"id": "task", "commandLine": "x", "exitConditions": {"default": {"jobAction": "terminate"}}}

    assert wire.send("POST", "/jobs/job/tasks", body).refusal == (400, "InvalidPropertyValue")


def test_the_wall_clock_ends_a_task_that_runs_too_long(wire: Wire) -> None:
    wire.job()
    wire.task(constraints={"maxWallClockTime": "PT1H"})

    wire.advance(3599)
    assert wire.state() == "running"
    wire.advance(1)

    info = wire.info()
    assert (wire.state(), info["result"], info["failureInfo"]["code"]) == ("completed", "failure", "TaskEnded")


def test_only_a_failed_task_of_an_open_job_can_be_reactivated() -> None:
    with account(slots=3) as wire:
        wire.job()
        for name in ("good", "bad", "more"):
            wire.task(name, constraints={"maxTaskRetryCount": 1})
        _reactivate_each(wire)


def _reactivate_each(wire: Wire) -> None:

    def reactivate(task: str) -> Any:
        return wire.send("POST", f"/jobs/job/tasks/{task}/reactivate")

    assert reactivate("good").refusal == (409, "TaskNotCompleted")
    wire.end("good")
    assert reactivate("good").refusal == (409, "TaskSucceeded")
    wire.end("bad", 1)
    wire.end("bad", 1)
    assert wire.info("bad")["retryCount"] == 1
    assert reactivate("bad").status == 204
    info = wire.info("bad")
    assert (info["retryCount"], "exitCode" in info, "failureInfo" in info) == (0, False, False)
    wire.end("more", 1)
    wire.end("more", 1)
    wire.done("POST", "/jobs/job/terminate")
    wire.advance(1)
    assert reactivate("more").refusal == (409, "JobCompleted")


def test_a_collection_answers_for_each_of_its_tasks(wire: Wire) -> None:
    wire.job()
    wire.task("old")
    tasks = [{"id": "old", "commandLine": "x"}, {"id": "a b", "commandLine": "x"}, {"id": "new", "commandLine": "x"}]

    answer = wire.send("POST", "/jobs/job/addtaskcollection", {"value": tasks})

    assert answer.status == 200
    results = {result["taskId"]: result for result in answer.json()["value"]}
    assert {task: result["status"] for task, result in results.items()} == {
        "old": "clienterror",
        "a b": "clienterror",
        "new": "success",
    }
    assert results["old"]["error"]["code"] == "TaskExists"
    assert results["old"]["error"]["message"]["lang"] == "en-US"
    assert results["a b"]["error"]["code"] == "InvalidPropertyValue"
    assert set(results["new"]) == {"taskId", "status", "eTag", "lastModified", "location"}
    assert results["new"]["location"] == f"{wire.endpoint}/jobs/job/tasks/new"


def test_a_collection_holds_a_hundred_tasks_and_a_megabyte(wire: Wire) -> None:
    wire.job()

    def add(count: int, text: str = "x") -> Any:
        tasks = [{"id": f"t{number}", "commandLine": text} for number in range(count)]
        return wire.send("POST", "/jobs/job/addtaskcollection", {"value": tasks})

    assert add(101).status == 400
    assert add(50, "x" * 30000).refusal == (413, "RequestBodyTooLarge")
    assert wire.list("/jobs/job/tasks") == []
    assert add(100).status == 200


def test_a_task_that_no_node_has_the_slots_for_is_taken_and_waits() -> None:
    with account(slots=2) as wire:
        wire.job()
        wire.task("big", requiredSlots=3)
        wire.task()

        wire.advance(30 * 86400)

        assert (wire.state("/jobs/job/tasks/big"), wire.state()) == ("active", "running")
