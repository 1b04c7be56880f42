"""Every operation answers with exactly the status code of Azure's; what takes time shows that it is under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from local.batch.routes import ROUTES
from tests.batch_conformance.wire import POOL, Wire, account


@dataclass(frozen=True)
class Case:
    """One operation that succeeds. `{node}` in a path or body stands for the id of a node."""

    operation: str
    status: int
    method: str
    path: str
    body: Any = None

    def __str__(self) -> str:
        return self.operation


_FORMULA = {"autoScaleFormula": "$TargetLowPriorityNodes = 1;"}
_NODE, _TASK, _FILE = f"/pools/{POOL}/nodes/{{node}}", "/jobs/job/tasks/task", "/jobs/job/tasks/task/files/stdout.txt"
_CONSTRAINTS = {"constraints": {"maxTaskRetryCount": 1}}

CASES = [
    Case("list_pools", 200, "GET", "/pools"),
    Case("create_pool", 201, "POST", "/pools", {"id": "new", "vmSize": "standard_d2s_v3"}),
    Case("get_pool", 200, "GET", f"/pools/{POOL}"),
    Case("pool_exists", 200, "HEAD", f"/pools/{POOL}"),
    Case("update_pool", 200, "PATCH", f"/pools/{POOL}", {"metadata": []}),
    Case("delete_pool", 202, "DELETE", f"/pools/{POOL}"),
    Case("resize_pool", 202, "POST", f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 2}),
    Case("stop_pool_resize", 202, "POST", "/pools/growing/stopresize"),
    Case("enable_pool_auto_scale", 200, "POST", f"/pools/{POOL}/enableautoscale", _FORMULA),
    Case("disable_pool_auto_scale", 200, "POST", "/pools/auto/disableautoscale"),
    Case("evaluate_pool_auto_scale", 200, "POST", "/pools/auto/evaluateautoscale", _FORMULA),
    Case("remove_nodes", 202, "POST", f"/pools/{POOL}/removenodes", {"nodeList": ["{node}"]}),
    Case(
        "replace_pool_properties",
        204,
        "POST",
        f"/pools/{POOL}/updateproperties",
        {"applicationPackageReferences": [], "metadata": []},
    ),
    Case("list_pool_node_counts", 200, "GET", "/nodecounts"),
    Case("list_supported_images", 200, "GET", "/supportedimages"),
    Case("list_nodes", 200, "GET", f"/pools/{POOL}/nodes"),
    Case("get_node", 200, "GET", _NODE),
    Case("disable_node_scheduling", 200, "POST", f"{_NODE}/disablescheduling"),
    Case("enable_node_scheduling", 200, "POST", "/pools/closed/nodes/{closed}/enablescheduling"),
    Case("reboot_node", 202, "POST", f"{_NODE}/reboot"),
    Case("reimage_node", 202, "POST", f"{_NODE}/reimage"),
    Case("deallocate_node", 202, "POST", f"{_NODE}/deallocate"),
    Case("start_node", 202, "POST", "/pools/off/nodes/{off}/start"),
    Case("list_jobs", 200, "GET", "/jobs"),
    Case("create_job", 201, "POST", "/jobs", {"id": "new", "poolInfo": {"poolId": POOL}}),
    Case("get_job", 200, "GET", "/jobs/job"),
    Case("update_job", 200, "PATCH", "/jobs/job", {"priority": 1}),
    Case("replace_job", 200, "PUT", "/jobs/job", {"poolInfo": {"poolId": POOL}}),
    Case("delete_job", 202, "DELETE", "/jobs/job"),
    Case("disable_job", 202, "POST", "/jobs/job/disable", {"disableTasks": "wait"}),
    Case("enable_job", 202, "POST", "/jobs/off/enable"),
    Case("terminate_job", 202, "POST", "/jobs/job/terminate"),
    Case("get_job_task_counts", 200, "GET", "/jobs/job/taskcounts"),
    Case("list_tasks", 200, "GET", "/jobs/job/tasks"),
    Case("create_task", 201, "POST", "/jobs/job/tasks", {"id": "new", "commandLine": "program"}),
    Case("create_task_collection", 200, "POST", "/jobs/job/addtaskcollection", {"value": []}),
    Case("get_task", 200, "GET", _TASK),
    Case("list_subtasks", 200, "GET", f"{_TASK}/subtasksinfo"),
    Case("replace_task", 200, "PUT", _TASK, _CONSTRAINTS),
    Case("delete_task", 200, "DELETE", _TASK),
    Case("terminate_task", 204, "POST", f"{_TASK}/terminate"),
    Case("reactivate_task", 204, "POST", "/jobs/job/tasks/failed/reactivate"),
    Case("list_task_files", 200, "GET", f"{_TASK}/files"),
    Case("get_task_file", 200, "GET", _FILE),
    Case("get_task_file_properties", 200, "HEAD", _FILE),
    Case("delete_task_file", 200, "DELETE", _FILE),
]
#: Jobs that have what it lists are refused.
_WITHOUT_SUCCESS = {"list_job_preparation_and_release_task_status"}
#: What the cases need besides the pool: a pool that scales itself, one with a closed node, one with a stopped node.
_MORE_POOLS = ("closed", "off")


def _prepare(wire: Wire) -> dict[str, str]:
    """Resources in every state that some operation wants; the ids of their nodes."""
    wire.job()
    wire.task("failed")
    wire.end("failed", 1)
    wire.task()
    wire.job("off")
    wire.done("POST", "/jobs/off/disable", {"disableTasks": "requeue"})
    pool = {"vmSize": "standard_d2s_v3"}
    for name in _MORE_POOLS:
        wire.done("POST", "/pools", pool | {"id": name, "targetDedicatedNodes": 1})
    wire.done("POST", "/pools", pool | _FORMULA | {"id": "auto", "enableAutoScale": True})
    wire.advance(60)
    nodes = {name: str(wire.list(f"/pools/{name}/nodes")[0]["id"]) for name in _MORE_POOLS}
    nodes["node"] = str(wire.list(f"/pools/{POOL}/nodes")[0]["id"])
    wire.done("POST", "/pools", pool | {"id": "growing", "targetDedicatedNodes": 1})
    return nodes


def _filled(value: Any, nodes: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, node in nodes.items():
            value = value.replace(f"{{{name}}}", node)
    elif isinstance(value, dict):
        value = {name: _filled(entry, nodes) for name, entry in value.items()}
    elif isinstance(value, list):
        value = [_filled(entry, nodes) for entry in value]
    return value


def test_every_operation_that_the_emulator_has_is_here(wire: Wire) -> None:
    operations = {route.operation: route for route in ROUTES}
    absent = {
        name
        for name, route in operations.items()
        if wire.send(route.method, route.template.replace("{", "").replace("}", "")).status == 501
    }

    assert {case.operation for case in CASES} == set(operations) - absent - _WITHOUT_SUCCESS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_status_of_success(case: Case) -> None:
    with account(nodes=2) as wire:
        nodes = _prepare(wire)
        if case.operation == "enable_node_scheduling":
            wire.done("POST", f"/pools/closed/nodes/{nodes['closed']}/disablescheduling")
        if case.operation == "start_node":
            wire.done("POST", f"/pools/off/nodes/{nodes['off']}/deallocate")
            wire.advance(60)

        answer = wire.send(case.method, _filled(case.path, nodes), _filled(case.body, nodes))

    assert answer.status == case.status, answer.body
    assert answer.headers["request-id"]
    assert answer.headers["DataServiceVersion"] == "3.0"


def test_a_part_of_a_file_is_200_not_206(wire: Wire) -> None:
    wire.job()
    wire.task()
    wire.write("wd/log", b"0123456789")

    answer = wire.send("GET", "/jobs/job/tasks/task/files/wd%2Flog", headers={"ocp-range": "bytes=2-4"})

    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, b"234", "3")


@pytest.mark.parametrize(
    ("path", "body", "between", "after"),
    [
        ("/jobs/job/disable", {"disableTasks": "requeue"}, "disabling", "disabled"),
        ("/jobs/job/terminate", None, "terminating", "completed"),
        ("/jobs/off/enable", None, "enabling", "active"),
    ],
)
def test_what_happens_to_a_job_takes_as_long_as_the_world_says(path: str, body: Any, between: str, after: str) -> None:
    with account(timings={"job_action_seconds": 30}) as wire:
        wire.job()
        wire.job("off")
        wire.done("POST", "/jobs/off/disable", {"disableTasks": "wait"})
        wire.advance(30)

        assert wire.done("POST", path, body).status == 202

        job = path.rpartition("/")[0]
        assert wire.state(job) == between
        wire.advance(29)
        assert wire.state(job) == between
        wire.advance(1)
        assert wire.state(job) == after


@pytest.mark.parametrize("path", ["/jobs/job", f"/pools/{POOL}"])
def test_deleting_takes_as_long_as_the_world_says(path: str) -> None:
    with account(timings={"job_delete_seconds": 30, "pool_delete_seconds": 30}) as wire:
        wire.job()

        assert wire.done("DELETE", path).status == 202

        assert wire.state(path) == "deleting"
        wire.advance(29)
        assert wire.state(path) == "deleting"
        wire.advance(1)
        assert wire.send("GET", path).status == 404


def test_resizing_takes_as_long_as_the_world_says() -> None:
    with account(timings={"resize_seconds": 30}) as wire:
        wire.done("POST", f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 2})

        assert wire.get(f"/pools/{POOL}")["allocationState"] == "resizing"
        wire.advance(29)
        assert wire.get(f"/pools/{POOL}")["allocationState"] == "resizing"
        wire.advance(1)
        pool = wire.get(f"/pools/{POOL}")
        assert (pool["allocationState"], pool["currentLowPriorityNodes"]) == ("steady", 2)
