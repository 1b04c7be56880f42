"""What the worker makes of the service's refusals and silences."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timedelta

import pytest
from azure.core.pipeline.transport import HttpTransport

from local.certificates import Certificates
from local.stack.azurite import StorageAccount
from local.stack.settings import Identity
from shared.errors import Conflict, NeedsOperator, Transient
from shared.identity import AppIdentity
from shared.settings.lifetimes import sas_expiry
from shared.settings.values import StorageAccount as Account
from shared.storage.accounts import (
    CONNECT_TIMEOUT_SECONDS,
    READ_TIMEOUT_SECONDS,
    RETRIES,
    delegating_service,
    haste_container,
    queues,
)
from shared.storage.addresses import ContainerAddress
from shared.storage.blob_container import BlobContainer
from shared.storage.delegation import Delegation
from shared.storage.failures import StorageAccessDenied, StorageFailed
from shared.storage.queues import QueueReader, WorkerQueue
from shared.storage.reading_urls import ReadingUrls
from tests.storage.conftest import Clock, settings_for
from tests.storage.stub_service import answering
from tests.support.identity_endpoint import UNKNOWN, app_with_one_identity

HOUR = timedelta(hours=1)

CALLS: dict[str, Callable[[StorageAccount], object]] = {
    "read": lambda account: _blobs(account).read("x"),
    "read version": lambda account: _blobs(account).read_with_etag("x"),
    "range": lambda account: _blobs(account).read_range("x", 0, 4),
    "size": lambda account: _blobs(account).size_bytes("x"),
    "write": lambda account: _blobs(account).write("x", b"1"),
    "create": lambda account: _blobs(account).create("x", b"1"),
    "replace": lambda account: _blobs(account).replace("x", b"1", '"0x1"'),
    "delete": lambda account: _blobs(account).delete("x", '"0x1"'),
    "names": lambda account: _blobs(account).names("x"),
    "list": lambda account: list(_blobs(account).list_with_metadata("x")),
    "key": lambda account: _mint(account),
    "policy": lambda account: _reading_urls(account).token(),
    "send": lambda account: WorkerQueue(queues(settings_for(account)), "haste-worker-jobs").send("{}"),
    "take": lambda account: QueueReader(queues(settings_for(account))).take("train-queue-poison", 8),
}


#: Calls for which a blob that is not there is an answer: by GET, by GET of a range, by HEAD.
ABSENT = ("read", "read version", "range", "size")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the SDK would have made between its tries, in seconds."""
    seconds: list[float] = []
    monkeypatch.setattr(HttpTransport, "sleep", lambda _transport, pause: seconds.append(pause))
    return seconds


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("status", [408, 429, 503])
def test_an_outage_is_transient_and_waited_for_briefly(
    status: int,
    call: Callable[[StorageAccount], object],
    certificates: Certificates,
    identity_endpoint: Identity,
    pauses: list[float],
) -> None:
    with answering(status, "ServerBusy", certificates) as stub, pytest.raises(Transient, match=f"{status} ServerBusy"):
        call(stub.account)
    tries = len(stub.requests)
    assert tries == (1 if status == 429 else 1 + RETRIES)  # the SDK gives up at 429, and the worker waits instead
    assert sum(pauses) + tries * (CONNECT_TIMEOUT_SECONDS + READ_TIMEOUT_SECONDS) < 55


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_answer_is_transient(
    call: Callable[[StorageAccount], object], identity_endpoint: Identity, pauses: list[float]
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{probe.getsockname()[1]}/stubbed"
    with pytest.raises(Transient, match="no answer"):
        call(StorageAccount("stubbed", "a2V5", url, url, url))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_refusal_is_explained_and_never_retried(
    call: Callable[[StorageAccount], object],
    certificates: Certificates,
    identity_endpoint: Identity,
    pauses: list[float],
) -> None:
    code = "AuthorizationFailure"
    with answering(403, code, certificates) as stub, pytest.raises(StorageAccessDenied, match="network rule") as raised:
        call(stub.account)
    assert raised.value.code == code
    assert "request-1" in str(raised.value)
    assert (len(stub.requests), pauses) == (1, [])


@pytest.mark.parametrize("call", ["read", "key", "send"])
@pytest.mark.parametrize(
    ("code", "explanation"),
    [
        ("AuthorizationPermissionMismatch", "lacks the role"),
        ("AuthenticationFailed", "clock"),
        ("KeyBasedAuthenticationNotPermitted", "does not allow its keys"),
        ("Unheard", "network rule .* role .* clock"),
    ],
)
def test_every_code_of_a_refusal_has_its_explanation(
    code: str, explanation: str, call: str, certificates: Certificates, identity_endpoint: Identity, pauses: list[float]
) -> None:
    with answering(403, code, certificates) as stub, pytest.raises(StorageAccessDenied, match=explanation):
        CALLS[call](stub.account)
    assert (len(stub.requests), pauses) == (1, [])


@pytest.mark.parametrize(
    ("call", "role"),
    [
        ("key", "Storage Blob Delegator"),
        ("read", "Storage Blob Data Owner or Storage Blob Data Contributor"),
        ("send", "Storage Queue Data Contributor"),
    ],
)
def test_a_missing_role_is_named(call: str, role: str, certificates: Certificates, identity_endpoint: Identity) -> None:
    with (
        answering(403, "AuthorizationPermissionMismatch", certificates) as stub,
        pytest.raises(StorageAccessDenied, match=f"lacks the role {role}"),
    ):
        CALLS[call](stub.account)


def test_an_identity_that_is_refused_is_told_as_that(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """It signs what tasks get, so no task can be made."""
    with (
        app_with_one_identity(monkeypatch, UNKNOWN),
        answering(200, "", certificates) as stub,
        pytest.raises(NeedsOperator, match="the identity endpoint answered 400; AZURE_CLIENT_ID is"),
    ):
        CALLS["key"](stub.account)
    assert (stub.requests, pauses) == ([], [])


def test_any_other_refusal_is_final(certificates: Certificates) -> None:
    with answering(400, "InvalidHeaderValue", certificates) as stub, pytest.raises(StorageFailed) as raised:
        _blobs(stub.account).read("x")
    assert not isinstance(raised.value, Transient)
    assert raised.value.code == "InvalidHeaderValue"


@pytest.mark.parametrize(
    ("status", "code"),
    [(412, "ConditionNotMet"), (404, "BlobNotFound"), (412, "LeaseIdMissing"), (409, "BlobAlreadyExists")],
)
@pytest.mark.parametrize("call", ["replace", "delete"])
def test_a_lost_condition_is_a_conflict(call: str, status: int, code: str, certificates: Certificates) -> None:
    with answering(status, code, certificates) as stub, pytest.raises(Conflict, match="by somebody else"):
        CALLS[call](stub.account)


@pytest.mark.parametrize("call", ABSENT)
def test_a_blob_is_absent_where_the_service_itself_says_so(call: str, certificates: Certificates) -> None:
    with answering(404, "BlobNotFound", certificates) as stub:
        assert CALLS[call](stub.account) is None


@pytest.mark.parametrize("code", ["", "ContainerNotFound", "ResourceNotFound"], ids=["proxy", "container", "other"])
@pytest.mark.parametrize("call", [*ABSENT, "replace", "delete"])
def test_any_other_404_is_an_error_and_never_absence(call: str, code: str, certificates: Certificates) -> None:
    with answering(404, code, certificates) as stub, pytest.raises(StorageFailed, match="404") as raised:
        CALLS[call](stub.account)
    assert raised.value.code == (code or None)


@pytest.mark.parametrize(("status", "code"), [(409, "BlobAlreadyExists"), (412, "ConditionNotMet")])
def test_a_blob_that_exists_is_not_created(status: int, code: str, certificates: Certificates) -> None:
    with answering(status, code, certificates) as stub:
        assert CALLS["create"](stub.account) is False


def test_a_container_that_is_being_deleted_is_transient(certificates: Certificates, pauses: list[float]) -> None:
    with answering(409, "ContainerBeingDeleted", certificates) as stub, pytest.raises(Transient):
        _blobs(stub.account).write("x", b"1")


def _blobs(account: StorageAccount) -> BlobContainer:
    return BlobContainer(haste_container(settings_for(account)))


def _mint(account: StorageAccount) -> str:
    clock = Clock()
    address = ContainerAddress(f"{account.blob_endpoint}/data")
    delegation = Delegation(delegating_service(settings_for(account), AppIdentity(None)), account.name, address, clock)
    return delegation.resign(address.blob_url("x"), sas_expiry(clock.now, HOUR, HOUR))


def _reading_urls(account: StorageAccount) -> ReadingUrls:
    described = Account(account.name, account.key, account.blob_endpoint, account.queue_endpoint)
    return ReadingUrls(haste_container(settings_for(account)), described, "image-layer-r-policy", Clock())
