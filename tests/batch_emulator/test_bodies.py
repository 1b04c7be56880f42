"""Request bodies are checked as Batch does."""

import json
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.batch import BatchClient, models

from local.batch import World, shapes
from local.batch.errors import BatchError
from tests.batch_emulator.support import BEARER, POOL, VERSION, make_job

_JOB: dict[str, Any] = {"id": "j", "poolInfo": {"poolId": POOL}}
_TASK: dict[str, Any] = {"id": "t", "commandLine": "x"}
_OUTPUT = {
    "filePattern": "*",
    "destination": {"container": {"containerUrl": "https://a/c"}},
    "uploadOptions": {"uploadCondition": "taskcompletion"},
}


def _post(world: World, path: str, body: Any) -> tuple[int, str, str]:
    response = world.handle("POST", path, VERSION, BEARER, json.dumps(body).encode())
    answer = response.json()
    if response.status < 400:
        return response.status, "", ""
    values = {value["key"]: value["value"] for value in answer.get("values", ())}
    return response.status, answer["code"], values.get("PropertyName", "")


@pytest.mark.parametrize(
    ("changes", "code", "name"),
    [
        ({"colour": "red"}, "InvalidRequestBody", "colour"),
        ({"poolInfo": {"poolId": POOL, "colour": 1}}, "InvalidRequestBody", "poolInfo.colour"),
        ({"id": None}, "MissingRequiredProperty", "id"),
        ({"id": "a b"}, "InvalidPropertyValue", "id"),
        ({"id": "x" * 65}, "InvalidPropertyValue", "id"),
        ({"id": 5}, "InvalidPropertyValue", "id"),
        ({"poolInfo": None}, "MissingRequiredProperty", "poolInfo"),
        ({"poolInfo": {}}, "MissingRequiredProperty", "poolInfo.poolId"),
        ({"poolInfo": "pool"}, "InvalidPropertyValue", "poolInfo"),
        ({"priority": 1001}, "OutOfRangePriority", "priority"),
        ({"priority": "high"}, "InvalidPropertyValue", "priority"),
        ({"priority": True}, "InvalidPropertyValue", "priority"),
        ({"constraints": {"maxWallClockTime": "2h"}}, "InvalidPropertyValue", "constraints.maxWallClockTime"),
        ({"onAllTasksComplete": "explode"}, "InvalidPropertyValue", "onAllTasksComplete"),
        ({"metadata": [{"name": "a"}]}, "MissingRequiredProperty", "metadata[0].value"),
        ({"usesTaskDependencies": "yes"}, "InvalidPropertyValue", "usesTaskDependencies"),
    ],
)
def test_jobs(world: World, changes: dict[str, Any], code: str, name: str) -> None:
    assert _post(world, "/jobs", _JOB | changes) == (400, code, name)


@pytest.mark.parametrize(
    ("changes", "code", "name"),
    [
        ({"commandline": "x"}, "InvalidRequestBody", "commandline"),
        ({"id": None}, "MissingRequiredProperty", "id"),
        ({"commandLine": None}, "MissingRequiredProperty", "commandLine"),
        ({"commandLine": "x" * 32769}, "InvalidPropertyValue", "commandLine"),
        ({"requiredSlots": 0}, "OutOfRangeInput", "requiredSlots"),
        ({"outputFiles": [_OUTPUT | {"filePattern": None}]}, "MissingRequiredProperty", "outputFiles[0].filePattern"),
        ({"outputFiles": _OUTPUT}, "InvalidPropertyValue", "outputFiles"),
        ({"resourceFiles": [{"filePath": "x"}]}, "InvalidPropertyValue", "resourceFiles[0]"),
        ({"resourceFiles": [{"httpUrl": "https://a/b/c"}]}, "MissingRequiredProperty", "resourceFiles[0].filePath"),
        ({"containerSettings": {}}, "MissingRequiredProperty", "containerSettings.imageName"),
        ({"userIdentity": {"autoUser": {"scope": "world"}}}, "InvalidPropertyValue", "userIdentity.autoUser.scope"),
    ],
)
def test_tasks(client: BatchClient, world: World, changes: dict[str, Any], code: str, name: str) -> None:
    make_job(client)

    assert _post(world, "/jobs/job/tasks", _TASK | changes) == (400, code, name)
    assert world.job("job").tasks == {}


