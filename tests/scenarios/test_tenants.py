"""Two tenants share a Batch account: nothing of one gets into the other's storage, and no credential opens it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from local.certificates import Certificates
from local.producer import names
from local.stack import Stack, running_stack
from local.stack.settings import CONTAINER
from tests.support.outside import BatchAccount, Haste, wait_for
from tests.support.stacks import options

A, B = "tenanta", "tenantb"
SIGNED = re.compile(r'https://[^"\s]+[?&]sig=[^"\s]+')


class Shared:
    """Both tenants have prepared a layer, trained on it and inferred, at the same time."""

    def __init__(self, stack: Stack) -> None:
        self.batch = BatchAccount(stack)
        self.hastes = {tenant: Haste(stack, tenant) for tenant in (A, B)}
        self.layers = {tenant: haste.new_layer(pre_event=True) for tenant, haste in self.hastes.items()}
        assert {layer.ended() for layer in self.layers.values()} == {"Processed"}
        self.models = {
            tenant: haste.new_model(self.layers[tenant], inference=True) for tenant, haste in self.hastes.items()
        }
        for model in self.models.values():
            wait_for(lambda model=model: model.inference_ended())  # type: ignore[misc]

    def bodies(self, tenant: str) -> list[dict[str, Any]]:
        """The tasks of a tenant as they were added."""
        return [self.batch.body(task) for task in self.batch.created(tenant=tenant)]

    def input_urls(self, tenant: str) -> list[str]:
        """Where the tasks get their inputs, credentials and all."""
        return [str(file["httpUrl"]) for body in self.bodies(tenant) for file in body["resourceFiles"]]

    def output_urls(self, tenant: str) -> list[str]:
        """Where the tasks write to, credentials and all."""
        outputs = [file for body in self.bodies(tenant) for file in body["outputFiles"]]
        return sorted({str(file["destination"]["container"]["containerUrl"]) for file in outputs})

    def config_urls(self, tenant: str) -> list[str]:
        """The URLs inside the config that the tasks read their imagery by."""
        configs = [url for url in self.input_urls(tenant) if "imageryprep_config" in url]
        return [found for url in configs for found in SIGNED.findall(requests.get(url, timeout=10).text)]


@pytest.fixture(scope="module")
def shared(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with running_stack(options(tmp_path_factory.mktemp("run"), certificates, tenants=(A, B))) as running:
        yield Shared(running.stack)


def elsewhere(url: str) -> str:
    """The same URL in the other tenant's account."""
    assert url.count(f"/{A}/") == 1
    return url.replace(f"/{A}/", f"/{B}/")


def within(container_url: str, name: str) -> str:
    """A blob's URL with the credentials of its container's."""
    base, _, query = container_url.partition("?")
    return f"{base}/{name}?{query}"


def name_of(url: str) -> str:
    return url.partition("?")[0].partition(f"/{CONTAINER}/")[2]


def put(url: str) -> int:
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-12-02"}
    return requests.put(url, data=b"put by the test", headers=headers, timeout=10).status_code


@pytest.mark.parametrize("tenant", [A, B])
def test_both_finish(shared: Shared, tenant: str) -> None:
    model = shared.models[tenant]
    assert (model.status, model.inference_status) == ("Processed", "Processed")
    assert [task[:4] for task in shared.batch.created(tenant=tenant)] == ["img-", "trn-", "inf-"]


@pytest.mark.parametrize("tenant", [A, B])
def test_haste_is_asked_once_for_a_zip_and_can_delete_the_model(shared: Shared, tenant: str) -> None:
    haste, model = shared.hastes[tenant], shared.models[tenant]
    (message,) = wait_for(haste.zips_asked)
    assert (message["projectId"], message["modelId"], message["zipStatus"]) == (
        model.project_id,
        model.model_id,
        "Queued",
    )
    folder = names.partition(model.project_id)
    files = ("experiment_config_{}.yaml", "train_labels_{}.geojson", "artifacts_model_{}.json")
    assert {f"{folder}/{file.format(model.model_id)}" for file in files} <= haste.blob_names()


@pytest.mark.parametrize(("tenant", "other"), [(A, B), (B, A)])
def test_nothing_of_one_is_in_the_others_account(shared: Shared, tenant: str, other: str) -> None:
    haste = shared.hastes[tenant]
    strange = names.partition(shared.layers[other].project_id)
    stored = haste.blob_names() | haste.blob_names(haste.own)
    assert stored
    assert not [name for name in stored if strange in name or other in name]
    for name in haste.blob_names():
        if name.endswith((".json", ".yaml", ".txt", ".log")):
            assert other.encode() not in haste.data.download_blob(name).readall(), name


def test_inputs_can_be_read_and_nothing_else_can(shared: Shared) -> None:
    urls = [*shared.input_urls(A), *shared.config_urls(A)]
    assert len(shared.config_urls(A)) >= 2
    hastes = shared.hastes
    other_blob = f"{names.partition(shared.layers[A].project_id)}/somebody-elses"
    hastes[A].data.upload_blob(other_blob, b"of A")
    for url in urls:
        name = name_of(url)
        hastes[B].data.upload_blob(name, b"of B", overwrite=True)
        assert requests.get(url, timeout=10).status_code == 200
        assert requests.get(elsewhere(url), timeout=10).status_code == 403
        assert requests.get(url.replace(name, other_blob), timeout=10).status_code == 403
        assert put(url) == 403


def test_results_can_be_written_and_nothing_else_can(shared: Shared) -> None:
    (prefix,) = {names.partition(shared.layers[A].project_id)}
    for haste in shared.hastes.values():
        haste.data.upload_blob(f"{prefix}/there", b"there", overwrite=True)
    urls = shared.output_urls(A)
    assert urls
    for number, url in enumerate(urls):
        there = within(url, f"{prefix}/there")
        assert put(within(url, f"{prefix}/new-{number}")) == 201
        assert put(within(elsewhere(url), f"{prefix}/new-{number}")) == 403
        assert requests.get(there, timeout=10).status_code == 403
        assert requests.delete(there, timeout=10).status_code == 403
        assert requests.get(f"{url}&restype=container&comp=list", timeout=10).status_code == 403
