"""Whole blobs and conditional writes, against Azurite."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.errors import Conflict
from shared.storage.accounts import worker_container
from shared.storage.blob_container import BlobContainer
from shared.storage.failures import StorageFailed
from tests.storage.conftest import Tenant

NAMES = ["a/record.json", "with space.tif", "per%20cent.tif", "a+b&c=d#e?f.tif", "ümläut/日本.tif", "quote'(1).tif"]


@pytest.mark.parametrize("name", NAMES)
def test_any_blob_name_is_written_read_and_listed(tenant: Tenant, name: str) -> None:
    tenant.blobs.write(name, b"content")
    assert tenant.blobs.read(name) == b"content"
    assert tenant.blobs.size_bytes(name) == 7
    assert tenant.blobs.names(name) == [name]
    assert tenant.address.blob_url(name) == tenant.blobs.url(name)
    assert tenant.address.blob_name(tenant.blobs.url(name)) == name


def test_a_missing_blob_is_an_answer(tenant: Tenant) -> None:
    assert tenant.blobs.read("none") is None
    assert tenant.blobs.read_with_etag("none") is None
    assert tenant.blobs.read_range("none", 0, 10) is None
    assert tenant.blobs.size_bytes("none") is None
    assert tenant.blobs.names("none") == []


def test_a_missing_container_is_an_error(tenant: Tenant) -> None:
    missing = BlobContainer(worker_container(tenant.settings))
    for call in (
        lambda: missing.read("x"),
        lambda: missing.read_range("x", 0, 1),
        lambda: missing.size_bytes("x"),
        lambda: missing.names("x"),
        lambda: missing.write("x", b""),
        lambda: missing.create("x", b""),
        lambda: missing.replace("x", b"", '"0x1"'),
        lambda: list(missing.list_with_metadata("x")),
    ):
        with pytest.raises(StorageFailed, match="ContainerNotFound"):
            call()
    missing.ensure()
    missing.ensure()
    assert missing.read("x") is None


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 4, b"0123"), (8, 4, b"89"), (3, 1, b"3"), (10, 4, b""), (99, 4, b"")],
)
def test_a_range_ends_where_the_blob_ends(tenant: Tenant, offset: int, length: int, expected: bytes) -> None:
    tenant.blobs.write("x", b"0123456789")
    assert tenant.blobs.read_range("x", offset, length) == expected


def test_a_range_of_an_empty_blob_is_empty(tenant: Tenant) -> None:
    tenant.blobs.write("x", b"")
    assert tenant.blobs.read("x") == b""
    assert tenant.blobs.read_range("x", 0, 4) == b""


def test_create_changes_nothing_that_exists(tenant: Tenant) -> None:
    assert tenant.blobs.create("x", b"first") is True
    assert tenant.blobs.create("x", b"second") is False
    assert tenant.blobs.read("x") == b"first"


def test_a_write_conditional_on_what_was_read(tenant: Tenant) -> None:
    created = tenant.blobs.create_with_etag("x", b"1", {"state": "waiting"})
    read = tenant.blobs.read_with_etag("x")
    assert created is not None
    assert read == (b"1", created)
    assert list(tenant.blobs.list_with_metadata("")) == [("x", {"state": "waiting"}, created)]

    second = tenant.blobs.replace("x", b"2", created, {"state": "placed"})
    with pytest.raises(Conflict):
        tenant.blobs.replace("x", b"3", created)
    assert tenant.blobs.read_with_etag("x") == (b"2", second)
    assert list(tenant.blobs.list_with_metadata("")) == [("x", {"state": "placed"}, second)]

    with pytest.raises(Conflict):
        tenant.blobs.delete("x", created)
    tenant.blobs.delete("x", second)
    assert tenant.blobs.read("x") is None
    with pytest.raises(Conflict):
        tenant.blobs.delete("x", second)
    with pytest.raises(Conflict):
        tenant.blobs.replace("x", b"4", second)
    assert tenant.blobs.read("x") is None


def test_a_version_knows_when_it_was_written(tenant: Tenant) -> None:
    created = tenant.blobs.create_with_etag("x", b"1")
    read = tenant.blobs.read_with_etag("x")
    assert created is not None
    assert read is not None
    written_at = tenant.container.get_blob_client("x").get_blob_properties().last_modified
    replaced = tenant.blobs.replace("x", b"2", created)
    assert created.written_at == read[1].written_at == written_at
    assert replaced.written_at == tenant.container.get_blob_client("x").get_blob_properties().last_modified
    assert replaced.written_at.utcoffset() == timedelta()


def test_one_at_a_time_holds_a_lease(tenant: Tenant) -> None:
    first = tenant.blobs.acquire_lease("timer.lease", 60)
    assert first is not None
    assert tenant.blobs.acquire_lease("timer.lease", 60) is None
    tenant.blobs.release_lease("timer.lease", first)
    second = tenant.blobs.acquire_lease("timer.lease", 15)
    assert second is not None
    tenant.blobs.release_lease("timer.lease", first)  # run out long ago: the second stays
    assert tenant.blobs.acquire_lease("timer.lease", 15) is None
    assert tenant.blobs.renew_lease("timer.lease", second)
    assert not tenant.blobs.renew_lease("timer.lease", first), "somebody else's by now"
    tenant.blobs.release_lease("timer.lease", second)
    assert not tenant.blobs.renew_lease("timer.lease", second)
    assert not tenant.blobs.renew_lease("other.lease", second)
    tenant.blobs.release_lease("timer.lease", second)
    tenant.blobs.release_lease("other.lease", second)


def test_a_leased_blob_is_a_conflict(tenant: Tenant) -> None:
    etag = tenant.blobs.create_with_etag("x", b"1")
    assert etag is not None
    lease = tenant.container.get_blob_client("x").acquire_lease(15)
    with pytest.raises(Conflict):
        tenant.blobs.replace("x", b"2", etag)
    lease.release()


def test_names_are_those_at_the_prefix_and_lists_go_below_it(tenant: Tenant) -> None:
    for name in ("p/model_2.json", "p/model_1.json", "p/model_1/x.json", "p/other.json", "q/model_3.json"):
        tenant.blobs.write(name, b"{}")
    assert tenant.blobs.names("p/model_") == ["p/model_1.json", "p/model_2.json"]
    listed = [name for name, _metadata, _version in tenant.blobs.list_with_metadata("p/model_")]
    assert listed == ["p/model_1.json", "p/model_1/x.json", "p/model_2.json"]
