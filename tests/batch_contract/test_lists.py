"""Pages, filters and selections, for every list that the SDK knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from azure.batch import BatchClient, models

from tests.batch_contract.absent import ABSENT
from tests.batch_contract.stand import POOL, Stand

_LISTS: dict[str, Callable[..., Any]] = {
    "list_pools": lambda c, **options: c.list_pools(**options),
    "list_nodes": lambda c, **options: c.list_nodes(POOL, **options),
    "list_pool_node_counts": lambda c, **options: c.list_pool_node_counts(**options),
    "list_jobs": lambda c, **options: c.list_jobs(**options),
    "list_tasks": lambda c, **options: c.list_tasks("job", **options),
    "list_task_files": lambda c, **options: c.list_task_files("job", "task", recursive=True, **options),
    "list_supported_images": lambda c, **options: c.list_supported_images(**options),
}
#: A filter and how many entries of how many it lets through; what `state` they have is in the filter.
_FILTERS = {
    "list_pools": ("state eq 'active' and startswith(id,'po')", 1),
    "list_nodes": ("state eq 'running'", 1),
    "list_pool_node_counts": ("poolId eq 'second'", 1),
    "list_jobs": ("not (id eq 'job') and executionInfo/poolId eq 'pool'", 1),
    "list_tasks": ("executionInfo/exitCode gt 0 or state eq 'running'", 2),
    "list_task_files": ("startswith(name,'wd/')", 1),
}
#: Refused for every job that the emulator takes.
_NEVER_LONG = {"list_job_preparation_and_release_task_status"}
_SELECTABLE = ("list_pools", "list_nodes", "list_jobs", "list_tasks")


@pytest.fixture(autouse=True)
def account(stand: Stand) -> None:
    """Two pools, two nodes (one busy), two jobs, three tasks and four files."""
    stand.client.create_pool(models.BatchPoolCreateOptions(id="second", vm_size="standard_d2s_v3"))
    stand.job()
    stand.job("job-two")
    for name in ("bad", "good", "task"):
        stand.task(name)
    stand.runner.finish("job", "bad", 2)
    stand.runner.finish("job", "good")
    stand.runner.put_file("job", "task", "wd/a b", b"x")


def _requests(stand: Stand, method: str) -> int:
    return len(stand.world.events.select("request", operation=method, status=200))


def test_every_list_is_here() -> None:
    methods = {name: member for base in BatchClient.__mro__ for name, member in vars(base).items() if name[0] != "_"}
    lists = {name for name, method in methods.items() if "max_results" in inspect.signature(method).parameters}

    assert set(_LISTS) | _NEVER_LONG == lists - set(ABSENT)


@pytest.mark.parametrize("method", sorted(_LISTS))
def test_pages_hold_what_the_whole_list_holds(stand: Stand, method: str) -> None:
    whole = list(_LISTS[method](stand.client))
    assert len(whole) > 1
    before = _requests(stand, method)

    pages = [list(page) for page in _LISTS[method](stand.client, max_results=1).by_page()]

    assert [entry for page in pages for entry in page] == whole
    assert {len(page) for page in pages} == {1}
    assert _requests(stand, method) - before == len(whole)


@pytest.mark.parametrize("method", sorted(_FILTERS))
def test_a_filter_holds_on_every_page(stand: Stand, method: str) -> None:
    expression, most = _FILTERS[method]
    whole = list(_LISTS[method](stand.client))

    found = list(_LISTS[method](stand.client, filter=expression, max_results=1))

    assert len(found) == most < len(whole)
    assert all(entry in whole for entry in found)


@pytest.mark.parametrize("method", _SELECTABLE)
def test_a_selection_holds_on_every_page(stand: Stand, method: str) -> None:
    found = list(_LISTS[method](stand.client, select=["id", "state"], max_results=1))

    assert len(found) > 1
    assert [set(entry.as_dict()) for entry in found] == [{"id", "state"}] * len(found)


def test_a_selection_of_one_resource(stand: Stand) -> None:
    shown: list[Any] = [
        stand.client.get_pool(POOL, select=["id", "state"]),
        stand.client.get_node(POOL, stand.node(), select=["id", "state"]),
        stand.client.get_job("job", select=["id", "state"]),
        stand.client.get_task("job", "task", select=["id", "state"]),
    ]

    assert [set(one.as_dict()) - {"odata.metadata"} for one in shown] == [{"id", "state"}] * 4


def test_statistics_may_be_asked_for(stand: Stand) -> None:
    assert stand.client.get_job("job", expand=["stats"]).id == "job"
    assert [task.id for task in stand.client.list_tasks("job", expand=["stats"])] == ["bad", "good", "task"]