def test_what_the_emulator_would_ignore_is_refused(client: BatchClient, world: World) -> None:
    make_job(client)

    status, code, _ = _post(world, "/jobs/job/tasks", _TASK | {"dependsOn": {"taskIds": ["a"]}})

    assert (status, code) == (501, "NotImplementedByEmulator")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff"])
def test_what_is_no_json_object_is_refused(world: World, body: bytes) -> None:
    response = world.handle("POST", "/jobs", VERSION, BEARER, body)

    assert (response.status, response.json()["code"]) == (400, "InvalidRequestBody")


def test_an_error_does_not_repeat_a_value_that_may_be_secret(client: BatchClient, world: World) -> None:
    make_job(client)
    body = _TASK | {"containerSettings": "https://a/b?sig=secret"}

    response = world.handle("POST", "/jobs/job/tasks", VERSION, BEARER, json.dumps(body).encode())

    assert response.status == 400
    assert b"secret" not in response.body


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (models.BatchJobCreateOptions, shapes.NEW_JOB),
        (models.BatchJobUpdateOptions, shapes.JOB_PATCH),
        (models.BatchJobDisableOptions, shapes.JOB_DISABLE),
        (models.BatchTaskCreateOptions, shapes.NEW_TASK),
        (models.BatchPoolCreateOptions, shapes.NEW_POOL),
        (models.BatchPoolUpdateOptions, shapes.POOL_PATCH),
        (models.BatchPoolResizeOptions, shapes.POOL_RESIZE),
        (models.BatchPoolEnableAutoScaleOptions, shapes.POOL_ENABLE_AUTOSCALE),
        (models.BatchNodeDisableSchedulingOptions, shapes.NODE_DISABLE_SCHEDULING),
    ],
)
def test_every_property_that_the_sdk_can_send_is_known(model: type, shape: Callable[[str, Any], None]) -> None:
    paths = list(_bodies(model))

    assert paths
    for body in paths:
        try:
            shape("", body)
        except BatchError as error:
            assert error.code != "InvalidRequestBody", (body, error.details)


_MODEL: Any = models.BatchPool.__base__


def _bodies(model: type, depth: int = 6) -> Iterator[dict[str, Any]]:
    """For each property of an SDK model and of the models in it, a body that has this one only, with a value of no kind
    that JSON knows."""
    for name, hint in _properties(model):
        yield {name: object()}
        inner = [found for found in _leaves(hint) if isinstance(found, type) and issubclass(found, _MODEL)]
        for part in inner if depth else ():
            for body in _bodies(part, depth - 1):
                yield {name: [body] if "list[" in str(hint) else body}


def _properties(model: type) -> Iterator[tuple[str, Any]]:
    module = vars(sys.modules[model.__module__]) | {"_models": sys.modules[model.__module__]}
    for base in model.__mro__:
        for attribute, field in vars(base).items():
            if type(field).__name__ == "_RestField" and field._visibility != ["read"]:
                hint = base.__annotations__[attribute]
                yield field._rest_name_input or attribute, eval(hint, module) if isinstance(hint, str) else hint


def _leaves(hint: Any) -> Iterator[Any]:
    if isinstance(hint, (str, typing.ForwardRef)):
        name = hint if isinstance(hint, str) else hint.__forward_arg__
        yield getattr(models, name.rpartition(".")[2], None)
    elif typing.get_args(hint):
        for part in typing.get_args(hint):
            yield from _leaves(part)
    else:
        yield hint
