"""HASTE's container within one message: what was read is not read again, and what was written is not taken for read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from azure.storage.blob import BlobServiceClient

from bench.storage_service import StorageService
from shared.errors import Conflict
from shared.storage.blob_container import BlobContainer
from shared.storage.reading_once import HasteContainer, reading_once

CONNECTION = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=YQ==;EndpointSuffix=core.windows.net"


@pytest.fixture
def service() -> StorageService:
    return StorageService(lambda: datetime(2026, 8, 10, tzinfo=UTC))


def container(service: StorageService, kind: type[BlobContainer] = HasteContainer) -> BlobContainer:
    client = BlobServiceClient.from_connection_string(CONNECTION, transport=service).get_container_client("data")
    made = kind(client)
    made.ensure()
    return made


def test_inside_a_blob_is_read_once_and_a_prefix_listed_once(service: StorageService) -> None:
    haste = container(service)
    haste.write("p/labels_1.json", b"1")
    service.calls.clear()
    with reading_once():
        for _ in range(3):
            assert haste.read("p/labels_1.json") == b"1"
            assert haste.names("p/labels_") == ["p/labels_1.json"]
            found = haste.read_with_etag("p/labels_1.json")
            assert found is not None
    assert service.calls == {"read blob": 1, "list blobs": 1}
    haste.read("p/labels_1.json")
    haste.read("p/labels_1.json")
    assert service.calls["read blob"] == 3, "outside it is read each time"


def test_what_is_not_there_is_looked_for_again(service: StorageService) -> None:
    haste, api = container(service), container(service, BlobContainer)
    with reading_once():
        assert haste.read("late") is None
        assert haste.names("late") == []
        api.write("late", b"saved")
        assert haste.read("late") == b"saved"
        assert haste.names("late") == ["late"]


def test_a_write_of_our_own_is_seen(service: StorageService) -> None:
    haste = container(service)
    haste.write("x", b"1")
    with reading_once():
        found = haste.read_with_etag("x")
        assert found is not None
        haste.replace("x", b"2", found[1])
        assert haste.read("x") == b"2"
        haste.write("x", b"3")
        assert haste.read("x") == b"3"
        assert haste.names("") == ["x"]
        assert haste.create("y", b"1")
        assert haste.names("") == ["x", "y"]


def test_a_write_on_an_old_reading_is_lost_and_read_anew(service: StorageService) -> None:
    haste, api = container(service), container(service, BlobContainer)
    haste.write("x", b"1")
    with reading_once():
        found = haste.read_with_etag("x")
        assert found is not None
        api.write("x", b"of HASTE's API")
        with pytest.raises(Conflict):
            haste.replace("x", b"2", found[1])
        assert haste.read("x") == b"of HASTE's API"


def test_two_messages_share_nothing(service: StorageService) -> None:
    haste, api = container(service), container(service, BlobContainer)
    haste.write("x", b"1")
    for expected in (b"1", b"2"):
        with reading_once():
            assert haste.read("x") == expected
            api.write("x", b"2")
