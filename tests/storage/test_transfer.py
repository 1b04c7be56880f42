"""The resource and output files of a task, in Azure Batch's shape."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from shared.batch.task_spec import OutputFile, ResourceFile, TaskSpec
from shared.batch.transfer import IdentityTransfer, SasTransfer, Transfer
from shared.errors import Refused
from shared.settings.lifetimes import sas_expiry
from shared.storage.addresses import ContainerAddress
from tests.storage.conftest import Tenant
from tests.storage.test_delegation import HOUR, allowed

SAMPLES = Path(__file__).resolve().parents[1] / "haste_samples/batch-tasks"
KINDS = ["imageryprep", "training", "inference"]


def sample(kind: str) -> dict[str, Any]:
    """A task as HASTE's own app submits it."""
    loaded: dict[str, Any] = json.loads((SAMPLES / f"{kind}.json").read_text())
    return loaded


def spec_of(task: dict[str, Any], query: str = "") -> TaskSpec:
    return TaskSpec(
        command_line=task["commandLine"],
        image_name=task["containerSettings"]["imageName"],
        resource_files=tuple(
            ResourceFile(f"{file['httpUrl']}{query}", file["filePath"]) for file in task["resourceFiles"]
        ),
        output_files=tuple(
            OutputFile(file["filePattern"], file["destination"]["container"]["path"]) for file in task["outputFiles"]
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", ["", "?sv=2024-11-04&si=image-layer-r-policy&sr=c&sig=c2ln"])
def test_with_the_pools_identity_a_task_is_what_haste_submits(kind: str, query: str) -> None:
    task = sample(kind)
    container = task["outputFiles"][0]["destination"]["container"]
    transfer = IdentityTransfer(
        ContainerAddress(container["containerUrl"]),
        container["containerUrl"],
        container["identityReference"]["resourceId"],
    )
    spec = spec_of(task, query)
    assert transfer.resource_files(spec) == task["resourceFiles"]
    assert transfer.output_files(spec) == task["outputFiles"]
    assert transfer.resign("https://a/data/x?sig=1") == "https://a/data/x?sig=1"


def sas_transfer(tenant: Tenant) -> SasTransfer:
    expiry = sas_expiry(tenant.clock.now, HOUR, HOUR)
    return SasTransfer(tenant.address, tenant.address.url, tenant.delegation, expiry)


def test_with_sas_inputs_are_read_and_results_written_and_no_identity_is_named(tenant: Tenant) -> None:
    tenant.blobs.write("seen", b"content")
    spec = TaskSpec(
        "run",
        "image",
        (ResourceFile(f"{tenant.blobs.url('seen')}?sig=stored", "in/seen"), ResourceFile(tenant.blobs.url("b"), "b")),
        (OutputFile("outputs/*.*", "hash/img-1"), OutputFile("../*.txt", "hash/img-1")),
    )
    transfer = sas_transfer(tenant)
    inputs, outputs = transfer.resource_files(spec), transfer.output_files(spec)

    assert [file["filePath"] for file in inputs] == ["in/seen", "b"]
    assert [set(file) for file in inputs] == [{"httpUrl", "filePath"}] * 2
    assert allowed(tenant, urlsplit(inputs[0]["httpUrl"]).query) == {"read", "look"}
    assert allowed(tenant, urlsplit(inputs[1]["httpUrl"]).query) == set()

    first = outputs[0]["destination"]["container"]
    assert first["path"] == "hash/img-1"
    assert set(first) == {"path", "containerUrl"}
    assert [file["filePattern"] for file in outputs] == ["outputs/*.*", "../*.txt"]
    assert all(file["uploadOptions"] == {"uploadCondition": "taskcompletion"} for file in outputs)
    assert allowed(tenant, urlsplit(first["containerUrl"]).query) == {"create", "overwrite"}
    assert len(tenant.service.asked) == 1


@pytest.mark.parametrize("url", ["https://open.example.org/data/x", "https://127.0.0.1/other/data/x", "x"])
@pytest.mark.parametrize("mode", ["identity", "sas"])
def test_an_input_that_is_not_hastes_is_refused(tenant: Tenant, mode: str, url: str) -> None:
    transfer: Transfer = sas_transfer(tenant)
    if mode == "identity":
        transfer = IdentityTransfer(tenant.address, tenant.address.url, "/subscriptions/x")
    with pytest.raises(Refused, match=r"in/x\.tif"):
        transfer.resource_files(TaskSpec("run", "image", (ResourceFile(url, "in/x.tif"),), ()))


def test_a_task_without_results_gets_no_access_to_write(tenant: Tenant) -> None:
    assert sas_transfer(tenant).output_files(TaskSpec("run", "image", (), ())) == []
    assert tenant.service.asked == []


def test_the_expiry_is_the_transfers(tenant: Tenant) -> None:
    transfer = sas_transfer(tenant)
    signed = transfer.resign(tenant.blobs.url("x"))
    until = [part for part in urlsplit(signed).query.split("&") if part.startswith("se=")]
    assert datetime.fromisoformat(until[0][3:].replace("%3A", ":")).astimezone(UTC) == transfer.expiry
