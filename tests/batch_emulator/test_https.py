"""The emulator as a program of its own, over https."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core import MatchConditions
from azure.core.credentials import AccessToken, AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError, ServiceResponseError

from local.batch import ACCOUNT_KEY
from local.certificates import Certificates
from tests.batch_emulator.process_support import add_task, finished, read, until
from tests.batch_emulator.support import POOL, act, make_job, refusal, states

_ROOT = Path(__file__).resolve().parents[2]
_STOP_SECONDS = 30


class _Tokens:
    def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        return AccessToken("token", int(datetime.now(UTC).timestamp()) + 3600)


class _Emulator:
    """A running `python -m local.batch`."""

    def __init__(self, folder: Path, certificates: Certificates, world: dict[str, Any], *options: str) -> None:
        world_file, endpoint_file = folder / "world.json", folder / "endpoint"
        world_file.write_text(json.dumps({"root": str(folder / "nodes"), **world}))
        tls = ["--cert", str(certificates.certificate), "--key", str(certificates.key)]
        where = ["--world", str(world_file), "--endpoint-file", str(endpoint_file)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "local.batch", *where, *tls, *options], cwd=_ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        self.line = self.process.stdout.readline().strip()
        until(endpoint_file.exists)
        self.endpoint = endpoint_file.read_text()

    def client(self, credential: Any = None) -> BatchClient:
        credential = credential or AzureNamedKeyCredential("localbatch", ACCOUNT_KEY)
        return BatchClient(self.endpoint, credential, retry_total=0)

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}/admin{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["result"]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)


@pytest.fixture
def emulator(tmp_path: Path, certificates: Certificates) -> Iterator[_Emulator]:
    pool = {"id": POOL, "targetLowPriorityNodes": 1, "taskSlotsPerNode": 4, "start_seconds": 0}
    running = _Emulator(tmp_path, certificates, {"pools": [pool], "page_size": 2})
    yield running
    if running.process.poll() is None:
        running.stop()
    if running.process.stdout:
        running.process.stdout.close()


def test_a_day_in_the_life(emulator: _Emulator) -> None:
    assert emulator.line == f"batch emulator listening on {emulator.endpoint}"
    assert emulator.endpoint.startswith("https://127.0.0.1:")
    with emulator.client() as client, emulator.client(_Tokens()) as other:
        assert other.pool_exists(POOL)
        with pytest.raises(ResourceNotFoundError):
            client.pool_exists("none")
        make_job(client, priority=5)
        for number in range(5):
            add_task(client, f"t{number}", commandLine=f'/bin/bash -c \'mkdir "a b" && echo {number} > "a b/n+1"\'')
        for number in range(5):
            assert finished(client, f"t{number}").exit_code == 0
        assert read(other, "wd/a b/n+1", "t3") == "3\n"
        properties = client.get_task_file_properties("job", "t3", "wd/a b/n+1")
        assert properties.content_length == 2
        part = client.download_task_file("job", "t3", "wd/a b/n+1", ocp_range="bytes=0-0")
        assert b"".join(part) == b"3"
        assert [task.id for task in client.list_tasks("job", filter="state eq 'completed'")] == [
            f"t{number}" for number in range(5)
        ]
        client.delete_task_file("job", "t3", "wd/a b/n+1")
        client.delete_task("job", "t0")
        job = client.get_job("job")
        client.update_job(
            "job",
            models.BatchJobUpdateOptions(priority=6),
            etag=job.etag,
            match_condition=MatchConditions.IfNotModified,
        )
        with pytest.raises(HttpResponseError) as stale:
            client.update_job(
                "job",
                models.BatchJobUpdateOptions(priority=7),
                etag=job.etag,
                match_condition=MatchConditions.IfNotModified,
            )
        assert refusal(stale.value) == (412, "ConditionNotMet")
        act(client, "/jobs/job/terminate", {"terminateReason": "done"})
        until(lambda: client.get_job("job").state == models.BatchJobState.COMPLETED)
    with pytest.raises(HttpResponseError) as refused:
        emulator.client(AzureNamedKeyCredential("localbatch", "d3Jvbmc=")).get_pool(POOL)
    assert refusal(refused.value) == (403, "AuthenticationFailed")


def test_faults_over_the_wire(emulator: _Emulator) -> None:
    with emulator.client() as client:
        make_job(client)
        emulator.admin(
            "POST", "/faults", {"operation": "create_task", "drop_connection": True, "when": "after", "times": 1}
        )
        with pytest.raises(ServiceResponseError):
            add_task(client, commandLine="true")
        assert finished(client).exit_code == 0

        emulator.admin(
            "POST", "/faults", {"operation": "get_job", "code": "TooManyRequests", "retry_after": 3, "times": 1}
        )
        with pytest.raises(HttpResponseError) as refused:
            client.get_job("job")
        response: Any = refused.value.response
        assert (response.status_code, response.headers["Retry-After"]) == (429, "3")


def test_preemption_and_a_clean_stop(emulator: _Emulator) -> None:
    with emulator.client() as client:
        make_job(client)
        add_task(client, commandLine="/bin/bash -c 'echo $$ > pid; sleep 600'")
        until(lambda: states(client)["task"] == "running")

        node = emulator.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 0.2})["node"]
        until(lambda: emulator.admin("GET", "/world")["nodes"][0]["boot"] == 2)
        until(lambda: states(client)["task"] == "running")
        until(lambda: any(f.name == "wd/pid" for f in client.list_task_files("job", "task", recursive=True)))
        until(lambda: read(client, "wd/pid").strip())
        pid = int(read(client, "wd/pid"))
        started = [event["node"] for event in emulator.admin("GET", "/events") if event["event"] == "task_started"]
        assert started == [node, node]

    assert Path(f"/proc/{pid}").exists()
    assert emulator.stop() == 0
    until(lambda: not Path(f"/proc/{pid}").exists() or "\tZ" in Path(f"/proc/{pid}/status").read_text())


def test_time_goes_on_without_requests(tmp_path: Path, certificates: Certificates) -> None:
    log = tmp_path / "events.jsonl"
    pool = {"id": POOL, "targetDedicatedNodes": 1, "start_seconds": 0.2}
    running = _Emulator(tmp_path, certificates, {"pools": [pool], "event_log": str(log)})
    try:
        until(lambda: log.exists() and '"state": "idle"' in log.read_text())
    finally:
        running.stop()
        if running.process.stdout:
            running.process.stdout.close()


@pytest.mark.parametrize("text", ["{", '{"colour": 1}'])
def test_a_wrong_world_file_is_named(tmp_path: Path, text: str) -> None:
    world = tmp_path / "world.json"
    world.write_text(text)

    outcome = subprocess.run(
        [sys.executable, "-m", "local.batch", "--world", str(world)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ.copy(),
        timeout=60,
    )

    assert outcome.returncode == 2
    assert outcome.stderr.startswith("the world file cannot be used:")


@pytest.mark.parametrize("options", [["--manual"], ["--speed", "20000"]])
def test_a_server_s_time_need_not_be_the_computer_s(
    tmp_path: Path, certificates: Certificates, options: list[str]
) -> None:
    pool = {"id": POOL, "targetDedicatedNodes": 1, "start_seconds": 7200}
    emulator = _Emulator(tmp_path, certificates, {"pools": [pool]}, *options)
    try:
        client = emulator.client()
        if options == ["--manual"]:
            assert next(iter(client.list_nodes(POOL))).state == "creating"
            emulator.admin("POST", "/advance", {"seconds": 7200})
            assert next(iter(client.list_nodes(POOL))).state == "idle"
        else:
            until(lambda: next(iter(client.list_nodes(POOL))).state == "idle")
    finally:
        emulator.stop()
        assert emulator.process.stdout
        emulator.process.stdout.close()


def test_options_that_make_no_sense_are_refused() -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "local.batch", "--speed", "0"], cwd=_ROOT, capture_output=True, text=True, check=False
    )

    assert refused.returncode == 2
    assert "--speed" in refused.stderr
