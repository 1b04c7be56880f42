"""Whole hosts on real queues: nothing is lost, whoever dies."""

import json
import signal
from pathlib import Path

from azure.storage.queue import QueueServiceClient

from local.functions_host.host import WORKER_LOST_EXIT_CODE
from local.stack.azurite import StorageAccount
from local.stack.settings import Identity
from tests.functions_host.host_process import SAMPLE_APP, HostStarter, wait_until
from tests.functions_host.queue_contents import count, results, send, texts


def order(number: int, sleep_seconds: float = 0.0) -> str:
    return json.dumps({"id": number, "sleep": sleep_seconds, "secret": "not-for-the-log"})


def test_two_hosts_handle_every_message_once(hosts: HostStarter, queues: QueueServiceClient) -> None:
    running = [hosts.start("--only", "work") for _ in range(2)]
    for host in running:
        host.ready()
    # Only now does the queue come to be; the trigger looks for it and never creates it.
    send(queues, "sample-work", *(order(number, 0.05) for number in range(20)))
    wait_until(lambda: len(results(queues)) >= 20, "twenty results")
    assert [host.stop() for host in running] == [0, 0]
    assert sorted(result["id"] for result in results(queues)) == list(range(20))
    assert count(queues, "sample-work") == 0
    assert not any("not-for-the-log" in host.log_text() for host in running)


def test_functions_are_told_about_the_message(hosts: HostStarter, queues: QueueServiceClient) -> None:
    send(queues, "sample-work", order(1))
    host = hosts.start("--only", "work")
    wait_until(lambda: results(queues), "a result")
    (result,) = results(queues)
    assert result.keys() == {"id", "dequeue_count", "message", "receipt", "lifetime_days", "hidden_until"}
    assert (result["dequeue_count"], result["receipt"], result["lifetime_days"]) == (1, True, 7)
    (started,) = host.events("function.started", function="work")
    assert started["message"] == result["message"]
    (logged,) = host.events("log", logger="sample")
    assert (logged["message"], logged["invocation"]) == ("working on 1", started["invocation"])


def test_a_failing_message_is_tried_three_times_then_kept_in_the_poison_queue(
    hosts: HostStarter, queues: QueueServiceClient
) -> None:
    send(queues, "sample-failing", "bad")
    host = hosts.start("--only", "break_down")
    wait_until(lambda: texts(queues, "sample-failing-poison") == ["bad"], "the poison copy")
    wait_until(lambda: count(queues, "sample-failing") == 0, "the original to be deleted")
    failures = host.events("function.failed", function="break_down")
    assert [failure["dequeue_count"] for failure in failures] == [1, 2, 3]
    assert all("asked to fail" in failure["error"] for failure in failures)


def test_a_killed_hosts_message_is_redelivered_after_its_lease_and_then_kept_by_renewal(
    hosts: HostStarter, queues: QueueServiceClient
) -> None:
    # The run outlasts the lease of three seconds, so without renewal it would be delivered a third time.
    send(queues, "sample-work", order(1, 5))
    first = hosts.start("--only", "work")
    first.wait_for("function.started", function="work")
    second = hosts.start("--only", "work")
    third = hosts.start("--only", "work")
    first.signal(signal.SIGKILL)
    wait_until(lambda: results(queues), "the result of another host")
    assert [result["dequeue_count"] for result in results(queues)] == [2]
    assert [second.stop(), third.stop()] == [0, 0]
    assert len(second.events("function.started") + third.events("function.started")) == 1
    assert count(queues, "sample-work") == 0


def test_a_stopping_host_finishes_what_runs_and_takes_nothing_new(
    hosts: HostStarter, queues: QueueServiceClient
) -> None:
    # The app takes six at once at most: a batch of four on top of two in work.
    send(queues, "sample-work", *(order(number, 2) for number in range(10)))
    host = hosts.start("--only", "work")
    host.wait_for("function.started", function="work")
    assert host.stop() == 0
    done = len(host.events("function.succeeded", function="work"))
    assert done == len(host.events("function.started", function="work"))
    assert 1 <= done <= 6
    assert len(results(queues)) == done
    assert len(texts(queues, "sample-work")) == 10 - done


def test_a_second_signal_ends_a_draining_host(hosts: HostStarter, queues: QueueServiceClient) -> None:
    send(queues, "sample-work", order(1, 60))
    host = hosts.start("--only", "work", settings={"AzureFunctionsJobHost__functionTimeout": "-1"})
    host.wait_for("function.started", function="work")
    host.signal(signal.SIGINT)
    host.wait_for("host.stopping")
    host.signal(signal.SIGINT)
    assert host.exit_code() == 130


def test_a_function_that_outlasts_the_timeout_fails_its_message_and_ends_the_process(
    hosts: HostStarter, queues: QueueServiceClient
) -> None:
    send(queues, "sample-work", order(1, 60))
    host = hosts.start("--only", "work", settings={"AzureFunctionsJobHost__functionTimeout": "00:00:01"})
    assert host.exit_code() == WORKER_LOST_EXIT_CODE
    (failure,) = host.events("function.failed", function="work")
    assert "function timeout of 1 seconds" in failure["error"]
    assert host.events("host.worker_lost")
    # Released for the next try, not hidden for the rest of its lease.
    assert len(texts(queues, "sample-work")) == 1


def test_identity_settings_work_over_tls(
    hosts: HostStarter, queues: QueueServiceClient, storage_account: StorageAccount, identity_endpoint: Identity
) -> None:
    send(queues, "sample-work", order(1))
    settings = {
        "AzureWebJobsStorage": "",
        "AzureWebJobsStorage__queueServiceUri": storage_account.queue_endpoint,
        "AzureWebJobsStorage__blobServiceUri": storage_account.blob_endpoint,
        "TICK_SCHEDULE": "* * * * * *",
        "SSL_CERT_FILE": "",  # so that REQUESTS_CA_BUNDLE alone has to do
        **identity_endpoint.environment(),
    }
    host = hosts.start("--only", "work", "tick", settings=settings)
    wait_until(lambda: results(queues) and texts(queues, "sample-ticks"), "a result and a tick")
    assert host.stop() == 0


def test_local_settings_fill_up_the_environment(hosts: HostStarter, queues: QueueServiceClient, tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    for name in ("function_app.py", "host.json"):
        (app / name).write_bytes((SAMPLE_APP / name).read_bytes())
    values = {"WORK_QUEUE": "sample-of-file", "TICK_SCHEDULE": "nonsense that the environment hides"}
    document = {"IsEncrypted": False, "Values": values}
    (app / "local.settings.json").write_text(json.dumps(document), encoding="utf-8")
    send(queues, "sample-of-file", order(1))
    host = hosts.start(app=app, without=("WORK_QUEUE",))
    wait_until(lambda: results(queues), "a result")
    assert host.stop() == 0
