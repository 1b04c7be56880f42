"""The operator's health report: what is wrong by name, and no secret in it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from local.stack.azurite import StorageAccount
from local.stack.settings import Identity
from shared import app, health
from shared.app import App
from shared.errors import WorkerError
from shared.settings.load import setting_names
from shared.storage import accounts
from tests.storage.conftest import settings_for
from tests.support.batch_account import Account
from tests.support.passing_waits import PassingWaits

ALL_CHECKS = ["settings", "ledger", "HASTE's container", "task credentials", "Azure Batch"]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@pytest.fixture(autouse=True)
def fresh_app(monkeypatch: pytest.MonkeyPatch) -> None:
    """No app of another test, and no setting of this machine."""
    app.get_app.cache_clear()
    for name in setting_names():
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def account() -> Account:
    pools = [{"id": "training-pool"}, {"id": "imageryprep-pool"}]
    return Account(pools)


@pytest.fixture
def worker_app(
    storage_account: StorageAccount, identity_endpoint: Identity, account: Account, monkeypatch: pytest.MonkeyPatch
) -> App:
    """A worker in shared mode on real storage, with an emulated Batch account."""
    settings = settings_for(storage_account)
    made = app.build(settings)
    accounts.haste_container(settings).create_container()
    made.worker = dataclasses.replace(made.worker, batch=account.of_tenant())
    monkeypatch.setattr(health, "get_app", lambda: made)
    return made


def checks(report: health.Report) -> dict[str, health.Check]:
    return {check.name: check for check in report.checks}


def test_with_everything_well(worker_app: App) -> None:
    report = health.report()
    assert report.ok, report.to_json()
    assert list(checks(report)) == ALL_CHECKS
    told = json.loads(report.to_json())
    assert told["ok"] is True
    assert {one["name"] for one in told["checks"]} == set(ALL_CHECKS)
    assert checks(report)["ledger"].detail == "0 live jobs"


def test_a_missing_pool_is_named(worker_app: App, account: Account) -> None:
    account.raw("DELETE", "/pools/imageryprep-pool", expect=202)
    report = health.report()
    assert not report.ok
    assert [check.name for check in report.checks if not check.ok] == ["Azure Batch"]
    assert "imageryprep-pool" in checks(report)["Azure Batch"].detail
    assert "training-pool" not in checks(report)["Azure Batch"].detail


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"status": 503}, "503"),
        ({"drop_connection": True}, "nothing"),
        ({"status": 403, "code": "AuthenticationFailed"}, "403 AuthenticationFailed"),
    ],
)
def test_batch_down_does_not_hide_the_rest(worker_app: App, account: Account, fault: dict[str, Any], told: str) -> None:
    account.fault(operation="list_pools", **fault)
    report = health.report()
    assert [check.name for check in report.checks if not check.ok] == ["Azure Batch"]
    assert told in checks(report)["Azure Batch"].detail
    assert len(report.checks) == len(ALL_CHECKS)


def test_hastes_container_that_is_not_there_is_told(worker_app: App) -> None:
    accounts.haste_container(worker_app.settings).delete_container()
    report = health.report()
    assert not checks(report)["HASTE's container"].ok
    assert checks(report)["Azure Batch"].ok


@pytest.mark.parametrize("breaks", ["ledger", "pools"])
def test_any_error_is_told_redacted(worker_app: App, monkeypatch: pytest.MonkeyPatch, breaks: str) -> None:
    url = "https://tenanta.blob.core.windows.net/data/x?sv=2024-11-04&sig=c2VjcmV0LXNpZ25hdHVyZQ%3D%3D"
    secret = f"{url} AccountKey=c2VjcmV0a2V5c2VjcmV0a2V5=="

    def fails(*_args: Any) -> None:
        raise RuntimeError(f"something about {secret} " + "x" * 2000)

    port = worker_app.worker.ledger if breaks == "ledger" else worker_app.worker.batch
    monkeypatch.setattr(port, "live" if breaks == "ledger" else "pools", fails)
    text = health.report().to_json()
    assert "RuntimeError" in text
    assert "c2VjcmV0" not in text
    assert len(text) < 3000


def test_settings_that_are_missing_are_all_named() -> None:
    report = health.report()
    assert not report.ok
    assert {check.name for check in report.checks} == {"settings"}
    told = report.to_json()
    for name in ("BLOB_CONNECTION_STRING", "AZURE_BATCH_URL", "AZURE_BATCH_OUTPUT_CONTAINER_URL"):
        assert name in told


@pytest.fixture
def environment(storage_account: StorageAccount, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """App settings in the environment, as the host gives them."""

    def apply(**changed: str) -> None:
        settings = settings_for(storage_account)
        fields = type(settings).model_fields
        for name in settings.model_fields_set:
            value = getattr(settings, name)
            text = value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
            monkeypatch.setenv(str(fields[name].alias), text)
        for name, text in changed.items():
            monkeypatch.setenv(name, text)

    return apply


def test_a_wrong_setting_is_told_without_its_secret(environment: Callable[..., None]) -> None:
    environment(AZURE_BATCH_ACCOUNT_KEY="not-a-key-but-secret", WORKER_MAX_PREEMPTIONS="-1")
    report = health.report()
    assert not report.ok
    assert {check.name for check in report.checks} == {"settings"}
    assert "WORKER_MAX_PREEMPTIONS" in report.to_json()
    assert "not-a-key-but-secret" not in report.to_json()
    assert os.environ["BLOB_CONNECTION_STRING"] not in report.to_json()


def test_a_worker_that_cannot_start_says_why_without_its_key(
    environment: Callable[..., None], storage_account: StorageAccount
) -> None:
    wrong = "d3JvbmcgYnV0IGxvbmcgZW5vdWdoIHRvIGJlIGEga2V5"
    broken = storage_account.connection_string.replace(storage_account.key, wrong)
    assert broken != storage_account.connection_string
    environment(BLOB_CONNECTION_STRING=broken, AzureWebJobsStorage=broken)
    report = health.report()
    (check,) = report.checks
    assert (check.name, check.ok) == ("start", False)
    assert "could not create the container haste-worker" in check.detail
    assert wrong not in report.to_json() and "https://" not in report.to_json()
    with pytest.raises(WorkerError):
        app.get_app()
