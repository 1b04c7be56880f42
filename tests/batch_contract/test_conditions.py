"""Conditions in requests: what is read or changed only if it has (not) changed meanwhile."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError

from tests.batch_contract.absent import ABSENT
from tests.batch_contract.stand import POOL, Stand

Call = Callable[..., Any]

_STALE = {"etag": "0x8D0", "match_condition": MatchConditions.IfNotModified}
_REASON: Any = {"terminateReason": "over"}
_POOL_INFO = models.BatchPoolInfo(pool_id=POOL)


def _resize(client: BatchClient, **conditions: Any) -> None:
    options = models.BatchPoolResizeOptions(target_low_priority_nodes=1)
    client.begin_resize_pool(POOL, options, polling_interval=1, **conditions)


def _remove(client: BatchClient, **conditions: Any) -> None:
    options = models.BatchNodeRemoveOptions(node_ids=[next(iter(client.list_nodes(POOL))).id])
    client.begin_remove_nodes(POOL, options, polling_interval=1, **conditions)


def _auto_scale(client: BatchClient, **conditions: Any) -> None:
    options = models.BatchPoolEnableAutoScaleOptions(auto_scale_formula="$TargetLowPriorityNodes = 2;")
    client.enable_pool_auto_scale(POOL, options, **conditions)


def _disable(client: BatchClient, **conditions: Any) -> None:
    client.begin_disable_job(
        "job", models.BatchJobDisableOptions(disable_tasks="requeue"), polling_interval=1, **conditions
    )


def _disabled(stand: Stand) -> None:
    stand.job()
    _disable(stand.client)


def _two(stand: Stand) -> None:
    stand.job()
    stand.task()


def _failed(stand: Stand) -> None:
    stand.ended(exit_code=1)


def _nothing(_stand: Stand) -> None:
    """The pool is there."""


_POOLS: dict[str, tuple[Callable[[Stand], None], Call]] = {
    "get_pool": (_nothing, lambda c, **if_: c.get_pool(POOL, **if_)),
    "pool_exists": (_nothing, lambda c, **if_: c.pool_exists(POOL, **if_)),
    "update_pool": (_nothing, lambda c, **if_: c.update_pool(POOL, models.BatchPoolUpdateOptions(metadata=[]), **if_)),
    "begin_resize_pool": (_nothing, _resize),
    "begin_stop_pool_resize": (
        Stand.leaving,
        lambda c, **if_: c.begin_stop_pool_resize(POOL, polling_interval=1, **if_),
    ),
    "begin_remove_nodes": (_nothing, _remove),
    "enable_pool_auto_scale": (_nothing, _auto_scale),
    "begin_delete_pool": (_nothing, lambda c, **if_: c.begin_delete_pool(POOL, polling_interval=1, **if_)),
}
_JOBS: dict[str, tuple[Callable[[Stand], None], Call]] = {
    "get_job": (Stand.job, lambda c, **if_: c.get_job("job", **if_)),
    "update_job": (
        Stand.job,
        lambda c, **if_: c.update_job("job", models.BatchJobUpdateOptions(priority=1), **if_),
    ),
    "replace_job": (
        Stand.job,
        lambda c, **if_: c.replace_job("job", models.BatchJob(pool_info=_POOL_INFO, priority=1), **if_),
    ),
    "begin_disable_job": (Stand.job, _disable),
    "begin_enable_job": (_disabled, lambda c, **if_: c.begin_enable_job("job", polling_interval=1, **if_)),
    "begin_terminate_job": (
        Stand.job,
        lambda c, **if_: c.begin_terminate_job("job", options=_REASON, polling_interval=1, **if_),
    ),
    "begin_delete_job": (Stand.job, lambda c, **if_: c.begin_delete_job("job", polling_interval=1, **if_)),
}
_TASKS: dict[str, tuple[Callable[[Stand], None], Call]] = {
    "get_task": (_two, lambda c, **if_: c.get_task("job", "task", **if_)),
    "replace_task": (
        _two,
        lambda c, **if_: c.replace_task(
            "job", "task", models.BatchTask(constraints=models.BatchTaskConstraints(max_task_retry_count=1)), **if_
        ),
    ),
    "terminate_task": (_two, lambda c, **if_: c.terminate_task("job", "task", **if_)),
    "reactivate_task": (_failed, lambda c, **if_: c.reactivate_task("job", "task", **if_)),
    "delete_task": (_two, lambda c, **if_: c.delete_task("job", "task", **if_)),
}
_CALLS = _POOLS | _JOBS | _TASKS
_READS = ("get_pool", "pool_exists", "get_job", "get_task")
_WRITES = sorted(set(_CALLS) - set(_READS))


def _resource(stand: Stand, method: str) -> Any:
    if method in _POOLS:
        return stand.client.get_pool(POOL)
    return stand.client.get_job("job") if method in _JOBS else stand.client.get_task("job", "task")


def _refused(call: Call, client: BatchClient, **conditions: Any) -> HttpResponseError:
    with pytest.raises(HttpResponseError) as refused:
        call(client, **conditions)
    return refused.value


def test_every_method_that_takes_conditions_is_here() -> None:
    methods = {name: member for base in BatchClient.__mro__ for name, member in vars(base).items() if name[0] != "_"}
    conditional = {
        name for name, method in methods.items() if "match_condition" in inspect.signature(method).parameters
    }

    assert set(_CALLS) == conditional - set(ABSENT)


@pytest.mark.parametrize("method", sorted(_CALLS))
def test_a_stale_etag_changes_nothing(stand: Stand, method: str) -> None:
    before, call = _CALLS[method]
    before(stand)
    resource = _resource(stand, method)

    error = _refused(call, stand.client, **_STALE)

    assert (type(error), error.status_code) == (ResourceModifiedError, 412)
    if method != "pool_exists":
        assert error.error
        assert error.error.code == "ConditionNotMet"
    assert _resource(stand, method) == resource


@pytest.mark.parametrize("method", sorted(_CALLS))
def test_the_present_etag_is_taken(stand: Stand, method: str) -> None:
    before, call = _CALLS[method]
    before(stand)
    resource = _resource(stand, method)

    call(stand.client, etag=resource.etag, match_condition=MatchConditions.IfNotModified)

    if method in ("begin_delete_pool", "begin_delete_job", "delete_task"):
        assert _refused(lambda _client: _resource(stand, method), stand.client).status_code == 404
    else:
        changed = _resource(stand, method)
        assert (changed.etag == resource.etag) == (method in _READS)


@pytest.mark.parametrize("method", _WRITES)
def test_what_has_changed_since_then_is_left_alone(stand: Stand, method: str) -> None:
    before, call = _CALLS[method]
    before(stand)
    resource = _resource(stand, method)

    error = _refused(call, stand.client, if_unmodified_since=stand.world.now - timedelta(hours=1))

    assert error.status_code == 412
    assert _resource(stand, method) == resource


@pytest.mark.parametrize("method", _READS)
def test_what_has_not_changed_is_not_sent_again(stand: Stand, method: str) -> None:
    before, call = _CALLS[method]
    before(stand)
    etag = _resource(stand, method).etag
    stand.world.advance(60)

    conditions: list[dict[str, Any]] = [
        {"etag": etag, "match_condition": MatchConditions.IfModified},
        {"if_modified_since": stand.world.now},
    ]
    for condition in conditions:
        assert _refused(call, stand.client, **condition).status_code == 304
    call(stand.client, etag="0x8D0", match_condition=MatchConditions.IfModified)
    call(stand.client, if_modified_since=stand.world.now - timedelta(hours=1))


@pytest.mark.parametrize("method", ["download_task_file", "get_task_file_properties"])
def test_a_file_is_sent_or_not_by_the_time_of_its_change(stand: Stand, method: str) -> None:
    _two(stand)

    def call(client: BatchClient, **conditions: Any) -> None:
        found = getattr(client, method)("job", "task", "stdout.txt", **conditions)
        if method == "download_task_file":
            assert b"".join(found) == b""

    now, earlier = stand.world.now, stand.world.now - timedelta(days=30)
    call(stand.client, if_modified_since=earlier)
    call(stand.client, if_unmodified_since=now)
    assert _refused(call, stand.client, if_modified_since=now).status_code == 304
    assert _refused(call, stand.client, if_unmodified_since=earlier).status_code == 412
