"""How the adapter talks to Batch: credentials, repetitions, threads, and what its errors may say."""

from __future__ import annotations

import contextlib
import re
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential

from shared.app import _batch_credential
from shared.batch.client import AzureBatch
from shared.errors import NeedsOperator, Transient, WorkerError
from shared.identity import AppIdentity
from shared.retry import MAX_WAIT_SECONDS, TOTAL_SECONDS
from shared.settings.load import load_settings
from shared.settings.table import Settings
from tests.support.batch_account import Account, Token
from tests.support.batch_calls import EVERY, body, with_job
from tests.support.passing_waits import PassingWaits

BATCH_KEY = "bG9jYWwtYmF0Y2gta2V5LXRoYXQtZXZlcnlib2R5LW1heS1rbm93IQ=="


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


# --- credentials ------------------------------------------------------------------------------------------------


def settings(**more: str) -> Settings:
    storage = "AccountName=tenanta;AccountKey=a2V5;BlobEndpoint=https://127.0.0.1:1/tenanta;QueueEndpoint=https://127.0.0.1:2/tenanta"
    return load_settings(
        {
            "AzureWebJobsStorage": storage,
            "BLOB_CONNECTION_STRING": storage,
            "METADATA_STORAGE_TYPE": "blob",
            "ARTIFACT_STORAGE_TYPE": "blob",
            "TITILER_ENDPOINT": "https://localhost/api/titiler/",
            "AZURE_BATCH_ACCOUNT_NAME": "localbatch",
            "AZURE_BATCH_URL": "https://localhost/batch",
            "AZURE_BATCH_OUTPUT_CONTAINER_URL": "https://127.0.0.1:1/tenanta/data",
            "AZURE_BATCH_DOCKER_IMAGE": "registry/training:1",
            "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": "registry/imageryprep:1",
            "AZURE_BATCH_USE_SAS": "true",
            **more,
        }
    )


def test_without_a_key_the_apps_identity_is_used() -> None:
    identity = AppIdentity(None)
    assert _batch_credential(settings(), identity) is identity


def test_with_a_key_the_key_is_used() -> None:
    credential = _batch_credential(settings(AZURE_BATCH_ACCOUNT_KEY=BATCH_KEY), AppIdentity(None))
    assert isinstance(credential, AzureNamedKeyCredential)
    assert tuple(credential.named_key) == ("localbatch", BATCH_KEY)


def test_an_identity_asks_for_batchs_own_scope_and_sends_a_bearer_token() -> None:
    token = Token()
    account = Account(credential=token)
    account.batch.pools()
    account.batch.create_job("job", "h100", None, None)
    assert set(token.scopes) == {"https://batch.core.windows.net//.default"}
    assert {request.headers["Authorization"] for request in account.transport.sent} == {"Bearer a-token"}


class NoToken:
    """What the app's identity does that cannot have one."""

    def __init__(self, fault: WorkerError) -> None:
        self._fault = fault

    def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        raise self._fault


@pytest.mark.parametrize("fault", [NeedsOperator("no identity"), Transient("no answer")])
def test_without_a_token_a_call_fails_as_the_identity_does_and_files_are_not_there_now(fault: WorkerError) -> None:
    batch = Account(credential=NoToken(fault)).batch
    with pytest.raises(type(fault), match=str(fault)):
        batch.pools()
    assert batch.read_task_file("job", "task", "stdout.txt", 0, 100) is None
    assert batch.task_file_names("job", "task", "") == []


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "AuthorizationFailure", "lacks the role Azure Batch Job Submitter .Azure Batch Data Contributor where"),
        (401, None, "the key or token is not for this account"),
        (403, "AuthenticationFailed", "the key or token is not for this account"),
    ],
)
def test_a_denial_says_what_to_look_at(status: int, code: str | None, said: str) -> None:
    account = Account()
    account.fault(operation="list_pools", status=status, **({"code": code} if code else {}))
    with pytest.raises(NeedsOperator, match=f"answered {status}.*: .*{said}"):
        account.batch.pools()


def test_a_raw_request_carries_the_token_too() -> None:
    account = Account(credential=Token())
    account.batch.create_job("job", "h100", None, None)
    account.raw("POST", "/jobs/job/disable", {"disableTasks": "requeue"}, expect=202)
    account.batch.enable_job("job")
    assert account.transport.sent[-1].url.startswith("https://batch.local/jobs/job/enable?api-version=")
    assert account.transport.sent[-1].headers["Authorization"] == "Bearer a-token"


def test_a_key_signs_every_request() -> None:
    """The emulator checks the signatures."""
    account = with_job("trn-1")
    for call in EVERY.values():
        try:
            call(account.batch)
        except WorkerError as error:
            assert "409 OperationInvalidForCurrentState" in str(error)  # the job is not disabled
    sent = [request.headers["Authorization"] for request in account.transport.sent]
    assert len(sent) >= len(EVERY)
    assert all(header.startswith("SharedKey localbatch:") for header in sent)
    assert account.world.events.select("request", status=403) == []


