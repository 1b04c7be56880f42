"""Events of the world file: what happens by itself, and when."""

from __future__ import annotations

from typing import Any

import pytest
from azure.batch import BatchClient
from azure.core.exceptions import HttpResponseError

from local.batch import World
from local.batch.config import WorldFileError
from tests.batch_emulator.support import POOL, act, make_client, make_job, make_task, refusal, states, word


def _world(*events: object, nodes: int = 2, **keys: Any) -> World:
    pool = {"id": POOL, "targetLowPriorityNodes": nodes, "start_seconds": 0, "return_after_seconds": None}
    return World.from_json({"pools": [pool | keys], "events": list(events)})


def _node_states(client: BatchClient) -> list[str]:
    return [word(node.state) for node in client.list_nodes(POOL)]


def _resize(client: BatchClient, nodes: int) -> None:
    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": nodes})


def test_a_node_is_preempted_at_its_time_and_comes_back() -> None:
    world = _world(f"at 10m preempt node 1 of {POOL} for 1m30s")
    client = make_client(world)

    world.advance(599)
    assert _node_states(client) == ["idle", "idle"]
    world.advance(1)
    assert _node_states(client) == ["idle", "preempted"]
    world.advance(89)
    assert _node_states(client) == ["idle", "preempted"]
    world.advance(1)
    assert _node_states(client) == ["idle", "idle"]


@pytest.mark.parametrize("event", [f"at 1m preempt node any-running of {POOL}", "at 1m preempt task t0 of job"])
def test_what_runs_is_preempted(event: str) -> None:
    world = _world(event, nodes=1)
    client = make_client(world)
    make_job(client)
    make_task(client, "t0")

    world.advance(60)

    assert (_node_states(client), states(client)) == (["preempted"], {"t0": "active"})


@pytest.mark.parametrize("state", ["unusable", "unknown", "starttaskfailed"])
def test_a_node_breaks_and_is_returned(state: str) -> None:
    world = _world(f"at 1s node 0 of {POOL} becomes {state}", f"at 1h return node 0 of {POOL}", nodes=1)
    client = make_client(world)

    world.advance(1)
    assert _node_states(client) == [state]
    world.advance(3599)
    assert _node_states(client) == ["idle"]


@pytest.mark.parametrize("where", ["", f" of {POOL}"])
def test_capacity_goes_and_comes(where: str) -> None:
    world = _world(f"from 5m to 9m low-priority capacity 1{where}", nodes=1)
    client = make_client(world)
    world.advance(300)
    _resize(client, 3)
    world.advance(239)
    pool = client.get_pool(POOL)
    assert (pool.current_low_priority_nodes, [error.code for error in pool.resize_errors or ()]) == (
        1,
        ["AllocationFailed"],
    )

    world.advance(2)

    assert client.get_pool(POOL).current_low_priority_nodes == 3


def test_resizes_fail_for_a_while() -> None:
    world = _world(f"from 1m to 2m resize of {POOL} fails with AccountSpotCoreQuotaReached")
    client = make_client(world)
    world.advance(60)
    _resize(client, 5)
    world.advance(61)
    pool = client.get_pool(POOL)
    assert [error.code for error in pool.resize_errors or ()] == ["AccountSpotCoreQuotaReached"]
    assert pool.current_low_priority_nodes == 2

    _resize(client, 5)
    world.advance(1)
    assert client.get_pool(POOL).current_low_priority_nodes == 5


@pytest.mark.parametrize(
    ("how", "code", "nodes"),
    [
        ("fails", "AllocationFailed", 2),
        ("fails after 1 node", "AllocationFailed", 3),
        ("times out after 2 nodes", "AllocationTimedout", 4),
    ],
)
def test_the_next_growth_fails(how: str, code: str, nodes: int) -> None:
    world = _world(f"at 1m allocation of {POOL} {how}")
    client = make_client(world)
    world.advance(60)
    _resize(client, 9)

    world.advance(3600)

    pool = client.get_pool(POOL)
    assert (pool.current_low_priority_nodes, [error.code for error in pool.resize_errors or ()]) == (nodes, [code])


def test_samples_get_lost_for_a_while() -> None:
    world = _world(f"from 2m to 4m no samples of {POOL}", autoscale={"formula": "x = $PendingTasks.Count();"})

    for seconds, count in ((119, 3), (120, 3), (61, 6)):
        world.advance(seconds)
        assert len(world.pool(POOL).history.entries) == count


def test_a_fault_comes_and_goes() -> None:
    world = _world({"from": "1m", "to": "2m", "fault": {"operation": "get_pool", "code": "ServerBusy"}})
    client = make_client(world)
    world.faults.add({"operation": "get_pool", "code": "InternalError", "times": 1})
    with pytest.raises(HttpResponseError):
        client.get_pool(POOL)
    client.get_pool(POOL)

    world.advance(60)
    with pytest.raises(HttpResponseError) as refused:
        client.get_pool(POOL)
    assert refusal(refused.value) == (503, "ServerBusy")
    world.advance(60)
    assert client.get_pool(POOL).id == POOL
    assert [rule.code for rule in world.faults.rules] == ["InternalError"]


def test_events_are_logged_and_what_finds_nothing_says_so() -> None:
    event = f"at 1m preempt node 7 of {POOL}"
    world = _world(event, "at 2m low-priority capacity unlimited of none")

    world.advance(120)

    logged = world.events.select("scripted_event")
    assert [(entry["text"], entry["code"]) for entry in logged] == [
        (event, "NodeNotFound"),
        ("at 2m low-priority capacity unlimited of none", "PoolNotFound"),
    ]


def test_after_a_reset_events_happen_anew() -> None:
    world = _world(f"at 1m preempt node 0 of {POOL}")
    world.advance(90)
    world.reset()
    client = make_client(world)

    world.advance(59)
    assert _node_states(client) == ["idle", "idle"]
    world.advance(1)
    assert _node_states(client) == ["preempted", "idle"]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("preempt node 0 of p", "at TIME ACTION"),
        ("at noon preempt node 0 of p", "at TIME ACTION"),
        ("at 5m dance", "no such action: 'dance'"),
        ("at 5m preempt node x of p", "no such action"),
        ("from 1m to 2m preempt node 0 of p", "at one time"),
        ("from 2m to 1m low-priority capacity 0", "cannot be over at 1m"),
        ({"at": "1m"}, "`fault`"),
        ({"at": "1m", "to": "2m", "fault": {"code": "X"}}, "`from` and `to`"),
        ({"at": "1m", "fault": {"code": "X"}, "pool": "p"}, "`fault`"),
        ({"at": "1m", "fault": {"colour": 1}}, "colour"),
        (5, "at TIME ACTION"),
    ],
)
def test_what_no_event_can_be(event: object, reason: str) -> None:
    with pytest.raises(WorldFileError, match=reason):
        _world(event)
