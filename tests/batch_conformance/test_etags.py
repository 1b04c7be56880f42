"""Requests without a body, ETags, and conditions on them."""

from __future__ import annotations

import pytest

from tests.batch_conformance.wire import BEARER, POOL, VERSION, Wire


@pytest.fixture(autouse=True)
def resources(wire: Wire) -> None:
    wire.job()
    wire.task()


@pytest.mark.parametrize(("path", "status"), [("/jobs/job/tasks/task/terminate", 204), ("/jobs/job/terminate", 202)])
@pytest.mark.parametrize(
    "headers", [{"Content-Length": "0"}, {"Content-Length": "0", "Content-Type": "application/json"}]
)
def test_a_post_without_a_body(wire: Wire, path: str, status: int, headers: dict[str, str]) -> None:
    answer = wire.raw("POST", f"{path}?api-version={VERSION}", None, BEARER | headers)

    assert answer.status == status


@pytest.mark.parametrize("path", ["/jobs/job", f"/pools/{POOL}"])
@pytest.mark.parametrize("form", ['"{}"', "{}", "*"])
def test_if_match_may_be_quoted_bare_or_any(wire: Wire, path: str, form: str) -> None:
    etag = wire.get(path)["eTag"]

    answer = wire.send("PATCH", path, {"metadata": []}, headers={"If-Match": form.format(etag)})

    assert answer.status == 200


def test_every_write_gives_a_new_etag_and_header_and_body_agree(wire: Wire) -> None:
    writes = [
        ("PATCH", "/jobs/job", {"priority": 1}),
        ("PATCH", "/jobs/job", {"priority": 2}),
        ("POST", "/jobs/job/disable", {"disableTasks": "wait"}),
        ("POST", "/jobs/job/terminate", None),
    ]
    seen = [wire.get("/jobs/job")["eTag"]]
    for method, path, body in writes:
        header = wire.done(method, path, body).headers["ETag"]
        assert wire.get("/jobs/job")["eTag"] == header == wire.send("GET", "/jobs/job").headers["ETag"]
        seen.append(header)

    assert len(set(seen)) == len(writes) + 1
    assert all(etag.startswith("0x") for etag in seen)


@pytest.mark.parametrize("path", ["/jobs/job", "/jobs/job/tasks/task", f"/pools/{POOL}"])
def test_what_time_brings_gives_a_new_etag(wire: Wire, path: str) -> None:
    before = wire.get(path)["eTag"]

    if path.endswith("task"):
        wire.end()
    else:
        wire.done("DELETE", path)
    assert wire.get(path)["eTag"] != before


@pytest.mark.parametrize("path", ["/jobs/job", "/jobs/job/tasks/task", f"/pools/{POOL}"])
def test_a_condition_that_is_not_met_is_412_and_304_for_reads(wire: Wire, path: str) -> None:
    etag = wire.get(path)["eTag"]

    stale = wire.send("DELETE", path, headers={"If-Match": "0x0"})
    unchanged = wire.send("GET", path, headers={"If-None-Match": etag})

    assert stale.refusal == (412, "ConditionNotMet")
    assert wire.get(path)["eTag"] == etag
    assert (unchanged.status, unchanged.body) == (304, b"")
    assert wire.send("DELETE", path, headers={"If-None-Match": etag}).refusal == (412, "ConditionNotMet")
    assert wire.send("GET", path, headers={"If-Match": "0x0"}).refusal == (412, "ConditionNotMet")
