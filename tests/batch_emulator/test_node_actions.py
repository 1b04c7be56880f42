"""Reboot, reimage, deallocate, start, and removal of single nodes."""

from __future__ import annotations

from typing import Any

import pytest
from azure.batch import BatchClient
from azure.core.exceptions import HttpResponseError

from local.batch import World, control
from tests.batch_emulator.support import (
    POOL,
    act,
    make_client,
    make_job,
    make_task,
    make_world,
    runner_of,
    states,
    word,
)

_OPTIONS = {"reboot": "nodeRebootOption", "reimage": "nodeReimageOption", "deallocate": "nodeDeallocateOption"}
_START_SECONDS = 20


@pytest.fixture
def world() -> World:
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "start_seconds": _START_SECONDS, "return_after_seconds": None}
    world = World.from_json({"pools": [pool]})
    world.advance(_START_SECONDS)
    return world


@pytest.fixture
def client(world: World) -> BatchClient:
    return make_client(world)


def _node_id(client: BatchClient) -> str:
    return next(iter(client.list_nodes(POOL))).id


def _act(client: BatchClient, action: str, option: str = "") -> None:
    body = {_OPTIONS[action]: option} if option else None
    act(client, f"/pools/{POOL}/nodes/{_node_id(client)}/{action}", body)


def _state(client: BatchClient) -> str:
    return word(client.get_node(POOL, _node_id(client)).state)


def _code(error: HttpResponseError) -> Any:
    assert error.response
    return error.status_code, error.response.json()["code"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("action", "first"), [("reboot", "rebooting"), ("reimage", "reimaging")])
def test_a_node_is_started_anew(client: BatchClient, world: World, action: str, first: str) -> None:
    make_job(client)
    make_task(client)
    before = client.get_node(POOL, _node_id(client))
    world.advance(10)

    _act(client, action)

    assert (_state(client), states(client)) == (first, {"task": "active"})
    world.advance(_START_SECONDS / 2)
    assert _state(client) == "starting"
    world.advance(_START_SECONDS / 2)
    node = client.get_node(POOL, _node_id(client))
    assert (node.id, _state(client), states(client)) == (before.id, "running", {"task": "running"})
    assert node.last_boot_time and before.last_boot_time and node.last_boot_time > before.last_boot_time
    info = client.get_task("job", "task").execution_info
    assert info and info.requeue_count == 1


@pytest.mark.parametrize(("action", "kept"), [("reboot", True), ("reimage", False)])
def test_only_a_reboot_keeps_the_disk(client: BatchClient, world: World, action: str, kept: bool) -> None:
    make_job(client)
    make_task(client)
    runner_of(world).put_file("job", "task", "wd/result.txt", b"42")
    runner_of(world).finish("job", "task")

    _act(client, action)
    world.advance(_START_SECONDS)

    if kept:
        assert b"".join(client.download_task_file("job", "task", "wd/result.txt")) == b"42"
    else:
        with pytest.raises(HttpResponseError) as refused:
            client.list_task_files("job", "task").next()
        assert _code(refused.value) == (409, "TaskFilesUnavailable")


@pytest.mark.parametrize("action", list(_OPTIONS))
@pytest.mark.parametrize(
    ("option", "at_once", "in_the_end"),
    [("terminate", "completed", "completed"), ("taskcompletion", "running", "completed"), ("", "active", "active")],
)
def test_its_tasks_are_dealt_with_as_asked(
    client: BatchClient, world: World, action: str, option: str, at_once: str, in_the_end: str
) -> None:
    make_job(client)
    make_task(client)

    _act(client, action, option)
    world.advance(3)
    assert states(client) == {"task": at_once}
    make_task(client, "next")
    if at_once == "running":
        assert _state(client) == "running"
        runner_of(world).finish("job", "task")
    assert states(client) == {"task": in_the_end, "next": "active"}
    assert _state(client) in ("rebooting", "reimaging", "deallocating")


def test_a_deallocated_node_waits_to_be_started(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)

    _act(client, "deallocate")
    assert _state(client) == "deallocating"
    world.advance(86400)
    assert (_state(client), states(client)) == ("deallocated", {"task": "active"})
    assert client.get_pool(POOL).current_low_priority_nodes == 1
    (counts,) = client.list_pool_node_counts()
    assert counts.low_priority and counts.low_priority.deallocated == 1

    act(client, f"/pools/{POOL}/nodes/{_node_id(client)}/start")
    assert _state(client) == "starting"
    world.advance(_START_SECONDS)
    assert (_state(client), states(client)) == ("running", {"task": "running"})


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("rebooting", "NodeBeingRebooted"),
        ("reimaging", "NodeBeingReimaged"),
        ("starting", "NodeBeingStarted"),
        ("creating", "NodeBeingCreated"),
        ("unusable", "NodeStateUnusable"),
        ("preempted", "OperationInvalidForCurrentState"),
        ("deallocated", "OperationInvalidForCurrentState"),
        ("idle", ""),
        ("starttaskfailed", ""),
    ],
)
def test_what_a_node_may_be_asked_depends_on_its_state(
    client: BatchClient, world: World, state: str, code: str
) -> None:
    if state in ("rebooting", "starting"):
        _act(client, "reboot")
        world.advance(_START_SECONDS / 2 if state == "starting" else 0)
    elif state == "reimaging":
        _act(client, "reimage")
    elif state == "deallocated":
        _act(client, "deallocate")
        world.advance(_START_SECONDS)
    elif state != "idle":
        lost = "preempted" if state == "creating" else state
        control.preempt_node(world, POOL, _node_id(client), state=lost)
        if state == "creating":
            control.bring_back(world, POOL, _node_id(client))
    assert _state(client) == state

    for action in _OPTIONS:
        if code:
            with pytest.raises(HttpResponseError) as refused:
                _act(client, action)
            assert _code(refused.value) == (409, code)
    if not code:
        _act(client, "reboot")
        world.advance(_START_SECONDS)
        assert _state(client) == "idle"
    if state != "deallocated":
        with pytest.raises(HttpResponseError) as refused:
            act(client, f"/pools/{POOL}/nodes/{_node_id(client)}/start")
        assert refused.value.status_code == 409


