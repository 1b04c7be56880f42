"""The emulator's own routes."""

import json
from typing import Any

import pytest
from azure.batch import BatchClient, models

from local.batch import RealClock, World
from tests.batch_emulator.support import POOL, make_client, make_job, make_task, states


def _admin(world: World, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Any:
    content = b"" if body is None else json.dumps(body).encode()
    response = world.handle(method, f"/admin{path}", query, {}, content)
    assert response.status == 200, response.body
    return response.json()["result"]


@pytest.fixture(autouse=True)
def task(client: BatchClient) -> None:
    make_job(client)
    make_task(client)


def test_preempting_a_task_s_node_and_bringing_it_back(client: BatchClient, world: World) -> None:
    node = _admin(world, "POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": None})["node"]
    assert states(client) == {"task": "active"}

    assert _admin(world, "POST", f"/pools/{POOL}/nodes/{node}/return") == {"returned": True}

    assert states(client) == {"task": "running"}
    assert _admin(world, "POST", f"/pools/{POOL}/nodes/any-running/preempt") == {"node": node}
    assert states(client) == {"task": "active"}


def test_a_stuck_task_is_noticed(client: BatchClient, world: World) -> None:
    _admin(world, "POST", "/jobs/job/tasks/task/preempt", {"stuck": True, "return_after_seconds": None})
    assert states(client) == {"task": "running"}

    _admin(world, "POST", "/jobs/job/tasks/task/notice")

    assert states(client) == {"task": "active"}


def test_capacity_and_resize_errors(client: BatchClient, world: World) -> None:
    _admin(world, "PUT", f"/pools/{POOL}/capacity", {"low_priority_available": 0})
    _admin(world, "PUT", f"/pools/{POOL}/resize-errors", {"errors": [{"code": "AllocationFailed", "message": "m"}]})

    assert [error.code for error in client.get_pool(POOL).resize_errors or ()] == ["AllocationFailed"]
    assert world.pool(POOL).low_priority_available == 0


def test_faults_come_and_go(world: World) -> None:
    _admin(world, "POST", "/faults", [{"status": 503}, {"code": "InternalError", "times": 1}])
    assert [rule["status"] for rule in _admin(world, "GET", "/faults")] == [503, 0]
    _admin(world, "DELETE", "/faults")
    assert _admin(world, "GET", "/faults") == []


def test_task_bodies_are_shown_to_tests(client: BatchClient, world: World) -> None:
    body = _admin(world, "GET", "/jobs/job/tasks/task/body")

    assert body == {"id": "task", "commandLine": "program"}


def test_events_can_be_followed(client: BatchClient, world: World) -> None:
    seen = _admin(world, "GET", "/events")
    make_task(client, "second")

    new = _admin(world, "GET", "/events", query={"after": str(seen[-1]["seq"])})

    assert [entry["event"] for entry in new] == ["task_created", "request"]


def test_time_moves_on_a_manual_clock_only(world: World) -> None:
    before = world.now
    _admin(world, "POST", "/advance", {"seconds": 30})
    assert (world.now - before).total_seconds() == 30

    real = World(clock=RealClock())
    assert real.handle("POST", "/admin/advance", {}, {}, b'{"seconds": 1}').status == 400


def test_reset_goes_back_to_the_world_file(client: BatchClient, world: World) -> None:
    _admin(world, "POST", "/faults", {"status": 503})
    events = len(world.events.entries)

    _admin(world, "POST", "/reset")

    assert list(client.list_jobs()) == []
    assert [node.state for node in client.list_nodes(POOL)] == ["idle"]
    assert len(world.events.entries) > events
    make_job(client)
    make_task(client)
    assert states(make_client(world)) == {"task": "running"}


def test_the_world_at_a_glance(world: World) -> None:
    shown = _admin(world, "GET", "/world")

    assert [pool["id"] for pool in shown["pools"]] == [POOL]
    assert shown["tasks"] == [{"job": "job", "task": "task", "state": "running", "result": None}]
    assert len(shown["nodes"][0]["runs"]) == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/admin/nothing", b"", 404),
        ("POST", "/admin/faults", b"{", 400),
        ("POST", "/admin/faults", b'{"colour": 1}', 400),
        ("PUT", f"/admin/pools/{POOL}/capacity", b"{}", 400),
        ("POST", "/admin/jobs/none/tasks/none/preempt", b"", 404),
        ("POST", "/admin/jobs/job/tasks/task/preempt", b'{"colour": 1}', 400),
    ],
)
def test_wrong_requests_are_refused(world: World, method: str, path: str, body: bytes, status: int) -> None:
    assert world.handle(method, path, {}, {}, body).status == status


def test_how_the_next_growth_goes(client: BatchClient, world: World) -> None:
    _admin(world, "PUT", f"/pools/{POOL}/allocations", {"allocations": [{"outcome": "fail", "nodes": 1}]})

    client.begin_resize_pool(POOL, models.BatchPoolResizeOptions(target_low_priority_nodes=5))
    world.advance(10)

    pool = client.get_pool(POOL)
    assert pool.current_low_priority_nodes == 2
    assert [error.code for error in pool.resize_errors or ()] == ["AllocationFailed"]
    wrong = json.dumps({"allocations": [{"outcome": "perhaps"}]}).encode()
    assert world.handle("PUT", f"/admin/pools/{POOL}/allocations", body=wrong).status == 400
