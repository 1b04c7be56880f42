"""The long-lived URLs in HASTE's records, against Azurite."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import AccessPolicy, ContainerClient, PublicAccess

from shared.errors import Transient
from shared.storage.blob_container import BlobContainer
from shared.storage.failures import StorageFailed
from shared.storage.reading_urls import ReadingUrls
from tests.storage.conftest import Tenant

POLICY = "image-layer-r-policy"
DAY = timedelta(days=1)


class CountingContainer:
    """The real container client; counts the reads and writes of its policies."""

    def __init__(self, client: ContainerClient) -> None:
        self._client = client
        self.reads = self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_container_access_policy(self) -> Any:
        self.reads += 1
        return self._client.get_container_access_policy()

    def set_container_access_policy(self, *args: Any, **kwargs: Any) -> Any:
        self.writes += 1
        return self._client.set_container_access_policy(*args, **kwargs)


@pytest.fixture
def counting(tenant: Tenant) -> CountingContainer:
    return CountingContainer(tenant.container)


@pytest.fixture
def reading_urls(tenant: Tenant, counting: CountingContainer) -> ReadingUrls:
    return reading_urls_of(tenant, counting)


def reading_urls_of(tenant: Tenant, counting: CountingContainer) -> ReadingUrls:
    return ReadingUrls(counting, tenant.settings.storage_account, POLICY, tenant.clock)  # type: ignore[arg-type]


def policies(tenant: Tenant) -> dict[str, tuple[str | None, datetime | None, datetime | None]]:
    """Permission, start and expiry of each stored policy."""
    found = tenant.container.get_container_access_policy()["signed_identifiers"]
    return {
        str(one.id): (one.access_policy.permission, _time(one.access_policy.start), _time(one.access_policy.expiry))
        if one.access_policy
        else (None, None, None)
        for one in found
    }


def _time(text: Any) -> datetime | None:
    return datetime.fromisoformat(f"{text[:19]}+00:00") if text else None


def test_the_url_has_hastes_shape_and_reads(tenant: Tenant, reading_urls: ReadingUrls) -> None:
    blobs = BlobContainer(tenant.container, reading_urls)
    blobs.write("a/x y.tif", b"content")
    url = blobs.reading_url("a/x y.tif")
    plain, query = url.split("?")
    assert plain == blobs.url("a/x y.tif")
    assert re.fullmatch(rf"sv=[\d-]+&si={POLICY}&sr=c&sig=[^&]+", query)
    assert url.split("?")[1] == blobs.reading_url("other").split("?")[1]
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"content"
    with pytest.raises(HttpResponseError):
        ContainerClient.from_container_url(f"{tenant.address.url}?{query}").upload_blob("y", b"")


def test_a_container_without_reading_urls_has_none(tenant: Tenant) -> None:
    with pytest.raises(NotImplementedError):
        tenant.blobs.reading_url("x")


def test_a_missing_policy_is_made_for_90_days_and_the_rest_stays(
    tenant: Tenant, reading_urls: ReadingUrls, counting: CountingContainer
) -> None:
    start, expiry = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2031, 1, 2, tzinfo=UTC)
    tenant.container.set_container_access_policy(
        {"theirs": AccessPolicy(permission="rwl", start=start, expiry=expiry), "bare": AccessPolicy(permission="r")},
        public_access=PublicAccess.BLOB,
    )
    reading_urls.token()
    found = policies(tenant)
    assert found["theirs"] == ("rwl", start, expiry)
    assert found["bare"] == ("r", None, None)
    permission, _, until = found[POLICY]
    assert permission == "r"
    assert until is not None
    assert timedelta() <= tenant.clock.now + 90 * DAY - until < timedelta(seconds=1)
    assert tenant.container.get_container_access_policy()["public_access"] == "blob"
    assert counting.writes == 1


@pytest.mark.parametrize(
    ("policy", "is_written"),
    [
        (lambda now: AccessPolicy(permission="r", expiry=now + 31 * DAY), False),
        (lambda now: AccessPolicy(permission="rl", expiry=now + 90 * DAY), False),
        (lambda now: AccessPolicy(permission="r", start=now - DAY, expiry=now + 31 * DAY), False),
        (lambda now: AccessPolicy(permission="r", expiry=now + 29 * DAY), True),
        (lambda now: AccessPolicy(permission="r", expiry=now - DAY), True),
        (lambda now: AccessPolicy(permission="r"), True),
        (lambda now: AccessPolicy(permission="l", expiry=now + 90 * DAY), True),
        (lambda now: AccessPolicy(permission="r", start=now + DAY, expiry=now + 90 * DAY), True),
    ],
)
def test_a_policy_is_written_only_when_it_needs_to_be(
    tenant: Tenant, reading_urls: ReadingUrls, counting: CountingContainer, policy: Any, is_written: bool
) -> None:
    tenant.container.set_container_access_policy({POLICY: policy(tenant.clock.now)})
    before = policies(tenant)
    reading_urls.token()
    assert counting.writes == int(is_written)
    assert (policies(tenant) != before) == is_written


def test_the_policy_is_looked_at_once_a_day_and_extended_in_time(
    tenant: Tenant, reading_urls: ReadingUrls, counting: CountingContainer
) -> None:
    tokens = set()
    for _ in range(200):
        tokens.add(reading_urls.token())
        tenant.clock.forward(timedelta(hours=12))
    assert len(tokens) == 1
    assert counting.reads == 100
    assert counting.writes == 2
    until = policies(tenant)[POLICY][2]
    assert until is not None
    assert until - tenant.clock.now >= 29 * DAY


def test_a_second_process_finds_the_policy_good(tenant: Tenant, reading_urls: ReadingUrls) -> None:
    reading_urls.token()
    second = CountingContainer(tenant.container)
    assert reading_urls_of(tenant, second).token() == reading_urls.token()
    assert (second.reads, second.writes) == (1, 0)


def test_a_sixth_policy_is_refused_and_nothing_is_lost(tenant: Tenant, reading_urls: ReadingUrls) -> None:
    five = {f"p{number}": AccessPolicy(permission="r", expiry=tenant.clock.now + DAY) for number in range(5)}
    tenant.container.set_container_access_policy(dict(five))
    with pytest.raises(StorageFailed, match=f"5 access policies .* {POLICY}"):
        reading_urls.token()
    assert policies(tenant).keys() == five.keys()


def test_a_failed_look_is_repeated_at_the_next_use(
    tenant: Tenant, counting: CountingContainer, reading_urls: ReadingUrls
) -> None:
    tenant.container.delete_container()
    with pytest.raises(StorageFailed, match="ContainerNotFound"):
        reading_urls.token()
    tenant.blobs.ensure()
    reading_urls.token()
    assert POLICY in policies(tenant)


def test_a_change_by_somebody_else_in_between_is_kept(tenant: Tenant, counting: CountingContainer) -> None:
    class Raced(CountingContainer):
        def set_container_access_policy(self, *args: Any, **kwargs: Any) -> Any:
            if self.writes == 0:
                theirs = AccessPolicy(permission="w", expiry=tenant.clock.now + DAY)
                assert kwargs["if_unmodified_since"] == tenant.container.get_container_properties().last_modified
                tenant.container.set_container_access_policy({"theirs": theirs})
                kwargs["if_unmodified_since"] = tenant.clock.now - DAY  # times have whole seconds; do not wait for one
            return super().set_container_access_policy(*args, **kwargs)

    reading_urls_of(tenant, Raced(tenant.container)).token()
    assert policies(tenant).keys() == {"theirs", POLICY}


def test_never_ending_changes_are_transient(tenant: Tenant) -> None:
    class Lost(CountingContainer):
        def set_container_access_policy(self, *args: Any, **kwargs: Any) -> Any:
            kwargs["if_unmodified_since"] = tenant.clock.now - DAY
            return super().set_container_access_policy(*args, **kwargs)

    with pytest.raises(Transient, match="others keep changing"):
        reading_urls_of(tenant, Lost(tenant.container)).token()


def test_a_url_stops_reading_when_its_policy_is_gone(tenant: Tenant, reading_urls: ReadingUrls) -> None:
    tenant.blobs.write("x", b"content")
    url = f"{tenant.blobs.url('x')}?{reading_urls.token()}"
    tenant.container.set_container_access_policy({})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url)
