"""The body of an error, and errors that a test orders."""

from __future__ import annotations

import http.client
import re
from typing import Any

import pytest

from tests.batch_conformance.wire import POOL, Wire, account

_TASK = {"id": "task", "commandLine": "program"}


def test_the_body_of_an_error(wire: Wire) -> None:
    answer = wire.send("GET", "/pools", _filter="colour eq 'red'")

    body = answer.json()
    kind = "Microsoft.Azure.Batch.Protocol.Entities.Container.errors/@Element"
    assert body["odata.metadata"] == f"{wire.endpoint}/$metadata#{kind}"
    assert body["code"] == "InvalidQueryParameterValue"
    assert set(body["message"]) == {"lang", "value"}
    text = r"[^\n]+\nRequestId:[0-9a-f-]{36}\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z"
    assert re.fullmatch(text, body["message"]["value"])
    assert {value["key"] for value in body["values"]} == {
        "QueryParameterName",
        "QueryParameterValue",
        "Reason",
    }
    assert "Retry-After" not in answer.headers
    assert answer.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize("retry_after", [None, 7])
def test_429_with_and_without_retry_after(wire: Wire, retry_after: int | None) -> None:
    wire.job()
    rule = {"operation": "create_task", "code": "TooManyRequests", "retry_after": retry_after, "times": 1}
    wire.admin("POST", "/faults", rule)

    answer = wire.send("POST", "/jobs/job/tasks", _TASK)

    assert answer.refusal == (429, "TooManyRequests")
    assert answer.headers["Retry-After"] == (None if retry_after is None else "7")
    assert wire.send("POST", "/jobs/job/tasks", _TASK).status == 201


def test_a_create_that_is_carried_out_and_then_fails(wire: Wire) -> None:
    wire.job()
    wire.admin("POST", "/faults", {"operation": "create_task", "code": "InternalError", "when": "after", "times": 1})

    assert wire.send("POST", "/jobs/job/tasks", _TASK).refusal == (500, "InternalError")

    assert wire.state() == "running"
    assert wire.send("POST", "/jobs/job/tasks", _TASK).refusal == (409, "TaskExists")


def test_503_on_one_route_and_one_resource_only(wire: Wire) -> None:
    wire.done("POST", "/pools", {"id": "other", "vmSize": "standard_d2s_v3"})
    wire.admin("POST", "/faults", {"method": "GET", "route": "/pools/{pool}", "pool": POOL, "status": 503, "times": 2})

    assert [wire.send("GET", f"/pools/{POOL}").status for _ in range(3)] == [503, 503, 200]
    wire.admin("POST", "/faults", {"route": "/pools/{pool}", "pool": POOL, "code": "ServerBusy"})
    assert wire.send("GET", f"/pools/{POOL}").refusal == (503, "ServerBusy")
    assert wire.send("GET", "/pools/other").status == 200
    assert wire.send("GET", f"/pools/{POOL}/nodes").status == 200


@pytest.mark.parametrize(("when", "created"), [("before", 404), ("after", 200)])
def test_a_connection_that_breaks(wire: Wire, when: str, created: int) -> None:
    wire.job()
    wire.admin("POST", "/faults", {"operation": "create_task", "drop_connection": True, "when": when, "times": 1})

    with pytest.raises((http.client.HTTPException, ConnectionError)):
        wire.send("POST", "/jobs/job/tasks", _TASK)

    assert wire.send("GET", "/jobs/job/tasks/task").status == created


def test_the_quota_of_active_jobs_can_be_reached_or_ordered() -> None:
    job: dict[str, Any] = {"poolInfo": {"poolId": POOL}}
    with account(quotas={"active_jobs": 1}) as wire:
        wire.job()
        full = wire.send("POST", "/jobs", job | {"id": "second"})
    with account() as wire:
        rule = {"operation": "create_job", "job": "second", "code": "ActiveJobAndScheduleQuotaReached"}
        wire.admin("POST", "/faults", rule)
        ordered = wire.send("POST", "/jobs", job | {"id": "second"})
        other = wire.send("POST", "/jobs", job | {"id": "third"})

    assert full.refusal == ordered.refusal == (409, "ActiveJobAndScheduleQuotaReached")
    assert other.status == 201
