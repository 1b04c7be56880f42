"""Whole hosts and their timers: one host ticks, missed occurrences are made up for once."""

import json
from datetime import UTC, datetime

import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from local.certificates import Certificates
from local.stack.azurite import StorageAccount
from tests.functions_host.host_process import HostStarter, wait_until
from tests.functions_host.queue_contents import texts

EVERY_SECOND = {"TICK_SCHEDULE": "* * * * * *"}


@pytest.fixture
def hosts_container(storage_account: StorageAccount, certificates: Certificates) -> BlobServiceClient:
    return BlobServiceClient.from_connection_string(storage_account.connection_string)


def test_one_of_two_hosts_ticks_and_the_other_takes_over_when_it_stops(hosts: HostStarter) -> None:
    first = hosts.start("--only", "tick", settings=EVERY_SECOND)
    first.wait_for("function.succeeded", function="tick")
    second = hosts.start("--only", "tick", "--verbose", settings=EVERY_SECOND)
    second.wait_for("singleton.waiting", function="tick")
    assert not second.events("function.started")
    assert first.stop() == 0
    second.wait_for("function.succeeded", function="tick")


def test_hosts_with_different_ids_tick_independently(hosts: HostStarter) -> None:
    for name in ("one", "two"):
        host = hosts.start("--only", "tick", settings={**EVERY_SECOND, "AzureFunctionsWebHost__hostid": name})
        assert host.ready()["host_id"] == name
        host.wait_for("function.succeeded", function="tick")


def test_a_missed_occurrence_is_made_up_for_and_noted(
    hosts: HostStarter, queues: QueueServiceClient, hosts_container: BlobServiceClient
) -> None:
    blob = hosts_container.create_container("azure-webjobs-hosts").get_blob_client("timers/sample/tick/status")
    last, missed = "2020-01-01T03:00:00+00:00", "2021-01-01T03:00:00+00:00"
    blob.upload_blob(json.dumps({"Last": last, "Next": missed, "LastUpdated": last}))
    settings = {"AzureFunctionsWebHost__hostid": "sample", "TZ": "UTC"}
    host = hosts.start("--only", "tick", settings=settings)
    host.wait_for("function.succeeded", function="tick", past_due=True)
    assert [json.loads(text) for text in texts(queues, "sample-ticks")] == [{"past_due": True}]

    def next_noted() -> datetime:
        return datetime.fromisoformat(json.loads(blob.download_blob().readall())["Next"])

    wait_until(lambda: next_noted() > datetime.now(UTC), "the next occurrence in the status")
    assert host.stop() == 0
    again = hosts.start("--only", "tick", settings=settings)
    again.wait_for("singleton.acquired")
    assert again.stop() == 0
    assert not again.events("function.started")


def test_stopping_does_not_wait_for_a_timer_function(hosts: HostStarter) -> None:
    settings = {**EVERY_SECOND, "TICK_SLEEP_SECONDS": "3600", "AzureFunctionsJobHost__functionTimeout": "-1"}
    host = hosts.start("--only", "tick", settings=settings)
    host.wait_for("function.started", function="tick")
    assert host.stop() == 0
    (stopped,) = host.events("host.stopped")
    assert stopped["abandoned"] == 1
