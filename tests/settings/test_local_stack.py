"""The local stack's settings are what the worker reads in a deployment."""

from __future__ import annotations

import pytest

from local.stack.azurite import StorageAccount, account_key
from local.stack.settings import BatchAccount, Identity, tenant_settings
from shared.settings.load import load_settings


@pytest.mark.parametrize("legacy", [True, False])
def test_a_local_tenant_has_no_faulty_setting(legacy: bool) -> None:
    endpoints = [f"https://127.0.0.1:{port}/tenanta" for port in (10000, 10001, 10002)]
    account = StorageAccount("tenanta", account_key("tenanta"), *endpoints)
    batch = BatchAccount("localbatch", account_key("batch"), "https://127.0.0.1:10003")
    identity = Identity("http://127.0.0.1:10004/msi/token", "secret")
    settings = load_settings(tenant_settings("tenant-a", account, batch, identity, legacy=legacy))
    assert settings.worker_tenant == "tenant-a"
    assert settings.shared_mode is not legacy
    assert settings.storage_account.queue_url == account.queue_endpoint
