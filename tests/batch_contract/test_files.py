"""What the SDK's methods for a task's files do, each in a test of its name."""

from __future__ import annotations

import pytest

from tests.batch_contract.stand import Stand

_LOG = "wd/out dir/ä+b%.log"


@pytest.fixture(autouse=True)
def files(stand: Stand) -> None:
    stand.job()
    stand.task()
    stand.runner.put_file("job", "task", _LOG, b"0123456789")
    stand.runner.put_file("job", "task", "wd/out dir/more/empty", b"")


def test_list_task_files(stand: Stand) -> None:
    top = {file.name: file for file in stand.client.list_task_files("job", "task")}
    deep = {file.name: file for file in stand.client.list_task_files("job", "task", recursive=True)}

    assert set(top) == {"stdout.txt", "stderr.txt", "wd"}
    assert set(deep) == {*top, "wd/out dir", _LOG, "wd/out dir/more", "wd/out dir/more/empty"}
    assert [top["wd"].is_directory, top["wd"].properties] == [True, None]
    log = deep[_LOG]
    assert log.is_directory is False
    assert log.properties
    assert (log.properties.content_length, log.properties.content_type) == (10, "text/plain")
    assert log.properties.last_modified
    assert log.properties.creation_time
    assert log.url
    assert log.url.endswith("/jobs/job/tasks/task/files/wd/out%20dir/%C3%A4%2Bb%25.log")


def test_get_task_file_properties(stand: Stand) -> None:
    properties = stand.client.get_task_file_properties("job", "task", _LOG)

    assert (properties.content_length, properties.is_directory) == (10, False)
    assert properties.creation_time
    assert properties.url
    assert properties.file_mode == "0100644"


def test_download_task_file(stand: Stand) -> None:
    assert b"".join(stand.client.download_task_file("job", "task", _LOG)) == b"0123456789"
    assert b"".join(stand.client.download_task_file("job", "task", _LOG, ocp_range="bytes=2-4")) == b"234"
    assert b"".join(stand.client.download_task_file("job", "task", _LOG, ocp_range="bytes=8-4095")) == b"89"
    assert b"".join(stand.client.download_task_file("job", "task", "stdout.txt")) == b""


def test_delete_task_file(stand: Stand) -> None:
    stand.client.delete_task_file("job", "task", _LOG)
    stand.client.delete_task_file("job", "task", "wd/out dir", recursive=True)

    assert {file.name for file in stand.client.list_task_files("job", "task", recursive=True)} == {
        "stdout.txt",
        "stderr.txt",
        "wd",
    }
