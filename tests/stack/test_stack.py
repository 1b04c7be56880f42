"""The whole stack: it boots behind a proxy that leads nowhere, hosts can be killed, and nothing is left running."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import requests
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from local.certificates import Certificates
from local.stack import BlockingStack, Stack, StackError, StackOptions, running_stack
from local.stack.reaper import marked_pids
from local.stack.settings import QUEUES
from tests.support.waiting import processes_naming, until

TENANTS = ("tenanta", "tenantb")
QUEUE = QUEUES["TRAIN_QUEUE_NAME"]
DEAD_PROXY = "http://127.0.0.1:9"

HOST_JSON = {
    "version": "2.0",
    "extensionBundle": {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.0.0, 5.0.0)"},
    "extensions": {"queues": {"messageEncoding": "none", "maxPollingInterval": "00:00:01"}},
}
FUNCTION_APP = '''
import os
import azure.functions as func
from azure.storage.blob import BlobServiceClient

app = func.FunctionApp()

@app.queue_trigger(arg_name="message", queue_name="%TRAIN_QUEUE_NAME%", connection="AzureWebJobsStorage")
def note(message: func.QueueMessage) -> None:
    """Write down, in the tenant's own container, that this host has seen the message."""
    with BlobServiceClient.from_connection_string(os.environ["BLOB_CONNECTION_STRING"]) as service:
        text = f"{os.environ['WORKER_TENANT']} {os.getpid()}"
        service.get_blob_client(os.environ["BLOB_CONTAINER"], message.get_body().decode()).upload_blob(text)
'''
# What a worker does first: the unmodified credential, the batch account's address, no other option.
LISTS_POOLS = """
import os
from azure.batch import BatchClient
from azure.identity import DefaultAzureCredential
client = BatchClient(os.environ["AZURE_BATCH_URL"], DefaultAzureCredential())
print(",".join(sorted(pool.id for pool in client.list_pools())))
"""


@pytest.fixture(scope="module")
def app_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    (folder / "host.json").write_text(json.dumps(HOST_JSON))
    (folder / "function_app.py").write_text(FUNCTION_APP)
    return folder


@pytest.fixture(scope="module")
def running(
    app_folder: Path, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BlockingStack]:
    """Two tenants with a host each."""
    run_folder = tmp_path_factory.mktemp("run")
    options = StackOptions(run_folder, app_folder, TENANTS, certificates=certificates)
    with running_stack(options) as started:
        yield started
    assert marked_pids(started.stack.supervisor.mark) == []


@pytest.fixture
def stack(running: BlockingStack) -> Stack:
    return running.stack


def send(stack: Stack, tenant: str, message: str) -> None:
    with QueueServiceClient.from_connection_string(stack.accounts[tenant].connection_string) as queues:
        queues.get_queue_client(QUEUE).send_message(message)


def note_of(stack: Stack, tenant: str, message: str) -> str | None:
    """What the host of `tenant` has written for `message`, None while it has not."""
    with BlobServiceClient.from_connection_string(stack.accounts[tenant].connection_string) as blobs:
        try:
            return bytes(blobs.get_blob_client("data", message).download_blob().readall()).decode()
        except ResourceNotFoundError:
            return None


def run_for(stack: Stack, tenant: str, program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=stack.environment(tenant),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_part_is_on_a_port_of_its_own(stack: Stack) -> None:
    accounts = stack.accounts.values()
    storage = {url for one in accounts for url in (one.blob_endpoint, one.queue_endpoint, one.table_endpoint)}
    services = {url.rpartition("/")[0] for url in storage} | {stack.batch.url, *(host.url for host in stack.hosts)}
    assert len(services) == 3 + 1 + len(TENANTS)
    assert all("127.0.0.1:" in url for url in services)


def test_a_program_with_a_tenants_environment_reaches_batch(stack: Stack) -> None:
    assert run_for(stack, "tenanta", LISTS_POOLS) == "h100-pool,haste-demo-pool,t4-pool"


def test_the_emulators_own_routes_answer(stack: Stack) -> None:
    answer = requests.get(f"{stack.admin_url}/world", timeout=10)
    assert answer.status_code == 200
    assert stack.event_log.exists()


def test_each_tenants_host_works_on_its_own_queue(stack: Stack) -> None:
    for tenant in TENANTS:
        send(stack, tenant, "first")
    for tenant in TENANTS:
        assert until(partial(note_of, stack, tenant, "first"))
        assert f"{note_of(stack, tenant, 'first')}".split()[0] == tenant


def test_a_killed_host_stays_down_until_it_is_restarted(running: BlockingStack) -> None:
    stack = running.stack
    killed = stack.hosts[0].service.child
    running.kill_host(0)
    assert killed.exit_code == -9
    send(stack, "tenanta", "second")
    running.restart_host(0)
    assert until(lambda: note_of(stack, "tenanta", "second") is not None)
    assert note_of(stack, "tenanta", "second") == f"tenanta {stack.hosts[0].service.child.pid}"


def test_an_orderly_restart_gives_another_process(running: BlockingStack) -> None:
    stack = running.stack
    before = stack.hosts[1].service.child
    running.restart_host(1)
    assert before.exit_code == 0
    send(stack, "tenantb", "third")
    assert until(lambda: note_of(stack, "tenantb", "third") is not None)
    assert note_of(stack, "tenantb", "third") == f"tenantb {stack.hosts[1].service.child.pid}"


def test_logs_and_files_of_the_run_hold_no_storage_key_and_no_sas(stack: Stack) -> None:
    keys = [account.key for account in stack.accounts.values()]
    for log in stack.log_folder.glob("*.log"):
        text = log.read_text(errors="replace")
        assert "sig=" not in text
        assert not [key for key in keys if key in text], log.name


def test_it_boots_and_works_behind_a_proxy_that_leads_nowhere(
    app_folder: Path, certificates: Certificates, tmp_path: Path
) -> None:
    stack = Stack(StackOptions(tmp_path, app_folder, certificates=certificates))
    with asyncio.Runner() as runner:
        try:
            with pytest.MonkeyPatch.context() as patch:
                for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
                    patch.setenv(name, DEAD_PROXY)
                for name in ("NO_PROXY", "no_proxy"):
                    patch.delenv(name)
                runner.run(stack.start())
                pools = run_for(stack, "tenanta", LISTS_POOLS)
            send(stack, "tenanta", "behind a proxy")
            assert until(lambda: note_of(stack, "tenanta", "behind a proxy"))
        finally:
            runner.run(stack.stop())
    assert "t4-pool" in pools


def test_a_part_that_does_not_start_takes_the_others_with_it(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    with (
        pytest.raises(StackError, match=r"host-tenanta-0 ended with code 1 "),
        running_stack(StackOptions(run_folder=tmp_path / "run", app_folder=tmp_path / "app")),
    ):
        pytest.fail("a folder without host.json is no app")
    started = {log.stem for log in (tmp_path / "run" / "logs").glob("*.log")}
    assert {"azurite", "identity", "batch", "host-tenanta-0"} <= started
    assert processes_naming(tmp_path) == []
