"""Lists: pages, `$filter`, `$select`."""

from typing import Any

import pytest
from azure.batch import BatchClient
from azure.core.exceptions import HttpResponseError

from local.batch import World
from tests.batch_emulator.support import (
    BEARER,
    VERSION,
    make_client,
    make_job,
    make_task,
    make_world,
    refusal,
    runner_of,
)


@pytest.fixture(autouse=True)
def tasks(client: BatchClient, world: World) -> None:
    make_job(client)
    for number in range(5):
        make_task(client, f"trn-{number}")
    runner_of(world).finish("job", "trn-0", 3)
    runner_of(world).finish("job", "trn-1", 0)


def _ids(client: BatchClient, **options: Any) -> list[str]:
    return [task.id for task in client.list_tasks("job", **options)]


def test_a_long_list_comes_in_pages_that_keep_filter_and_select(client: BatchClient, world: World) -> None:
    pages = client.list_tasks(
        "job", max_results=1, filter="state eq 'active' and startswith(id,'trn-')", select=["id", "state"]
    ).by_page()

    found = [[task.as_dict() for task in page] for page in pages]

    assert found == [[{"id": "trn-3", "state": "active"}], [{"id": "trn-4", "state": "active"}]]
    assert len(world.events.select("request", operation="list_tasks")) == 2


def test_the_world_may_have_small_pages() -> None:
    world = make_world(page_size=2)
    client = make_client(world)
    for number in range(5):
        make_job(client, f"j{number}")

    assert [job.id for job in client.list_jobs()] == ["j0", "j1", "j2", "j3", "j4"]
    assert len(world.events.select("request", operation="list_jobs")) == 3


def test_a_task_that_goes_between_two_pages_hides_no_other(client: BatchClient) -> None:
    pages = client.list_tasks("job", max_results=2).by_page()
    seen = [task.id for task in next(pages)]
    client.delete_task("job", "trn-0")
    for page in pages:
        seen += [task.id for task in page]

    assert seen == ["trn-0", "trn-1", "trn-2", "trn-3", "trn-4"]


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("state eq 'running'", "2"),
        ("state ne 'active'", "012"),
        ("not (state eq 'active')", "012"),
        ("not state eq 'active' and not startswith(id,'trn-0')", "12"),
        ("state eq 'running' or state eq 'active' and id eq 'trn-4'", "24"),
        ("(state eq 'running' or state eq 'active') and id eq 'trn-4'", "4"),
        ("executionInfo/exitCode gt 0", "0"),
        ("executionInfo/exitCode ge 0", "01"),
        ("executionInfo/requeueCount lt 1", "01234"),
        ("executionInfo/failureInfo/code eq 'FailureExitCode'", "0"),
        ("creationTime lt DateTime'2026-01-05T09:00:00Z'", "01234"),
        ("creationTime gt datetime'2026-01-05T09:00:00.1234567Z'", ""),
        ("executionInfo/result eq null", "234"),
        ("id eq 'it''s'", ""),
    ],
)
def test_filters(client: BatchClient, expression: str, numbers: str) -> None:
    assert _ids(client, filter=expression) == [f"trn-{number}" for number in numbers]


@pytest.mark.parametrize(
    "expression",
    [
        "colour eq 'red'",
        "state eq",
        "state like 'a'",
        "state eq 'a' extra",
        "(state eq 'a'",
        "state eq §",
        "commandLine eq 'x'",
    ],
)
def test_what_cannot_be_filtered_on_is_refused(client: BatchClient, expression: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        _ids(client, filter=expression)

    assert refusal(refused.value) == (400, "InvalidQueryParameterValue")
    assert refused.value.error
    assert {detail.code: detail.message for detail in refused.value.error.details}["QueryParameterName"] == "$filter"


def test_select_takes_known_names_only(client: BatchClient) -> None:
    assert client.get_task("job", "trn-0", select=["id"]).as_dict().keys() - {"odata.metadata"} == {"id"}
    with pytest.raises(HttpResponseError) as refused:
        _ids(client, select=["id", "colour"])
    assert refusal(refused.value) == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize(
    ("name", "value"), [("maxresults", "0"), ("maxresults", "1001"), ("$expand", "x"), ("$skiptoken", "!")]
)
def test_other_query_parameters_are_checked(world: World, name: str, value: str) -> None:
    response = world.handle("GET", "/jobs/job/tasks", VERSION | {name: value}, BEARER)

    assert (response.status, response.json()["code"]) == (400, "InvalidQueryParameterValue")


def test_jobs_are_found_by_pool(client: BatchClient) -> None:
    make_job(client, "elsewhere", pool_id="other")

    assert [job.id for job in client.list_jobs(filter="executionInfo/poolId eq 'other'")] == ["elsewhere"]
    assert [job.id for job in client.list_jobs(filter="startswith(id,'j') and state eq 'active'")] == ["job"]