def test_a_node_is_asked_once(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    _act(client, "reboot", "taskcompletion")

    with pytest.raises(HttpResponseError) as refused:
        _act(client, "reimage")
    assert _code(refused.value) == (409, "NodeBeingRebooted")
    control.preempt_node(world, POOL)
    control.bring_back(world, POOL, _node_id(client))
    world.advance(_START_SECONDS)
    assert (_state(client), states(client)) == ("running", {"task": "running"})
    assert len(world.events.select("node_state", state="rebooting")) == 0


def test_a_node_that_waits_to_reboot_takes_no_more_tasks() -> None:
    world = make_world(slots=2)
    client = make_client(world)
    make_job(client)
    make_task(client)
    _act(client, "reboot", "taskcompletion")

    make_task(client, "next")

    assert states(client) == {"task": "running", "next": "active"}


def test_a_wrong_option_is_refused(client: BatchClient) -> None:
    with pytest.raises(HttpResponseError) as refused:
        _act(client, "reboot", "tomorrow")

    assert _code(refused.value) == (400, "InvalidPropertyValue")


def test_a_node_that_is_preempted_while_it_reboots_stays_lost(client: BatchClient, world: World) -> None:
    _act(client, "reboot")
    control.preempt_node(world, POOL, _node_id(client))

    world.advance(3600)

    assert _state(client) == "preempted"


@pytest.mark.parametrize(
    ("option", "task_state", "requeue_count"),
    [("requeue", "running", 1), ("terminate", "completed", 0), ("taskcompletion", "running", 0)],
)
def test_chosen_nodes_are_removed_with_their_place(option: str, task_state: str, requeue_count: int) -> None:
    world = make_world(nodes=3)
    client = make_client(world)
    make_job(client)
    make_task(client)
    (busy,) = client.list_nodes(POOL, filter="state eq 'running'")
    idle = next(iter(client.list_nodes(POOL, filter="state eq 'idle'")))

    body = {"nodeList": [busy.id, idle.id], "nodeDeallocationOption": option, "resizeTimeout": "PT10M"}
    act(client, f"/pools/{POOL}/removenodes", body)

    assert word(client.get_pool(POOL).allocation_state) == "resizing"
    world.advance(60)
    task = client.get_task("job", "task")
    assert task.execution_info
    assert (task.state, task.execution_info.requeue_count) == (task_state, requeue_count)
    if option == "taskcompletion":
        assert {node.id for node in client.list_nodes(POOL)} >= {busy.id}
        runner_of(world).finish("job", "task")
    pool = client.get_pool(POOL)
    assert (pool.target_low_priority_nodes, pool.current_low_priority_nodes) == (1, 1)
    assert not {busy.id, idle.id} & {node.id for node in client.list_nodes(POOL)}


def test_removed_dedicated_nodes_are_not_replaced() -> None:
    world = World.from_json({"pools": [{"id": POOL, "targetDedicatedNodes": 2}]})
    client = make_client(world)

    act(client, f"/pools/{POOL}/removenodes", {"nodeList": [_node_id(client)]})
    world.advance(60)

    pool = client.get_pool(POOL)
    assert (pool.target_dedicated_nodes, pool.current_dedicated_nodes) == (1, 1)


def test_removals_that_are_refused() -> None:
    world = World.from_json(
        {
            "pools": [
                {"id": POOL, "targetDedicatedNodes": 1},
                {"id": "auto", "autoscale": {"formula": "$TargetDedicatedNodes = 1;"}},
            ]
        }
    )
    client = make_client(world)

    def code(pool: str, nodes: list[str], **more: str) -> Any:
        with pytest.raises(HttpResponseError) as refused:
            act(client, f"/pools/{pool}/removenodes", {"nodeList": nodes, **more})
        return _code(refused.value)

    assert code(POOL, ["none"]) == (404, "NodeNotFound")
    assert code(POOL, []) == (400, "InvalidPropertyValue")
    assert code(POOL, ["x"] * 101) == (400, "InvalidPropertyValue")
    assert code(POOL, [_node_id(client)], resizeTimeout="PT1M") == (400, "InvalidPropertyValue")
    assert code("auto", [next(iter(client.list_nodes("auto"))).id]) == (409, "OperationNotValidOnPool")
