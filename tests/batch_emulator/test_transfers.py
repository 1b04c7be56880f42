"""Resource files and output files against real storage (Azurite), with SAS and with the pool's identity."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from azure.batch import BatchClient
from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas

from local.batch import World, control
from local.stack.azurite import StorageAccount
from local.stack.settings import Identity
from tests.batch_emulator.process_support import add_task, finished, process_world, read, until
from tests.batch_emulator.support import make_client, make_job, states

_IDENTITY = {"resourceId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/i"}


@pytest.fixture
def container(storage_account: StorageAccount) -> Iterator[ContainerClient]:
    url = f"{storage_account.blob_endpoint}/data"
    with ContainerClient.from_container_url(url, credential=storage_account.key) as client:
        client.create_container()
        yield client


@pytest.fixture
def world(tmp_path: Path, identity_endpoint: Identity) -> Iterator[World]:
    identity = {"token_url": identity_endpoint.endpoint, "secret": identity_endpoint.secret}
    world = process_world(tmp_path / "nodes", storage_identity=identity)
    yield world
    world.close()


@pytest.fixture
def client(world: World) -> BatchClient:
    client = make_client(world)
    make_job(client)
    return client


def _sas(account: StorageAccount, permission: str) -> str:
    return generate_container_sas(
        account.name,
        "data",
        account.key,
        permission=ContainerSasPermissions.from_string(permission),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )


def _output(
    pattern: str, container_url: str, path: str, condition: str = "taskcompletion", **more: Any
) -> dict[str, Any]:
    return {
        "filePattern": pattern,
        "destination": {"container": {"containerUrl": container_url, "path": path, **more}},
        "uploadOptions": {"uploadCondition": condition},
    }


def _blobs(container: ContainerClient, prefix: str) -> dict[str, bytes]:
    names = container.list_blob_names(name_starts_with=prefix)
    return {str(name): container.download_blob(name).readall() for name in names}


def test_inputs_arrive_by_url_and_by_prefix(
    client: BatchClient, container: ContainerClient, storage_account: StorageAccount
) -> None:
    big = bytes(range(256)) * 40_000
    container.upload_blob("hash/in put/big.bin", big)
    container.upload_blob("hash/trn-1/a.txt", b"a")
    container.upload_blob("hash/trn-1/sub/b+c.txt", b"b")
    container.upload_blob("hash/trn-2/c.txt", b"c")
    sas = _sas(storage_account, "rl")
    add_task(
        client,
        commandLine="find . -type f -printf '%P %s %m\\n'",
        resourceFiles=[
            {
                "httpUrl": f"{container.url}/hash/in%20put/big.bin?{sas}",
                "filePath": "inputs/big.bin",
                "fileMode": "0640",
            },
            {"storageContainerUrl": f"{container.url}?{sas}", "blobPrefix": "hash/trn-1", "filePath": "inputs/"},
        ],
    )

    assert finished(client).exit_code == 0
    assert sorted(read(client, "stdout.txt").splitlines()) == [
        "inputs/big.bin 10240000 640",
        "inputs/hash/trn-1/a.txt 1 770",
        "inputs/hash/trn-1/sub/b+c.txt 1 770",
    ]


def test_outputs_keep_their_names_behind_the_fixed_part_of_the_pattern(
    client: BatchClient, container: ContainerClient, storage_account: StorageAccount
) -> None:
    url = f"{container.url}?{_sas(storage_account, 'cw')}"
    make = "mkdir -p inference/deep outputs && touch inference/.hidden outputs/none && echo 1 > inference/x.tif"
    more = "echo 2 > inference/deep/y.gpkg && echo 3 > outputs/m.json && echo out"
    add_task(
        client,
        commandLine=f"/bin/bash -c '{make} && {more}'",
        outputFiles=[
            _output("$AZ_BATCH_TASK_WORKING_DIR/inference/**/*", url, "hash/inf"),
            _output("$AZ_BATCH_TASK_WORKING_DIR/**/*", url, "hash/all"),
            _output("outputs/*.*", url, "hash/img"),
            _output("../*.txt", url, "hash/logs"),
            _output("outputs/m.json", url, "hash/renamed.json"),
        ],
    )

    assert finished(client).failure_info is None
    blobs = _blobs(container, "hash/")
    names = {name.removeprefix("hash/") for name in blobs}
    assert {name for name in names if name.startswith("inf/")} == {"inf/x.tif", "inf/deep/y.gpkg"}
    assert {name for name in names if name.startswith("all/")} == {
        "all/inference/x.tif",
        "all/inference/deep/y.gpkg",
        "all/outputs/m.json",
        "all/outputs/none",
    }
    assert {name for name in names if name.startswith("img/")} == {"img/m.json"}
    assert {name for name in names if name.startswith("logs/")} == {
        "logs/stdout.txt",
        "logs/stderr.txt",
        "logs/fileuploadout.txt",
        "logs/fileuploaderr.txt",
    }
    assert blobs["hash/logs/stdout.txt"] == b"out\n"
    assert blobs["hash/renamed.json"] == b"3\n"


@pytest.mark.parametrize(("exit_code", "expected"), [(0, {"completion", "success"}), (3, {"completion", "failure"})])
def test_conditions_decide_what_is_uploaded(
    client: BatchClient, container: ContainerClient, storage_account: StorageAccount, exit_code: int, expected: set[str]
) -> None:
    url = f"{container.url}?{_sas(storage_account, 'cw')}"
    add_task(
        client,
        commandLine=f"/bin/bash -c 'echo x > f; exit {exit_code}'",
        outputFiles=[_output("f", url, f"o/{name}", f"task{name}") for name in ("completion", "success", "failure")],
    )

    info = finished(client)

    assert info.exit_code == exit_code
    assert {name.removeprefix("o/") for name in _blobs(container, "o/")} == expected


def test_the_pool_s_identity_needs_no_signature(client: BatchClient, container: ContainerClient) -> None:
    container.upload_blob("hash/config.yaml", b"key: 1")
    container.upload_blob("hash/trn-1/a.txt", b"a")
    add_task(
        client,
        commandLine="/bin/bash -c 'cat config.yaml inputs/hash/trn-1/a.txt > outcome'",
        resourceFiles=[
            {"httpUrl": f"{container.url}/hash/config.yaml", "filePath": "config.yaml", "identityReference": _IDENTITY},
            {
                "storageContainerUrl": container.url,
                "blobPrefix": "hash/trn-1",
                "filePath": "inputs/",
                "identityReference": _IDENTITY,
            },
        ],
        outputFiles=[_output("outcome", container.url, "hash/outcome", identityReference=_IDENTITY)],
    )

    assert finished(client).failure_info is None
    assert _blobs(container, "hash/outcome") == {"hash/outcome": b"key: 1a"}


def test_an_account_key_may_stand_for_the_identity(
    tmp_path: Path, container: ContainerClient, storage_account: StorageAccount
) -> None:
    world = process_world(tmp_path / "keyed", storage_identity={"account_key": storage_account.key})
    client = make_client(world)
    make_job(client)
    add_task(
        client,
        commandLine="/bin/bash -c 'echo 1 > f'",
        outputFiles=[_output("f", container.url, "f", identityReference=_IDENTITY)],
    )

    assert finished(client).failure_info is None
    assert _blobs(container, "f") == {"f": b"1\n"}


def test_inputs_that_cannot_be_had(
    client: BatchClient, container: ContainerClient, storage_account: StorageAccount
) -> None:
    container.upload_blob("x", b"1")
    read_only, write_only = _sas(storage_account, "rl"), _sas(storage_account, "w")
    inputs = {
        "BlobNotFound": {"httpUrl": f"{container.url}/none?{read_only}", "filePath": "x"},
        "BlobAccessDenied": {"httpUrl": f"{container.url}/x?{write_only}", "filePath": "x"},
        "ResourceContainerAccessDenied": {"storageContainerUrl": f"{container.url}?{write_only}", "filePath": "x"},
        "ResourceContainerNotFound": {
            "storageContainerUrl": f"{storage_account.blob_endpoint}/gone",
            "identityReference": _IDENTITY,
        },
        "ResourceFileCreateFailed": {"httpUrl": f"{container.url}/x?{read_only}", "filePath": "../../x"},
    }
    for code, resource in inputs.items():
        add_task(client, code, commandLine="true", resourceFiles=[resource])
        info = finished(client, code)
        assert (info.failure_info.code, info.failure_info.category, info.exit_code) == (code, "usererror", None)
        assert "sig=" not in info.failure_info.message


def test_storage_that_does_not_answer_is_a_server_error(client: BatchClient) -> None:
    add_task(
        client,
        commandLine="true",
        resourceFiles=[{"httpUrl": "https://127.0.0.1:9/account/c/b?sig=x", "filePath": "x"}],
    )

    failure = finished(client).failure_info

    assert (failure.code, failure.category) == ("BlobDownloadMiscError", "servererror")


def test_outputs_that_cannot_be_stored(
    client: BatchClient, container: ContainerClient, storage_account: StorageAccount
) -> None:
    outputs = {
        "FileUploadAccessDenied": f"{container.url}?{_sas(storage_account, 'r')}",
        "FileUploadContainerNotFound": f"{storage_account.blob_endpoint}/gone",
    }
    for code, url in outputs.items():
        more: dict[str, Any] = {} if "sig=" in url else {"identityReference": _IDENTITY}
        add_task(client, code, commandLine="/bin/bash -c 'echo 1 > f'", outputFiles=[_output("f", url, "f", **more)])
        info = finished(client, code)
        assert (info.failure_info.code, info.exit_code, info.result) == (code, 0, "failure")
        assert "sig=" not in info.failure_info.message


@pytest.mark.parametrize("uploads", [False, True])
def test_a_terminated_task_uploads_only_where_the_world_says_so(
    tmp_path: Path, container: ContainerClient, storage_account: StorageAccount, uploads: bool
) -> None:
    world = process_world(tmp_path / "nodes", assumptions={"terminated_task_uploads_outputs": uploads})
    client = make_client(world)
    make_job(client)
    add_task(
        client,
        commandLine="/bin/bash -c 'echo 1 > f; touch ready; sleep 600'",
        outputFiles=[_output("f", f"{container.url}?{_sas(storage_account, 'cw')}", "uploaded")],
    )
    until(lambda: states(client)["task"] == "running")
    until(lambda: any(file.name == "wd/ready" for file in client.list_task_files("job", "task", recursive=True)))

    client.terminate_task("job", "task")

    assert finished(client).failure_info.code == "TaskEnded"
    assert ("uploaded" in _blobs(container, "")) == uploads


class _Stalling(BaseHTTPRequestHandler):
    """A storage service that takes its time to answer."""

    asked = threading.Event()
    released = threading.Event()

    def do_GET(self) -> None:
        self.asked.set()
        self.released.wait(60)
        self.send_error(404)

    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.fixture
def stalling() -> Iterator[str]:
    _Stalling.asked.clear()
    _Stalling.released.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stalling)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    _Stalling.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_task_is_running_while_its_inputs_come_and_can_be_preempted_then(
    client: BatchClient, world: World, stalling: str
) -> None:
    add_task(client, commandLine="true", resourceFiles=[{"httpUrl": f"{stalling}/account/c/b?sig=x", "filePath": "x"}])
    assert _Stalling.asked.wait(30)
    assert states(client) == {"task": "running"}

    control.preempt_task(world, "job", "task", return_after_seconds=None)

    assert states(client) == {"task": "active"}
    _Stalling.released.set()
    world.tick()
    assert states(client) == {"task": "active"}
    assert [entry["event"] for entry in world.events.select("run_ended", "run_lost")] == ["run_lost"]
