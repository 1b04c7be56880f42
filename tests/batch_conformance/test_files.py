"""A task's files on its node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.batch_conformance.wire import POOL, Wire

_FILES = "/jobs/job/tasks/task/files"
_LOG = f"{_FILES}/wd%2Fout%20dir%2Fx.log"


@pytest.fixture(autouse=True)
def task(wire: Wire) -> None:
    wire.job()
    wire.task()
    wire.write("wd/out dir/x.log", b"13 characters")


def test_a_task_has_its_two_streams_and_a_working_directory(wire: Wire) -> None:
    top = {file["name"]: file for file in wire.list(_FILES)}
    deep = {file["name"]: file for file in wire.list(_FILES, recursive="true")}

    assert {name: file["isDirectory"] for name, file in top.items()} == {
        "stdout.txt": False,
        "stderr.txt": False,
        "wd": True,
    }
    assert set(deep) == {*top, "wd/out dir", "wd/out dir/x.log"}


def test_lists_write_a_length_as_text_and_times_as_batch_does(wire: Wire) -> None:
    (log,) = wire.list(_FILES, recursive="true", _filter="startswith(name,'wd/out dir/x')")

    properties = log["properties"]
    assert properties["contentLength"] == "13"
    assert properties["contentType"] == "text/plain"
    for name in ("creationTime", "lastModified"):
        assert properties[name].endswith("Z")
        assert len(properties[name]) == len("2026-11-30T00:00:00.1234567Z")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_headers_of_a_file(wire: Wire, method: str) -> None:
    answer = wire.send(method, _LOG)

    headers = answer.headers
    assert (answer.status, answer.body) == (200, b"13 characters" if method == "GET" else b"")
    assert (headers["Content-Length"], headers["Content-Type"]) == ("13", "text/plain")
    assert headers["Last-Modified"]
    assert headers["ocp-creation-time"]
    assert headers["ocp-batch-file-isdirectory"] == "False"
    assert headers["ocp-batch-file-mode"] == "0100644"
    assert "x.log" in headers["ocp-batch-file-url"]
    assert " " not in headers["ocp-batch-file-url"]


def test_a_file_that_is_not_there_is_404(wire: Wire) -> None:
    assert wire.send("GET", f"{_FILES}/wd%2Fnone").refusal == (404, "FileNotFound")
    assert wire.send("HEAD", f"{_FILES}/wd%2Fnone").status == 404
    assert wire.send("DELETE", f"{_FILES}/wd%2Fnone").refusal == (404, "FileNotFound")


@pytest.mark.parametrize("loss", ["resize", "preempt"])
def test_the_files_are_unavailable_when_the_node_is_gone(wire: Wire, loss: str) -> None:
    wire.end()
    node = wire.list(f"/pools/{POOL}/nodes")[0]["id"]
    if loss == "resize":
        wire.done("POST", f"/pools/{POOL}/resize", {"targetLowPriorityNodes": 0})
    else:
        wire.admin("POST", f"/pools/{POOL}/nodes/{node}/preempt", {"return_after_seconds": 0})
    wire.advance(1)

    answers: list[Any] = [wire.send("GET", path) for path in (_FILES, _LOG, f"{_FILES}/stdout.txt")]
    assert [answer.refusal for answer in answers] == [(409, "TaskFilesUnavailable")] * 3
    assert wire.state() == "completed"
