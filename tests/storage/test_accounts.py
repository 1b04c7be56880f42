"""Clients made of the settings, against Azurite."""

from __future__ import annotations

import logging

import pytest
from azure.core.exceptions import AzureError

from shared.identity import AppIdentity
from shared.storage.accounts import delegating_service, haste_container, queues, worker_container
from shared.storage.blob_container import BlobContainer
from shared.telemetry import logs
from tests.storage.conftest import Tenant, settings_for


def test_all_clients_are_of_hastes_account(tenant: Tenant) -> None:
    worker = BlobContainer(worker_container(tenant.settings))
    worker.ensure()
    worker.write("active/x.json", b"{}")
    tenant.blobs.write("x", b"1")
    queues(tenant.settings).create_queue("train-queue")
    assert {one.name for one in delegating_service(tenant.settings, AppIdentity(None)).list_containers()} == {
        "data",
        "haste-worker",
    }
    assert [one.name for one in queues(tenant.settings).list_queues()] == ["train-queue"]
    assert [one.name for one in haste_container(tenant.settings).list_blobs()] == ["x"]


def test_a_proxy_that_leads_nowhere_does_not_stand_between_local_services(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    settings = settings_for(tenant.account)
    BlobContainer(haste_container(settings)).write("x", b"1")
    assert list(queues(settings).list_queues()) == []
    assert len(list(delegating_service(settings, AppIdentity(None)).list_containers())) == 1


def test_nothing_secret_is_logged_at_any_level_of_the_sdk(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    logs.configure()
    sas = tenant.delegation.container_write(tenant.address.url, tenant.clock.now).split("?")[1]
    with caplog.at_level(logging.DEBUG):
        for name in ("azure", "urllib3"):
            logging.getLogger(name).setLevel(logging.DEBUG)
        try:
            BlobContainer(haste_container(tenant.settings)).write("x", b"1")
            tenant.blobs.read("x")
            with pytest.raises(AzureError):
                type(tenant.container).from_container_url(f"{tenant.address.url}?{sas}").upload_blob("y", b"1")
        finally:
            logs.configure()
    assert "PUT" in caplog.text
    signature = sas.split("sig=")[1]
    assert signature not in caplog.text
    assert tenant.account.key not in caplog.text
    assert "SharedKey tenant" not in caplog.text
