"""The contract leaves out no method of the SDK's client."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from azure.batch import BatchClient
from azure.core.exceptions import HttpResponseError

from tests.batch_contract.absent import ABSENT
from tests.batch_contract.refusals import REFUSALS
from tests.batch_contract.stand import Stand

#: Not operations: the connection, and the raw request that other tests use.
_NO_OPERATIONS = {"close", "send_request"}
#: Made of the collection call, and without an end when the service refuses.
_NEVER_REFUSED = {"create_tasks"}
#: Jobs with a preparation task are refused, so there is never anything to list.
_ALWAYS_REFUSED = {"list_job_preparation_and_release_task_status"}
_AREAS = ("pools", "nodes", "jobs", "tasks", "files")


def _methods() -> set[str]:
    return {name for name in vars(BatchClient) | _inherited() if not name.startswith("_")} - _NO_OPERATIONS


def _inherited() -> dict[str, object]:
    return {name: member for base in BatchClient.__mro__ for name, member in vars(base).items()}


def _tests() -> list[str]:
    trees = [ast.parse((Path(__file__).parent / f"test_{area}.py").read_text(encoding="utf-8")) for area in _AREAS]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name.removeprefix("test_") for name in names if name.startswith("test_")]


def test_every_method_is_shown_to_work_or_named_as_absent() -> None:
    shown = _tests()

    assert len(shown) == len(set(shown))
    assert set(shown) | set(ABSENT) | _ALWAYS_REFUSED == _methods()
    assert not set(shown) & set(ABSENT)


def test_every_method_that_works_is_also_shown_to_be_refused() -> None:
    assert {refusal.method for refusal in REFUSALS} == set(_tests()) - _NEVER_REFUSED | _ALWAYS_REFUSED


@pytest.mark.parametrize("method", sorted(ABSENT))
def test_an_absent_operation_says_that_it_is_absent(stand: Stand, method: str) -> None:
    stand.job()
    stand.task()

    with pytest.raises(HttpResponseError) as refused:
        ABSENT[method](stand.client)

    assert refused.value.status_code == 501
    if refused.value.error:  # a HEAD has no body
        assert refused.value.error.code == "NotImplementedByEmulator"
