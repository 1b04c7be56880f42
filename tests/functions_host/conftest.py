"""Fixtures of the tests that run whole hosts against storage."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.queue import QueueServiceClient

from local.certificates import Certificates
from local.stack.azurite import StorageAccount
from local.stack.environment import child_environment
from tests.functions_host.host_process import HostStarter

SETTINGS = {
    "WORK_QUEUE": "sample-work",
    "TICK_SCHEDULE": "0 0 3 1 1 *",  # once a year: a test that wants ticks sets another one
    "FUNCTIONS_HOST_KEY": "sample-key",
    "FUNCTIONS_HOST_LEASE_SECONDS": "3",
}


@pytest.fixture
def hosts(storage_account: StorageAccount, certificates: Certificates, tmp_path: Path) -> Iterator[HostStarter]:
    """Starts hosts of the sample app on an empty account."""
    settings = {"AzureWebJobsStorage": storage_account.connection_string, **SETTINGS}
    with HostStarter(child_environment(settings), tmp_path).running() as starter:
        yield starter


@pytest.fixture
def queues(storage_account: StorageAccount, certificates: Certificates) -> Iterator[QueueServiceClient]:
    """The account's queues, by a client of the test's own."""
    with QueueServiceClient.from_connection_string(storage_account.connection_string) as service:
        yield service
