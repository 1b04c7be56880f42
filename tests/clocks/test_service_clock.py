"""The time by a service's clock, from the `Date` header of its answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobServiceClient

from local.batch import ACCOUNT_KEY, InProcessTransport, ManualClock, World
from shared.batch.client import AzureBatch, connect
from shared.service_clock import ServiceClock
from tests.support.passing_waits import PassingWaits

NOON = datetime(2026, 8, 12, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class Host:
    """A host's clock, moved by hand."""

    def __init__(self) -> None:
        self.at = NOON
        self.clock = ServiceClock(lambda: self.at)

    def hears(self, date: str, **headers: str) -> None:
        answered = {"x-ms-request-id": "1", "Date": date} if not headers else {"Date": date, **headers}
        self.clock.heard(SimpleNamespace(http_response=SimpleNamespace(headers=answered)))


def test_until_a_service_has_answered_the_hosts_clock_stands_in() -> None:
    assert Host().clock.now() == NOON


@pytest.mark.parametrize(
    ("date", "differs"),
    [
        ("Wed, 12 Aug 2026 11:55:00 GMT", timedelta(minutes=-5)),
        ("Wed, 12 Aug 2026 12:00:30 GMT", timedelta(seconds=30)),
        ("Thu, 13 Aug 2026 12:00:00 GMT", timedelta(days=1)),
        ("Wed, 12 Aug 2026 11:59:58 GMT", timedelta()),
        ("Wed, 12 Aug 2026 12:00:02 GMT", timedelta()),
    ],
)
def test_an_answer_tells_how_far_it_is_and_the_hosts_clock_what_has_passed_since(date: str, differs: timedelta) -> None:
    """Two seconds are the header's whole second, and the way of the answer."""
    host = Host()
    host.hears(date)
    assert host.clock.now() == NOON + differs
    host.at += timedelta(seconds=7)
    assert host.clock.now() == NOON + differs + timedelta(seconds=7)


def test_an_answer_that_took_long_is_corrected_by_the_next_one() -> None:
    host = Host()
    host.hears("Wed, 12 Aug 2026 11:59:40 GMT")
    assert host.clock.now() == NOON - timedelta(seconds=20), "late rather than early"
    host.hears("Wed, 12 Aug 2026 12:00:00 GMT")
    assert host.clock.now() == NOON


def test_when_the_hosts_clock_is_set_the_next_answer_tells() -> None:
    host = Host()
    host.hears("Wed, 12 Aug 2026 12:05:00 GMT")
    host.at += timedelta(minutes=5)
    host.hears("Wed, 12 Aug 2026 12:05:01 GMT")
    assert host.clock.now() == NOON + timedelta(minutes=5, seconds=1)


@pytest.mark.parametrize("date", ["", "soon", "Wed, 12 Aug 2026 11:55:00 -0000", "2026-08-12T11:55:00Z"])
def test_what_is_no_time_is_passed_over(date: str) -> None:
    host = Host()
    host.hears(date)
    assert host.clock.now() == NOON


def test_what_a_proxy_answers_is_not_the_services_time() -> None:
    host = Host()
    host.hears("Wed, 12 Aug 2026 11:55:00 GMT", Server="proxy")
    assert host.clock.now() == NOON


@pytest.mark.parametrize("wrong", [timedelta(hours=1), timedelta(hours=-1)])
def test_the_storage_client_tells_the_storages_time(storage_account: Any, wrong: timedelta) -> None:
    clock = ServiceClock(lambda: datetime.now(UTC) + wrong)
    connection = storage_account.connection_string
    service = BlobServiceClient.from_connection_string(connection, raw_response_hook=clock.heard)
    service.get_container_client("haste-worker").exists()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=5)


@pytest.mark.parametrize("status", [200, 503])
def test_the_batch_client_tells_batchs_time_also_by_a_refusal(status: int) -> None:
    batchs = ManualClock()
    world = World.from_json({"pools": []}, clock=batchs)
    host = NOON
    clock = ServiceClock(lambda: host)
    credential = AzureNamedKeyCredential("localbatch", ACCOUNT_KEY)
    transport = InProcessTransport(world)
    client = connect("https://batch.local", credential, transport=transport, raw_response_hook=clock.heard)
    if status != 200:
        world.faults.add({"operation": "list_pools", "status": status, "times": 1})
    AzureBatch(client).pools()
    assert abs(clock.now() - batchs.now()) < timedelta(seconds=2)
    batchs.advance(3600)
    AzureBatch(client).pool_counts()
    assert abs(clock.now() - batchs.now()) < timedelta(seconds=2)
