"""What the SAS of tasks allow, and for how long, against Azurite."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, ContainerClient

from shared.errors import Refused
from shared.settings.lifetimes import KEY_MAX_LIFE, MARGIN, sas_expiry
from tests.storage.conftest import Tenant

HOUR = timedelta(hours=1)
NAMES = ["plain.tif", "a/b c.tif", "per%20cent.tif", "a+b&c=d#e?f.tif", "ümläut.tif"]

# every operation on the blob `seen` of a container
OPERATIONS: dict[str, Callable[[ContainerClient], object]] = {
    "read": lambda c: c.download_blob("seen").readall(),
    "look": lambda c: c.get_blob_client("seen").get_blob_properties(),
    "list": lambda c: list(c.list_blobs()),
    "create": lambda c: c.upload_blob("new", b"1"),
    "overwrite": lambda c: c.upload_blob("seen", b"1", overwrite=True),
    "delete": lambda c: c.delete_blob("seen"),
    "properties": lambda c: c.get_container_properties(),
}


@pytest.fixture
def both(tenant: Tenant, other_tenant: Tenant) -> tuple[Tenant, Tenant]:
    for each in (tenant, other_tenant):
        each.blobs.write("seen", b"content")
        each.blobs.write("other", b"secret")
    return tenant, other_tenant


def allowed(container: Tenant, sas: str) -> set[str]:
    """The operations that a SAS allows in a tenant's container."""
    found = set()
    for name, operation in OPERATIONS.items():
        client = ContainerClient.from_container_url(f"{container.address.url}?{sas}")
        try:
            operation(client)
        except HttpResponseError as error:
            assert error.status_code == 403
        else:
            found.add(name)
    return found


def readable(tenant: Tenant, name: str, expiry: datetime) -> str:
    """URL of a blob with a SAS to read it."""
    return tenant.delegation.resign(tenant.address.blob_url(name), expiry)


def in_an_hour(tenant: Tenant) -> datetime:
    return sas_expiry(tenant.clock.now, HOUR, HOUR)


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_an_input_sas_reads_its_blob_and_nothing_else(both: tuple[Tenant, Tenant]) -> None:
    own, foreign = both
    sas = urlsplit(readable(own, "seen", in_an_hour(own))).query
    assert allowed(own, sas) == {"read", "look"}
    assert allowed(foreign, sas) == set()
    with pytest.raises(HttpResponseError) as raised:
        BlobClient.from_blob_url(f"{own.address.blob_url('other')}?{sas}").download_blob()
    assert raised.value.status_code == 403


def test_a_resigned_url_reads_its_blob_and_nothing_else(both: tuple[Tenant, Tenant]) -> None:
    own, foreign = both
    stored = f"{own.address.blob_url('seen')}?sv=2024-11-04&si=image-layer-r-policy&sr=c&sig=c2ln"
    sas = urlsplit(own.delegation.resign(stored, in_an_hour(own))).query
    assert "si=" not in sas
    assert allowed(own, sas) == {"read", "look"}
    assert allowed(foreign, sas) == set()


def test_an_output_sas_writes_and_never_reads_lists_or_deletes(both: tuple[Tenant, Tenant]) -> None:
    own, foreign = both
    url = own.delegation.container_write(own.address.url, in_an_hour(own))
    sas = urlsplit(url).query
    assert url.startswith(f"{own.address.url}?")
    assert allowed(own, sas) == {"create", "overwrite"}
    assert allowed(foreign, sas) == set()


def test_every_sas_is_for_https_signed_by_the_identity_and_backdated(tenant: Tenant) -> None:
    expiry = in_an_hour(tenant)
    for url in (
        tenant.delegation.container_write(tenant.address.url, expiry),
        tenant.delegation.resign(tenant.address.blob_url("x"), expiry),
    ):
        fields = query(url)
        assert fields["spr"] == "https"
        assert "skoid" in fields
        assert timedelta(minutes=5) <= tenant.clock.now - time(fields["st"]) <= timedelta(minutes=16)
        assert time(fields["st"]) >= time(fields["skt"])
        assert time(fields["se"]) == expiry


