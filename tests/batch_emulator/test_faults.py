"""Injected faults, as the real client meets them."""

import time
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ServiceResponseError

from local.batch import World
from local.batch.config import WorldFileError
from tests.batch_emulator.support import POOL, make_client, make_job, make_task, make_world, refusal, states


def test_a_pool_that_cannot_be_read_five_times(client: BatchClient, world: World) -> None:
    world.faults.add({"operation": "get_pool", "pool": POOL, "status": 503, "times": 5})

    for _ in range(5):
        with pytest.raises(HttpResponseError) as refused:
            client.get_pool(POOL)
        assert refusal(refused.value) == (503, "ServerBusy")
    assert client.get_pool(POOL).id == POOL


def test_a_create_that_is_carried_out_although_it_fails(client: BatchClient, world: World) -> None:
    make_job(client)
    world.faults.add({"operation": "create_task", "task": "task", "code": "InternalError", "when": "after", "times": 1})

    make_task(client, "other")
    with pytest.raises(HttpResponseError) as refused:
        make_task(client)
    assert refusal(refused.value) == (500, "InternalError")
    with pytest.raises(ResourceExistsError) as exists:
        make_task(client)

    assert refusal(exists.value) == (409, "TaskExists")
    assert len(world.events.select("task_created", task="task")) == 1


def test_a_create_that_is_not_carried_out(client: BatchClient, world: World) -> None:
    make_job(client)
    world.faults.add({"operation": "create_task", "code": "OperationTimedOut", "times": 1})

    with pytest.raises(HttpResponseError):
        make_task(client)

    assert states(client) == {}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_dropped_connection(client: BatchClient, world: World, when: str) -> None:
    world.faults.add({"method": "post", "route": "/jobs", "drop_connection": True, "when": when, "times": 1})

    with pytest.raises(ServiceResponseError):
        make_job(client)

    assert len(list(client.list_jobs())) == (1 if when == "after" else 0)


def test_throttling_with_retry_after(client: BatchClient, world: World) -> None:
    world.faults.add({"code": "TooManyRequests", "retry_after": 7, "job": "job"})

    with pytest.raises(HttpResponseError) as refused:
        make_job(client)

    response: Any = refused.value.response
    assert (response.status_code, response.headers["Retry-After"]) == (429, "7")
    make_job(client, "another")


def test_an_error_of_one_s_own(client: BatchClient, world: World) -> None:
    world.faults.add({"operation": "create_job", "status": 409, "code": "SomethingNew", "message": "no"})

    with pytest.raises(ResourceExistsError) as refused:
        make_job(client)

    assert refusal(refused.value) == (409, "SomethingNew")


@pytest.mark.parametrize("route", ["/jobs/{j}/tasks", "/jobs/[a-z]+/tasks"])
def test_routes_are_templates_or_expressions(client: BatchClient, world: World, route: str) -> None:
    make_job(client)
    world.faults.add({"route": route, "method": "GET", "status": 500})

    make_task(client)
    assert client.get_task("job", "task").id == "task"
    with pytest.raises(HttpResponseError):
        states(client)
    world.faults.clear()
    assert states(client) == {"task": "running"}


def test_a_slow_answer_takes_time_on_the_world_s_clock(client: BatchClient, world: World) -> None:
    world.faults.add({"operation": "create_job", "delay_seconds": 40})
    before, started = world.now, time.monotonic()

    make_job(client)

    assert (world.now - before).total_seconds() == 40
    assert time.monotonic() - started < 30
    assert client.get_job("job").state == models.BatchJobState.ACTIVE


def test_chance_is_the_same_every_time() -> None:
    rule = {"operation": "get_pool", "status": 503, "probability": 0.5, "seed": 7}

    def outcomes() -> list[bool]:
        client = make_client(make_world(faults=[rule]))
        seen = []
        for _ in range(40):
            try:
                client.get_pool(POOL)
                seen.append(True)
            except HttpResponseError:
                seen.append(False)
        return seen

    first = outcomes()
    assert first == outcomes()
    assert 5 < sum(first) < 35


@pytest.mark.parametrize(
    "rule",
    [
        {"status": 503, "colour": 1},
        {"operation": "get_pool"},
        {"status": 500, "when": "later"},
        {"code": "x", "used": 1},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(world: World, rule: dict[str, Any]) -> None:
    with pytest.raises(WorldFileError):
        world.faults.add(rule)
