"""A tenant's app settings are complete, and a half-local connection string is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from azure.storage.queue import QueueServiceClient

from local.stack import Stack, StackError, StackOptions
from local.stack.azurite import StorageAccount, account_key
from local.stack.environment import child_environment, no_proxy
from local.stack.settings import BatchAccount, Identity, refuse_incomplete_connection_strings, tenant_settings

ACCOUNT = StorageAccount(
    "tenanta",
    account_key("tenanta"),
    "https://127.0.0.1:1/tenanta",
    "https://127.0.0.1:2/tenanta",
    "https://127.0.0.1:3/tenanta",
)
BATCH = BatchAccount("localbatch", "a2V5", "https://127.0.0.1:4")
IDENTITY = Identity("http://127.0.0.1:5/msi/token", "secret")
BLOBS_HERE = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=a2V5;BlobEndpoint=https://127.0.0.1:10000/a"


@pytest.mark.parametrize("legacy", [False, True])
def test_no_value_is_a_placeholder_or_points_elsewhere(legacy: bool) -> None:
    settings = tenant_settings("tenanta", ACCOUNT, BATCH, IDENTITY, legacy=legacy)
    for name, value in settings.items():
        assert isinstance(value, str)
        assert "<" not in value, name
        for host in re.findall(r"https?://([^/:;]+)", value):
            assert host in ("127.0.0.1", "localhost"), name


def test_storage_client_finds_both_services_on_this_machine() -> None:
    settings = tenant_settings("tenanta", ACCOUNT, BATCH, IDENTITY)
    with QueueServiceClient.from_connection_string(settings["AzureWebJobsStorage"]) as queues:
        assert queues.url.rstrip("/") == ACCOUNT.queue_endpoint
    refuse_incomplete_connection_strings(settings)


def test_the_shared_mode_holds_no_account_key_and_the_legacy_mode_no_new_setting() -> None:
    shared = tenant_settings("tenanta", ACCOUNT, BATCH, IDENTITY)
    legacy = tenant_settings("tenanta", ACCOUNT, BATCH, IDENTITY, legacy=True)
    assert shared["AZURE_BATCH_ACCOUNT_KEY"] == ""
    assert (shared["AZURE_BATCH_USE_SAS"], shared["AZURE_BATCH_MANAGE_POOLS"]) == ("true", "false")
    assert legacy["AZURE_BATCH_ACCOUNT_KEY"] == BATCH.key
    assert not {name for name in legacy if name.endswith(("_POOL_IDS", "_USE_SAS", "_MANAGE_POOLS"))}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (BLOBS_HERE, "QueueEndpoint is missing"),
        (f"{BLOBS_HERE};QueueEndpoint=https://a.queue.core.windows.net", "QueueEndpoint is not on this machine"),
        (BLOBS_HERE.replace("127.0.0.1", "localhost"), "QueueEndpoint is missing"),
        (BLOBS_HERE.replace("BlobEndpoint", "blobendpoint"), "QueueEndpoint is missing"),
    ],
)
def test_blobs_here_and_queues_in_azure_are_refused(value: str, says: str, tmp_path: Path) -> None:
    settings = {"FUNCTIONS_WORKER_RUNTIME": "python", "BLOB_CONNECTION_STRING": value}
    with pytest.raises(StackError, match=f"BLOB_CONNECTION_STRING: .*{says}") as caught:
        Stack(StackOptions(run_folder=tmp_path, settings=settings))
    assert "a2V5" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "https://127.0.0.1:1/a/data",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=a2V5;EndpointSuffix=core.windows.net",
        f"{BLOBS_HERE};QueueEndpoint=https://127.0.0.1:10001/a",
    ],
)
def test_other_values_pass(value: str) -> None:
    refuse_incomplete_connection_strings({"AzureWebJobsStorage": value})


def test_hosts_that_need_no_proxy_are_added_to_the_developers_own() -> None:
    assert no_proxy({"NO_PROXY": "corp.example, localhost", "no_proxy": "intra.example"})["no_proxy"] == (
        "127.0.0.1,localhost,corp.example,intra.example"
    )


def test_a_proxy_stays_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    environment = child_environment({"ADDED": "1"})
    assert environment["HTTPS_PROXY"] == "http://127.0.0.1:9"
    assert environment["NO_PROXY"] == environment["no_proxy"]
    assert environment["ADDED"] == "1"
