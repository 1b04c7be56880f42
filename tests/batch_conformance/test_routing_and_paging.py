"""Paths are read before they are decoded; ids know no case; lists come in pages; every API version is taken."""

from __future__ import annotations

import pytest

from tests.batch_conformance.wire import VERSION, Wire, account


def test_an_escaped_slash_is_part_of_a_name(wire: Wire) -> None:
    wire.job()
    wire.task()
    wire.write("wd/out dir/a+b.txt", b"x")

    files = "/jobs/job/tasks/task/files"
    assert wire.send("GET", f"{files}/wd%2Fout%20dir%2Fa%2Bb.txt").body == b"x"
    assert wire.send("GET", f"{files}/wd/out%20dir/a+b.txt").refusal == (404, "ResourceNotFound")
    assert wire.send("GET", "/jobs/job%2Ftasks").refusal == (404, "JobNotFound")


def test_job_and_task_ids_know_no_case(wire: Wire) -> None:
    wire.job("Job")
    wire.task("Task")

    assert wire.get("/jobs/jOB/tasks/tASK")["id"] == "Task"
    assert wire.get("/jobs/JOB")["id"] == "Job"
    assert wire.send("POST", "/jobs", {"id": "JOB", "poolInfo": {"poolId": "pool"}}).refusal == (409, "JobExists")
    again = {"id": "TASK", "commandLine": "program"}
    assert wire.send("POST", "/jobs/job/tasks", again).refusal == (409, "TaskExists")


def test_a_long_list_comes_in_pages_with_a_next_link() -> None:
    with account(page_size=2) as wire:
        wire.job()
        for number in range(5):
            wire.task(f"t{number}")

        page = wire.get("/jobs/job/tasks", _filter="startswith(id,'t')", _select="id")
        seen = [page["value"]]
        while "odata.nextLink" in page:
            assert f"api-version={VERSION}" in page["odata.nextLink"]
            assert "$skiptoken=" in page["odata.nextLink"]
            page = wire.follow(page["odata.nextLink"])
            seen.append(page["value"])

    assert page["odata.metadata"].endswith("/$metadata#tasks")
    assert seen == [[{"id": "t0"}, {"id": "t1"}], [{"id": "t2"}, {"id": "t3"}], [{"id": "t4"}]]


def test_a_list_that_ends_with_its_page_has_no_next_link() -> None:
    with account(page_size=2) as wire:
        wire.job("one")
        wire.job("two")

        assert "odata.nextLink" not in wire.get("/jobs")


@pytest.mark.parametrize("version", ["2025-06-01", "2024-02-01.19.0", "2099-01-01", "any"])
def test_every_api_version_is_taken(wire: Wire, version: str) -> None:
    assert wire.send("GET", "/pools", version=version).status == 200


def test_no_api_version_is_400(wire: Wire) -> None:
    answer = wire.send("GET", "/pools", version=None)

    assert answer.refusal == (400, "MissingRequiredQueryParameter")
    assert {"key": "QueryParameterName", "value": "api-version"} in answer.json()["values"]


def test_a_timeout_of_the_server_is_taken(wire: Wire) -> None:
    assert wire.send("GET", "/pools", timeOut="1").status == 200
    assert wire.send("POST", "/jobs", {"id": "job", "poolInfo": {"poolId": "pool"}}, timeOut="30").status == 201
