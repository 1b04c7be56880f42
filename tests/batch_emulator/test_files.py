"""A task's files through the API."""

from typing import Any

import pytest
from azure.batch import BatchClient
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from local.batch import World
from tests.batch_emulator.support import POOL, act, make_job, make_task, refusal, runner_of

_LOG = "wd/out dir/a+b.log"


@pytest.fixture(autouse=True)
def task(client: BatchClient, world: World) -> None:
    make_job(client)
    make_task(client)
    runner_of(world).put_file("job", "task", _LOG, b"0123456789")
    runner_of(world).put_file("job", "task", "wd/out dir/empty", b"")


def _names(client: BatchClient, **options: Any) -> list[str]:
    return [str(file.name) for file in client.list_task_files("job", "task", **options)]


def test_files_are_listed_at_the_top_or_all(client: BatchClient) -> None:
    assert _names(client) == ["stderr.txt", "stdout.txt", "wd"]
    assert _names(client, recursive=True) == [
        "stderr.txt",
        "stdout.txt",
        "wd",
        "wd/out dir",
        _LOG,
        "wd/out dir/empty",
    ]
    assert _names(client, recursive=True, filter="startswith(name,'wd/out dir/a')") == [_LOG]
    (log,) = client.list_task_files("job", "task", recursive=True, filter=f"name eq '{_LOG}'")
    assert log.is_directory is False
    assert log.properties and log.properties.content_length == 10


def test_bytes_whole_and_in_part(client: BatchClient) -> None:
    def read(**options: Any) -> bytes:
        return b"".join(client.download_task_file("job", "task", _LOG, **options))

    assert read() == b"0123456789"
    assert read(ocp_range="bytes=0-3") == b"0123"
    assert read(ocp_range="bytes=4-") == b"456789"
    assert read(ocp_range="bytes=8-4095") == b"89"
    with pytest.raises(HttpResponseError) as behind:
        read(ocp_range="bytes=10-")
    assert behind.value.status_code == 416


def test_properties(client: BatchClient) -> None:
    properties = client.get_task_file_properties("job", "task", _LOG)

    assert properties.content_length == 10
    assert properties.is_directory is False
    assert properties.url and "out%2520dir" in properties.url
    with pytest.raises(ResourceNotFoundError):
        client.get_task_file_properties("job", "task", "wd/none")


def test_missing_files_are_404(client: BatchClient) -> None:
    with pytest.raises(ResourceNotFoundError) as missing:
        b"".join(client.download_task_file("job", "task", "wd/none"))

    response: Any = missing.value.response
    response.read()
    assert response.json()["code"] == "FileNotFound"


def test_deleting_files_and_directories(client: BatchClient) -> None:
    client.delete_task_file("job", "task", _LOG)
    assert _LOG not in _names(client, recursive=True)
    with pytest.raises(HttpResponseError):
        client.delete_task_file("job", "task", "wd/out dir")
    client.delete_task_file("job", "task", "wd/out dir", recursive=True)
    assert _names(client, recursive=True) == ["stderr.txt", "stdout.txt", "wd"]


def test_a_task_that_never_ran_has_no_files(client: BatchClient) -> None:
    make_task(client, "waiting")
    client.terminate_task("job", "waiting")

    with pytest.raises(ResourceExistsError) as refused:
        list(client.list_task_files("job", "waiting"))

    assert refusal(refused.value) == (409, "TaskFilesUnavailable")


def test_files_go_with_their_node(client: BatchClient, world: World) -> None:
    runner_of(world).finish("job", "task")
    act(client, f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 0})
    world.advance(1)

    with pytest.raises(ResourceExistsError) as refused:
        list(client.list_task_files("job", "task"))

    assert refusal(refused.value) == (409, "TaskFilesUnavailable")


def test_files_are_cleaned_up_after_the_retention_time(client: BatchClient, world: World) -> None:
    act(
        client,
        "/jobs/job/tasks",
        {"id": "kept", "commandLine": "x", "constraints": {"retentionTime": "PT1H"}},
    )
    runner_of(world).finish("job", "task")
    runner_of(world).finish("job", "kept")

    world.advance(3599)
    assert [file.name for file in client.list_task_files("job", "kept")] == ["stderr.txt", "stdout.txt", "wd"]
    world.advance(1)

    with pytest.raises(ResourceExistsError) as refused:
        list(client.list_task_files("job", "kept"))
    assert refusal(refused.value) == (409, "TaskFilesCleanedup")
    assert _names(client) == ["stderr.txt", "stdout.txt", "wd"]
