"""The worker's app, and what it may do, by the committed predictions of infra/main.bicep and infra/platform.bicep."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shared.kinds import Kind
from shared.settings.load import load_settings
from shared.settings.table import Settings
from tests.infra import expectations
from tests.infra.snapshots import Json, app_settings, load, names, resources

APPS = names("main-")
SHARED_MODE = [name for name in APPS if name not in ("main-legacy", "main-managed-pools")]
ROLE_NAME = re.compile(r"\[guid\('(?P<scope>/[^']+)', reference\('[^']+'.*\)(?:\.identity)?\.principalId, '[^']+'\)\]")


def _site(name: str) -> Any:
    (site,) = resources(load(name), "Microsoft.Web/sites")
    return site


def _settings(name: str) -> Settings:
    """As the worker reads them, with secrets in the place of references to a key vault."""
    values = app_settings(load(name))
    return load_settings(
        {key: "c2VjcmV0" if text.startswith("@Microsoft.KeyVault(") else text for key, text in values.items()}
    )


@pytest.mark.parametrize("name", APPS)
def test_the_worker_accepts_its_settings(name: str) -> None:
    settings = _settings(name)
    assert settings.shared_mode == (name in SHARED_MODE)
    assert settings.azure_batch_manage_pools == (name not in SHARED_MODE)
    assert settings.storage_account.name == settings.trigger_account == "examplehaste"
    assert settings.of(Kind.TRAINING).image == "exampleregistry.azurecr.io/hastetraining:2.0.0"
    assert settings.azure_batch_url == "https://examplebatch.westus2.batch.azure.com"


@pytest.mark.parametrize("name", APPS)
def test_every_setting_is_there(name: str) -> None:
    expectations.every_setting(load(name))


def test_settings_of_the_operators_choice() -> None:
    settings = _settings("main-shared")
    assert settings.worker_tenant == "example"
    assert settings.worker_tenant_max_live_tasks == 20
    assert settings.of(Kind.INFERENCE).pool_ids == ("haste-shared-dev-t4-pool", "haste-shared-dev-h100-pool")


def test_settings_of_the_host_may_be_chosen_too() -> None:
    settings = app_settings(load("main-managed-pools"))
    assert settings["AzureFunctionsJobHost__extensions__queues__batchSize"] == "2"
    assert all(settings[name] for name in ("AZURE_CLIENT_ID", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"))


@pytest.mark.parametrize("name", APPS)
def test_it_is_a_flex_consumption_app_for_python_311(name: str) -> None:
    (plan,) = resources(load(name), "Microsoft.Web/serverfarms")
    assert plan["sku"] == {"tier": "FlexConsumption", "name": "FC1"}
    site = _site(name)
    configuration = site["properties"]["functionAppConfig"]
    assert configuration["runtime"] == {"name": "python", "version": "3.11"}
    assert configuration["deployment"]["storage"]["authentication"] == {"type": "SystemAssignedIdentity"}
    assert site["identity"] == {"type": "SystemAssigned"}
    assert site["properties"]["httpsOnly"] is True


@pytest.mark.parametrize("name", APPS)
def test_what_flex_consumption_refuses_is_left_out(name: str) -> None:
    refused = {"FUNCTIONS_WORKER_RUNTIME", "FUNCTIONS_EXTENSION_VERSION", "WEBSITE_RUN_FROM_PACKAGE"}
    refused |= {"WEBSITE_CONTENTSHARE", "WEBSITE_CONTENTAZUREFILECONNECTIONSTRING", "SCM_DO_BUILD_DURING_DEPLOYMENT"}
    assert refused & set(app_settings(load(name))) == set()


def test_two_apps_on_one_storage_account_have_two_host_ids() -> None:
    """Though their names are the same up to the 32nd character, where the host cuts them."""
    one, other = (_site(name)["name"] for name in ("main-shared", "main-shared-second-app"))
    assert one != other
    assert one[:32] == other[:32]
    ids = [app_settings(load(name))["AzureFunctionsWebHost__hostid"] for name in APPS]
    assert len({ids[APPS.index("main-shared")], ids[APPS.index("main-shared-second-app")]}) == 2
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", host_id) and len(host_id) <= 32 for host_id in ids)


@pytest.mark.parametrize(
    ("name", "batch_role"),
    [
        ("main-legacy", None),
        ("main-managed-pools", expectations.BATCH_DATA_CONTRIBUTOR),
        ("main-shared", expectations.BATCH_JOB_SUBMITTER),
        ("main-shared-second-app", expectations.BATCH_JOB_SUBMITTER),
        ("main-from-nothing", expectations.BATCH_JOB_SUBMITTER),
    ],
)
def test_roles_by_mode(name: str, batch_role: str | None) -> None:
    expectations.roles_of_an_app(load(name), shares_pools=name in SHARED_MODE, batch_role=batch_role)


def test_batch_is_reached_by_key_or_by_identity() -> None:
    keys = {name: app_settings(load(name))["AZURE_BATCH_ACCOUNT_KEY"] for name in APPS}
    assert keys.pop("main-legacy").startswith("@Microsoft.KeyVault(SecretUri=https://")
    assert set(keys.values()) == {""}


@pytest.mark.parametrize("name", names())
def test_names_of_role_assignments_come_from_scope_principal_and_role(name: str) -> None:
    """So a second deployment finds them, and another app or role does not."""
    snapshot = load(name)
    found = resources(snapshot, "Microsoft.Authorization/roleAssignments")
    assert len({assignment["name"] for assignment in found}) == len(found)
    for assignment in found:
        if re.fullmatch(r"[0-9a-f-]{36}", assignment["name"]):  # all three were known: the compiler made the name
            continue
        parts = ROLE_NAME.fullmatch(assignment["name"])
        assert parts, assignment["name"]
        assert f"'{parts['scope']}'" in assignment["id"]
        assert assignment["properties"]["principalId"].strip("[]") in assignment["name"]
        assert assignment["properties"]["roleDefinitionId"].rpartition("/")[2] in assignment["name"]
        assert assignment["properties"]["principalType"] == "ServicePrincipal"


def test_nothing_is_assigned_outside_of_the_apps_own_storage_and_batch_account() -> None:
    ids = [one["id"] for one in resources(load("main-shared"), "Microsoft.Authorization/roleAssignments")]
    assert all("/storageAccounts/examplehaste'" in one or "/batchAccounts/examplebatch'" in one for one in ids)
    assert any("/resourceGroups/haste-rg/" in one for one in ids)
    assert any("/resourceGroups/platform-rg/" in one for one in ids)


@pytest.mark.parametrize("name", APPS)
def test_the_network_is_integrated_where_one_is_given(name: str) -> None:
    subnet = _site(name)["properties"]["virtualNetworkSubnetId"]
    assert (subnet is None) == (name == "main-legacy")
    assert load(name)["outputs"]["functionSubnetId"] == (subnet or "")


def test_functions_can_stay_off() -> None:
    off = {name for name in app_settings(load("main-legacy")) if name.endswith(".Disabled")}
    assert off == {f"AzureWebJobs.{kind.value}.Disabled" for kind in Kind}


def test_an_existing_storage_account_is_not_written_to() -> None:
    for name in set(APPS) - {"main-from-nothing"}:
        assert resources(load(name), "Microsoft.Storage/storageAccounts") == []


def _new_storage() -> tuple[Json, Json]:
    snapshot = load("main-from-nothing")
    (account,) = resources(snapshot, "Microsoft.Storage/storageAccounts")
    return snapshot, account


def test_a_new_storage_account_lets_both_subnets_in_and_nobody_else() -> None:
    snapshot, account = _new_storage()
    rules = account["properties"]["networkAcls"]
    assert rules["defaultAction"] == "Deny"
    (network,) = resources(snapshot, "Microsoft.Network/virtualNetworks")
    (subnet,) = network["properties"]["subnets"]
    allowed = {rule["id"] for rule in rules["virtualNetworkRules"]}
    batch = {one for one in allowed if one.endswith("/virtualNetworks/haste-batch-network/subnets/batch")}
    assert allowed - batch == {f"{network['id']}/subnets/{subnet['name']}"}
    assert batch
    assert account["properties"]["allowBlobPublicAccess"] is False


def test_a_new_storage_account_has_the_containers_and_queues_of_haste() -> None:
    snapshot, _ = _new_storage()
    settings = _settings("main-from-nothing")
    queues = resources(snapshot, "Microsoft.Storage/storageAccounts/queueServices/queues")
    assert {queue["name"].rpartition("/")[2] for queue in queues} == {settings.of(kind).queue_name for kind in Kind}
    containers = resources(snapshot, "Microsoft.Storage/storageAccounts/blobServices/containers")
    wanted = {settings.blob_container, "app-package-example-worker"}
    assert {container["name"].rpartition("/")[2] for container in containers} == wanted


def _subnet(name: str) -> Any:
    (network,) = resources(load(name), "Microsoft.Network/virtualNetworks")
    (subnet,) = network["properties"]["subnets"]
    return subnet["properties"]


def test_subnets_reach_storage_and_are_for_one_service() -> None:
    functions, batch = _subnet("main-from-nothing"), _subnet("platform-from-nothing")
    assert functions["serviceEndpoints"] == batch["serviceEndpoints"] == [{"service": "Microsoft.Storage"}]
    assert [one["properties"]["serviceName"] for one in functions["delegations"]] == ["Microsoft.App/environments"]
    assert batch["delegations"] == []  # Batch refuses a delegated subnet
    assert batch["defaultOutboundAccess"] is functions["defaultOutboundAccess"] is True  # else a new one is private


def test_the_platform_gives_each_identity_one_right() -> None:
    """Images may be pulled; Batch may put nodes into its subnet."""
    pull, join = ("registries", expectations.PULL), ("subnets", expectations.NETWORK_CONTRIBUTOR)
    assert expectations.roles(load("platform-from-nothing")) == {pull, join}
    assert expectations.roles(load("platform-existing")) == {pull}
    (assignment,) = resources(load("platform-existing"), "Microsoft.Authorization/roleAssignments")
    assert "/resourceGroups/registry-rg/" in assignment["id"]


def test_the_platform_makes_only_what_is_not_there() -> None:
    made = {"Microsoft.Batch/batchAccounts", "Microsoft.ContainerRegistry/registries"}
    assert made <= {one["type"] for one in load("platform-from-nothing")["predictedResources"]}
    assert not made & {one["type"] for one in load("platform-existing")["predictedResources"]}


def test_names_are_made_of_any_prefix_that_pools_may_have() -> None:
    """Azure allows lower-case letters and digits, 24 for a Batch account, 5 to 50 for a registry."""
    snapshot = load("platform-from-nothing")
    for kind in ("Microsoft.Batch/batchAccounts", "Microsoft.ContainerRegistry/registries"):
        (made,) = resources(snapshot, kind)
        assert re.fullmatch(r"ailabofmyco[a-z0-9]{13}", made["name"])


def test_the_batch_network_is_in_the_region_of_the_batch_account() -> None:
    (network,) = resources(load("platform-existing-network"), "Microsoft.Network/virtualNetworks")
    assert re.fullmatch(
        r"\[reference\('/.+/batchAccounts/examplebatch', '.+', 'full'\)\.location\]", network["location"]
    )
    (network,) = resources(load("platform-from-nothing"), "Microsoft.Network/virtualNetworks")
    (account,) = resources(load("platform-from-nothing"), "Microsoft.Batch/batchAccounts")
    assert network["location"] == account["location"]


def test_alerts_tell_somebody() -> None:
    alerts = resources(load("main-from-nothing"), "Microsoft.Insights/scheduledQueryRules")
    assert len(alerts) >= 10
    for alert in alerts:
        assert alert["properties"]["actions"]["actionGroups"]
        assert alert["properties"]["scopes"][0].endswith("/example-worker-insights")
    assert resources(load("main-shared"), "Microsoft.Insights/scheduledQueryRules") == []


def test_an_alert_looks_back_as_far_as_to_its_last_look_at_least() -> None:
    minutes = {
        "PT15M": 15,
        "PT30M": 30,
        "PT1H": 60,
        "PT2H": 120,
        "PT6H": 360,
        "P1D": 1440,
    }  # what Azure takes, and more
    for name in ("main-from-nothing", "platform-existing"):
        for alert in resources(load(name), "Microsoft.Insights/scheduledQueryRules"):
            properties = alert["properties"]
            assert minutes[properties["windowSize"]] >= minutes[properties["evaluationFrequency"]]


def test_an_alert_that_is_asked_once_a_day_does_not_wait_to_be_resolved() -> None:
    """Azure resolves those that are asked every twelve hours or more often; until then they do not fire again."""
    alerts = [
        one["properties"] for one in resources(load("main-from-nothing"), "Microsoft.Insights/scheduledQueryRules")
    ]
    assert {one["autoMitigate"] for one in alerts if one["evaluationFrequency"] == "P1D"} == {False}
    assert {one["autoMitigate"] for one in alerts if one["evaluationFrequency"] != "P1D"} == {True}


def test_silence_of_the_timer_is_an_alert() -> None:
    alerts = resources(load("main-from-nothing"), "Microsoft.Insights/scheduledQueryRules")
    operators = {one["name"]: one["properties"]["criteria"]["allOf"][0]["operator"] for one in alerts}
    assert operators.pop("example-worker-not-alive") == "LessThan"
    assert set(operators.values()) == {"GreaterThan"}


def test_the_platform_keeps_what_batch_says_of_its_pools_where_it_is_asked_to() -> None:
    (logs,) = resources(load("platform-existing"), "Microsoft.Insights/diagnosticSettings")
    (alert,) = resources(load("platform-existing"), "Microsoft.Insights/scheduledQueryRules")
    assert "/batchAccounts/examplebatch/" in logs["id"]
    assert [one["category"] for one in logs["properties"]["logs"]] == ["ServiceLog"]
    assert alert["properties"]["scopes"] == [logs["properties"]["workspaceId"]]
    assert alert["properties"]["actions"]["actionGroups"]
    assert resources(load("platform-from-nothing"), "Microsoft.Insights/diagnosticSettings") == []
