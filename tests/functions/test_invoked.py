"""Every function runs in the host on Microsoft's runtime package, and health tells what an operator needs, no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.storage.queue import QueueServiceClient

from local.certificates import Certificates
from local.stack import BlockingStack, Stack
from local.stack.azurite import StorageAccount
from local.stack.environment import child_environment
from local.stack.services import FUNCTION_KEY
from local.stack.settings import QUEUES, WORKER_QUEUE
from tests.functions_host.host_process import HostProcess, HostStarter, wait_until

QUEUE_OF = {
    "imageryprep": QUEUES["IMAGE_QUEUE_NAME"],
    "training": QUEUES["TRAIN_QUEUE_NAME"],
    "inference": QUEUES["INFERENCE_QUEUE_NAME"],
    "jobs": WORKER_QUEUE,
}
#: Settings that the worker cannot do without.
NEEDED = (
    "BLOB_CONNECTION_STRING",
    "METADATA_STORAGE_TYPE",
    "ARTIFACT_STORAGE_TYPE",
    "TITILER_ENDPOINT",
    "AZURE_BATCH_ACCOUNT_NAME",
    "AZURE_BATCH_URL",
    "AZURE_BATCH_OUTPUT_CONTAINER_URL",
    "AZURE_BATCH_DOCKER_IMAGE",
    "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE",
    "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
)


def health(url: str, key: str | None = FUNCTION_KEY) -> requests.Response:
    return requests.get(f"{url}/api/health", headers={"x-functions-key": key} if key else {}, timeout=60)


def checks(answer: requests.Response) -> dict[str, dict[str, Any]]:
    """The report's checks by name."""
    return {check["name"]: check for check in answer.json()["checks"]}


@pytest.fixture
def stack(running: BlockingStack) -> Stack:
    return running.stack


@pytest.fixture
def hosts(app_folder: Path, certificates: Certificates, tmp_path: Path) -> Iterator[HostStarter]:
    """Starts further hosts, with settings of the test's own."""
    settings = {"FUNCTIONS_HOST_KEY": FUNCTION_KEY, "FUNCTIONS_HOST_LEASE_SECONDS": "5"}
    with HostStarter(child_environment(certificates.environment(), settings), tmp_path).running() as starter:
        yield starter


def succeeded(stack: Stack, function: str) -> bool:
    lines = stack.hosts[0].service.child.output().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return any((one.get("event"), one.get("function")) == ("function.succeeded", function) for one in events)


@pytest.mark.parametrize("function", QUEUE_OF)
def test_a_message_invokes_its_function(stack: Stack, function: str) -> None:
    with QueueServiceClient.from_connection_string(stack.accounts["tenanta"].connection_string) as queues:
        queues.get_queue_client(QUEUE_OF[function]).send_message("nothing the worker knows")
    wait_until(lambda: succeeded(stack, function), f"{function} to succeed")


def test_the_schedule_invokes_the_timer(stack: Stack) -> None:
    wait_until(lambda: succeeded(stack, "watch"), "watch to succeed")


def test_health_says_that_all_is_well(stack: Stack) -> None:
    answer = health(stack.hosts[0].url)
    assert answer.status_code == 200, answer.text
    assert answer.json()["ok"] is True
    assert all(check["ok"] for check in checks(answer).values())
    assert checks(answer).keys() >= {"settings", "ledger", "Azure Batch", "task credentials"}
    assert succeeded(stack, "health")


@pytest.mark.parametrize("key", [None, "", "wrong"])
def test_health_is_for_those_with_the_key(stack: Stack, key: str | None) -> None:
    answer = health(stack.hosts[0].url, key)
    assert answer.status_code == 401
    assert answer.text == ""


def test_health_shows_no_secret(stack: Stack) -> None:
    text = health(stack.hosts[0].url).text
    account = stack.accounts["tenanta"]
    for secret in (account.key, stack.batch.key, stack.identity.secret, FUNCTION_KEY, "AccountKey", "sig=", "https://"):
        assert secret not in text


def test_health_names_what_is_misconfigured(stack: Stack, hosts: HostStarter, app_folder: Path) -> None:
    wrong = {"AZURE_BATCH_TRAINING_POOL_IDS": "h100-pool,nowhere-pool", "AzureWebJobs_watch_Disabled": "true"}
    host = hosts.start(app=app_folder, settings={**stack.settings("tenanta"), **wrong})
    answer = health(host.ready()["url"])
    assert answer.status_code == 503
    assert answer.json()["ok"] is False
    faulty = {name: check["detail"] for name, check in checks(answer).items() if not check["ok"]}
    assert faulty.keys() == {"Azure Batch"}
    assert "nowhere-pool" in faulty["Azure Batch"]


class TestWithoutSettings:
    """A host that knows its queues' account and nothing else: it runs, and says what is missing."""

    @pytest.fixture
    def host(self, hosts: HostStarter, storage_account: StorageAccount, app_folder: Path) -> HostProcess:
        storage = {"AzureWebJobsStorage": storage_account.connection_string}
        host = hosts.start(app=app_folder, settings={**storage, "WATCH_SCHEDULE": "*/1 * * * * *"})
        host.ready()
        return host

    def test_health_names_every_setting_that_is_missing(self, host: HostProcess) -> None:
        answer = health(host.ready()["url"])
        assert answer.status_code == 503
        told = [check["detail"] for check in answer.json()["checks"]]
        assert [name for name in NEEDED if not any(detail.startswith(name) for detail in told)] == []

    def test_the_first_call_fails_with_their_names_and_the_message_stays(
        self, host: HostProcess, storage_account: StorageAccount
    ) -> None:
        with QueueServiceClient.from_connection_string(storage_account.connection_string) as queues:
            queue = queues.create_queue("train-queue")
            queue.send_message('{"a message": "that must not be lost"}')
            for function in ("training", "watch"):
                host.wait_for("function.failed", function=function)
                error = host.events("function.failed", function=function)[0]["error"]
                assert [name for name in NEEDED if name not in error] == []
                assert storage_account.key not in error
            assert queue.get_queue_properties().approximate_message_count == 1
        assert host.process.poll() is None