@pytest.mark.parametrize("name", NAMES)
def test_any_blob_name_can_be_signed(tenant: Tenant, name: str) -> None:
    tenant.blobs.write(name, b"content")
    expiry = in_an_hour(tenant)
    for url in (
        tenant.delegation.resign(tenant.blobs.url(name), expiry),
        tenant.delegation.resign(f"{tenant.blobs.url(name)}?sv=old&sig=old", expiry),
    ):
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == b"content"


def test_urls_of_others_stay_as_they_are(tenant: Tenant) -> None:
    own = tenant.address.url
    parts = urlsplit(own)
    account = own.rsplit("/", 1)[0]
    for url in (
        "https://open.example.org/image.tif",
        "https://open.example.org/image.tif?key=1&sig=abc",
        f"http://{parts.netloc}{parts.path}/x.tif?sig=abc",
        f"https://{parts.hostname}:1{parts.path}/x.tif?sig=abc",
        f"https://{parts.netloc}@open.example.org{parts.path}/x.tif",
        f"https://user@{parts.netloc}{parts.path}/x.tif",
        f"https://{parts.netloc}\\@open.example.org{parts.path}/x.tif",
        f"https://{parts.netloc}/otheraccount/data/x.tif?sig=abc",
        f"{account}/azure-webjobs-secrets/host.json",
        f"{account}/data2/x.tif",
        f"{own}/../haste-worker/active/x.json",
        f"{own}/%2E%2E/haste-worker/active/x.json",
        f"{own}/",
        own,
        "https://[broken/x.tif",
        "relative/x.tif",
        "",
    ):
        assert tenant.delegation.resign(url, in_an_hour(tenant)) == url
    assert tenant.service.asked == []


def test_an_expired_sas_is_refused(tenant: Tenant) -> None:
    tenant.blobs.write("seen", b"content")
    tenant.clock.forward(timedelta(days=-1))
    url = readable(tenant, "seen", tenant.clock.now + HOUR)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url)


def test_a_key_is_fetched_once_and_again_when_it_would_end_too_early(tenant: Tenant) -> None:
    run = timedelta(hours=6)
    day = timedelta(hours=24)
    for _ in range(3):
        readable(tenant, "x", sas_expiry(tenant.clock.now, day, run))
    assert len(tenant.service.asked) == 1

    keys = []
    for _ in range(20):
        tenant.clock.forward(timedelta(hours=22, minutes=59))
        expiry = sas_expiry(tenant.clock.now, day, run)
        fields = query(readable(tenant, "x", expiry))
        assert time(fields["se"]) <= time(fields["ske"])
        assert time(fields["se"]) - tenant.clock.now >= day + run
        keys.append(fields["ske"])
    assert len(tenant.service.asked) == len(set(keys)) == 4
    for start, expiry in tenant.service.asked:
        assert expiry - start <= KEY_MAX_LIFE


def test_the_longest_life_that_is_not_refused_can_be_signed_at_any_age_of_the_key(tenant: Tenant) -> None:
    longest = KEY_MAX_LIFE - 2 * MARGIN - HOUR
    for _ in range(3):
        fields = query(readable(tenant, "x", sas_expiry(tenant.clock.now, HOUR, longest)))
        assert time(fields["se"]) <= time(fields["ske"])
        tenant.clock.forward(timedelta(milliseconds=700))


def test_a_life_that_no_key_has_is_refused(tenant: Tenant) -> None:
    with pytest.raises(Refused, match="WORKER_MAX_WAIT"):
        readable(tenant, "x", tenant.clock.now + KEY_MAX_LIFE)


def test_a_key_shorter_than_it_was_asked_for_is_believed(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tenant.service.get_user_delegation_key

    def shorter(start: datetime, expiry: datetime) -> object:
        return given(start, expiry - timedelta(days=6))

    monkeypatch.setattr(tenant.service, "get_user_delegation_key", shorter)
    with pytest.raises(Refused):
        readable(tenant, "x", tenant.clock.now + timedelta(days=2))
    assert readable(tenant, "x", tenant.clock.now + HOUR)