def test_a_wrong_key_is_told_as_denied_access_without_the_key() -> None:
    wrong = AzureNamedKeyCredential("localbatch", "d3Jvbmcta2V5LXRoYXQtaXMtbG9uZy1lbm91Z2g=")
    with pytest.raises(WorkerError, match="403 AuthenticationFailed") as raised:
        Account(credential=wrong).batch.pools()
    assert "d3Jvbmct" not in str(raised.value)


# --- repetitions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", EVERY)
@pytest.mark.parametrize(
    "fault",
    [{"status": 503}, {"status": 429}, {"status": 500}, {"status": 503, "retry_after": 2}, {"drop_connection": True}],
    ids=str,
)
def test_only_the_one_place_that_waits_repeats_a_request(
    operation: str, fault: dict[str, Any], waits: PassingWaits
) -> None:
    account = with_job("trn-1")
    before = len(account.requests(operation))
    account.fault(operation=operation, **fault)
    with pytest.raises(WorkerError):
        EVERY[operation](account.batch)
    assert len(account.requests(operation)) - before == len(waits.seconds) + 1
    assert len(waits.seconds) >= 3
    assert sum(waits.seconds) < TOTAL_SECONDS


@pytest.mark.parametrize("operation", EVERY)
@pytest.mark.parametrize("status", [400, 401, 403, 409, 412])
def test_a_refusal_is_not_repeated_even_if_batch_says_when(operation: str, status: int, waits: PassingWaits) -> None:
    account = with_job("trn-1")
    before = len(account.requests(operation))
    account.fault(operation=operation, status=status, code="SomeCode", retry_after=1)
    with contextlib.suppress(WorkerError):
        EVERY[operation](account.batch)
    assert len(account.requests(operation)) - before == 1
    assert waits.seconds == []


@pytest.mark.parametrize(("retry_after", "pause"), [(3, 3.0), (3600, MAX_WAIT_SECONDS)])
def test_retry_after_is_honoured_up_to_a_cap(retry_after: float, pause: float, waits: PassingWaits) -> None:
    account = Account()
    account.fault(operation="list_pools", status=429, retry_after=retry_after, times=1)
    assert set(account.batch.pools()) == {"h100", "t4"}
    assert waits.seconds == [pause]


def test_a_task_whose_create_was_answered_with_an_error_after_it_was_done_is_one_task() -> None:
    account = with_job()
    account.fault(operation="create_task", code="InternalError", when="after", times=1)
    account.batch.create_task("job", body())
    assert len(account.requests("create_task")) == 2
    assert len(account.world.events.select("task_created")) == 1


# --- threads ----------------------------------------------------------------------------------------------------


def test_no_method_leaves_a_thread_behind() -> None:
    """The SDK's own long-running calls start a thread that polls every five seconds."""
    account = with_job("trn-1")
    account.raw("POST", "/jobs/job/disable", {"disableTasks": "requeue"}, expect=202)
    before = set(threading.enumerate())
    account.batch.spend_task_id("job", "trn-2")
    account.batch.read_task_file("job", "trn-2", "stdout.txt", 0, 10)
    account.batch.task_file_names("job", "trn-2", "")
    for call in EVERY.values():
        call(account.batch)
    assert set(threading.enumerate()) == before


# --- what errors say --------------------------------------------------------------------------------------------

SECRET = "sv=2024-11-04&sig=c2VjcmV0"


@pytest.mark.parametrize("operation", EVERY)
@pytest.mark.parametrize(
    "fault",
    [{"status": 400, "code": "InvalidPropertyValue"}, {"status": 403}, {"status": 503}, {"drop_connection": True}],
    ids=str,
)
def test_errors_name_status_and_code_and_neither_bodies_nor_urls(operation: str, fault: dict[str, Any]) -> None:
    account = with_job("trn-1")
    if not fault.get("drop_connection"):
        fault = fault | {
            "message": f"resourceFiles[0].httpUrl https://tenanta.blob.core.windows.net/data/x?{SECRET} is wrong"
        }
    account.fault(operation=operation, **fault)
    calls: dict[str, Callable[[AzureBatch], object]] = EVERY | {"create_task": _create_with_sas}
    with pytest.raises(WorkerError) as raised:
        calls[operation](account.batch)
    told = str(raised.value) + "".join(traceback.format_exception(raised.value))
    assert "sig=" not in told and "https://" not in told
    assert re.match(r"Azure Batch answered (\d{3}|nothing)", str(raised.value))


def _create_with_sas(batch: AzureBatch) -> None:
    files = ({"httpUrl": f"https://tenanta.blob.core.windows.net/data/x?{SECRET}", "filePath": "x"},)
    batch.create_task("job", body("trn-9", resource_files=files))
