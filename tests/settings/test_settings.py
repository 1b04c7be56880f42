"""Reading the app settings: defaults, values, and faults told all at once."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ConfigurationError
from shared.kinds import Kind
from shared.settings.load import load_settings, setting_names
from shared.settings.table import Settings

KEY = "a2V5LW9mLXRoZS1hY2NvdW50LXRoYXQtbXVzdC1uZXZlci1iZS1zaG93bg=="
CONNECTION = f"DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey={KEY};EndpointSuffix=core.windows.net"
IDENTITY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u"
LEGACY = {
    "AzureWebJobsStorage__accountName": "contoso",
    "BLOB_CONNECTION_STRING": CONNECTION,
    "METADATA_STORAGE_TYPE": "blob",
    "ARTIFACT_STORAGE_TYPE": "blob",
    "TITILER_ENDPOINT": "/api/titiler",
    "AZURE_BATCH_ACCOUNT_NAME": "contosobatch",
    "AZURE_BATCH_ACCOUNT_KEY": KEY,
    "AZURE_BATCH_URL": "https://contosobatch.westeurope.batch.azure.com",
    "AZURE_BATCH_OUTPUT_CONTAINER_URL": "https://contoso.blob.core.windows.net/data",
    "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": IDENTITY,
    "AZURE_BATCH_DOCKER_IMAGE": "contoso.azurecr.io/training:2",
    "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": "contoso.azurecr.io/imageryprep:2",
}
SHARED = {**LEGACY, "AZURE_BATCH_USE_SAS": "true", "AZURE_BATCH_ACCOUNT_KEY": ""}
EMULATED = {
    **SHARED,
    "AzureWebJobsStorage__accountName": "tenanta",
    "AZURE_BATCH_OUTPUT_CONTAINER_URL": "https://127.0.0.1:10000/tenanta/data",
    "BLOB_CONNECTION_STRING": f"AccountName=tenanta;AccountKey={KEY};BlobEndpoint=https://127.0.0.1:10000/tenanta;"
    "QueueEndpoint=https://127.0.0.1:10001/tenanta",
}


def faults(environ: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as raised:
        load_settings(environ)
    return raised.value.faults


def fault(environ: dict[str, str]) -> str:
    found = faults(environ)
    assert len(found) == 1, found
    return found[0]


def queue_setting(kind: Kind) -> str:
    """The setting with the name of the kind's queue."""
    name = load_settings(LEGACY).of(kind).queue_name
    return next(str(row.alias) for row in Settings.model_fields.values() if row.default == name)


def test_an_existing_deployment_needs_no_new_setting() -> None:
    settings = load_settings(LEGACY)
    assert not settings.shared_mode
    assert settings.azure_batch_manage_pools
    assert settings.worker_tenant == "contoso"
    assert settings.trigger_account == "contoso"
    assert settings.titiler_public_endpoint == "/api/titiler/"
    assert settings.task_retention == timedelta(days=2)
    assert settings.storage_account.blob_url == "https://contoso.blob.core.windows.net"
    assert settings.storage_account.queue_url == "https://contoso.queue.core.windows.net"
    assert [settings.of(kind).max_run for kind in Kind] == [None] * 3
    assert [settings.of(kind).pool_ids for kind in Kind] == [
        ("imageryprep-pool",),
        ("training-pool",),
        ("training-pool",),
    ]
    assert [settings.of(kind).base_job_id for kind in Kind] == ["imageryprep-pool", "training-pool", "training-pool"]
    assert [settings.of(kind).queue_name for kind in Kind] == ["image-layers-queue", "train-queue", "inference-queue"]
    assert [settings.of(kind).image[19:] for kind in Kind] == ["imageryprep:2", "training:2", "training:2"]


def test_shared_mode_has_limits_of_its_own() -> None:
    settings = load_settings(SHARED)
    assert settings.shared_mode
    assert settings.azure_batch_account_key is None
    assert settings.task_retention == timedelta(hours=1)
    assert [settings.of(kind).max_run for kind in Kind] == [timedelta(hours=hours) for hours in (6, 48, 12)]
    assert load_settings({**SHARED, "AZURE_BATCH_TASK_RETENTION_TIME": "PT10M"}).task_retention == timedelta(minutes=10)


def test_shared_mode_needs_no_identity_of_the_pool() -> None:
    load_settings({**SHARED, "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": ""})
    environ = {**LEGACY, "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": ""}
    assert fault(environ).startswith("AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID is not set")


def test_an_emulator_on_this_machine_is_an_account_like_any() -> None:
    settings = load_settings(EMULATED)
    assert settings.worker_tenant == "tenanta"
    assert settings.storage_account.blob_url == "https://127.0.0.1:10000/tenanta"


def test_nothing_set_names_every_setting_that_is_needed() -> None:
    named = [sentence.split("=")[0].split(" ")[0] for sentence in faults({})]
    assert named == [
        "AzureWebJobsStorage",
        "BLOB_CONNECTION_STRING",
        "METADATA_STORAGE_TYPE",
        "ARTIFACT_STORAGE_TYPE",
        "TITILER_ENDPOINT",
        "AZURE_BATCH_ACCOUNT_NAME",
        "AZURE_BATCH_URL",
        "AZURE_BATCH_OUTPUT_CONTAINER_URL",
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
        "AZURE_BATCH_DOCKER_IMAGE",
        "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE",
    ]


def test_empty_is_unset_and_strangers_are_left_alone() -> None:
    empty = {name: "" for name in setting_names() if name not in LEGACY}
    assert load_settings({**LEGACY, **empty, "PATH": "/bin", "worker_tenant": "x"}) == load_settings(LEGACY)
    assert load_settings({**LEGACY, "WORKER_MAX_WAIT": "  "}) == load_settings(LEGACY)


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        ("AZURE_BATCH_TRAINING_POOL_IDS", "h100", "azure_batch_training_pool_ids", ("h100",)),
        ("AZURE_BATCH_TRAINING_POOL_IDS", " h100 ,t4,h100,", "azure_batch_training_pool_ids", ("h100", "t4")),
        ("AZURE_BATCH_MANAGE_POOLS", "False", "azure_batch_manage_pools", False),
        ("AZURE_BATCH_URL", "https://b.azure.com/", "azure_batch_url", "https://b.azure.com"),
        ("TITILER_PUBLIC_ENDPOINT", "https://t/x/", "titiler_public_endpoint", "https://t/x/"),
        ("WORKER_MAX_RUN_TRAINING", "P1WT1S", "worker_max_run_training", timedelta(weeks=1, seconds=1)),
        ("WORKER_LATE_SAVE", "PT1H30M", "worker_late_save", timedelta(minutes=90)),
        ("WORKER_MAX_PREEMPTIONS", "1", "worker_max_preemptions", 1),
        ("WORKER_TENANT", "haste-tenant-1", "worker_tenant", "haste-tenant-1"),
    ],
)
def test_values(name: str, value: str, attribute: str, expected: object) -> None:
    assert getattr(load_settings({**LEGACY, name: value}), attribute) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AZURE_BATCH_TRAINING_POOL_IDS", '"<x>"'),
        ("AZURE_BATCH_TRAINING_POOL_IDS", '" , "'),
        ("AZURE_BATCH_INFERENCE_POOL_IDS", ","),
        ("AZURE_BATCH_IMAGERYPREP_POOL_IDS", "a b"),
        ("AZURE_BATCH_TRAINING_POOL_ID", "x" * 65),
        ("AZURE_BATCH_DOCKER_IMAGE", "<registry-name>.azurecr.io/training"),
        ("AZURE_BATCH_ACCOUNT_NAME", "<name>"),
        ("AZURE_BATCH_URL", "contosobatch.westeurope.batch.azure.com"),
        ("AZURE_BATCH_URL", "http://contosobatch.westeurope.batch.azure.com"),
        ("AZURE_BATCH_URL", "https://[contoso"),
        ("AZURE_BATCH_OUTPUT_CONTAINER_URL", "https://contoso.blob.core.windows.net"),
        ("AZURE_BATCH_OUTPUT_CONTAINER_URL", "https://contoso.blob.core.windows.net/data/sub"),
        ("AZURE_BATCH_OUTPUT_CONTAINER_URL", "https://contoso.blob.core.windows.net/other"),
        ("AZURE_BATCH_OUTPUT_CONTAINER_URL", "https://fabrikam.blob.core.windows.net/data"),
        ("AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID", "my-identity"),
        ("AZURE_BATCH_USE_SAS", "yes"),
        ("AZURE_BATCH_TARGET_DEDICATED_NODES", "-1"),
        ("AZURE_BATCH_TASK_RETENTION_TIME", "2 days"),
        ("METADATA_STORAGE_TYPE", "local"),
        ("ARTIFACT_STORAGE_TYPE", "Blob"),
        ("RUNNER_TYPE", "local"),
        ("BLOB_CONTAINER", "Data"),
        ("TRAIN_QUEUE_NAME", "train_queue"),
        ("TRAIN_QUEUE_NAME", "x" * 57),
        ("IMAGE_QUEUE_NAME", "a--b"),
        ("WATCH_SCHEDULE", "* * * *"),
        ("WATCH_SCHEDULE", "60 * * * * *"),
        ("WATCH_SCHEDULE", "0 0 24 * * *"),
        ("WATCH_SCHEDULE", "a b c d e f"),
        ("WATCH_SCHEDULE", "0 0 0 31 2 *"),
        ("WORKER_TENANT", "Contoso"),
        ("WORKER_CONTAINER", "data"),
        ("WORKER_QUEUE_NAME", "train-queue"),
        ("WORKER_MAX_WAIT", "PT0S"),
        ("WORKER_MAX_WAIT", "-PT5M"),
        ("WORKER_MAX_WAIT", "P1M"),
        ("WORKER_MAX_WAIT", "P"),
        ("WORKER_MAX_WAIT", "3600"),
        ("WORKER_LATE_SAVE", f"P{'9' * 30}D"),
        ("WORKER_MAX_PREEMPTIONS", "-1"),
        ("WORKER_MAX_PREEMPTIONS", "0"),
        ("WORKER_MAX_PREEMPTIONS", "many"),
        ("WORKER_TENANT_MAX_LIVE_TASKS", "-1"),
        ("TITILER_TILESIZE", "0"),
        ("AzureWebJobsStorage__queueServiceUri", "contoso.queue.core.windows.net"),
    ],
)
def test_a_faulty_value_is_shown_with_its_setting(name: str, value: str) -> None:
    sentence = fault({**LEGACY, name: value})
    assert sentence.startswith(f"{name}={value!r}: ")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BLOB_CONNECTION_STRING", "AccountName=contoso;SharedAccessSignature=sv=1&sig=never", "AccountKey"),
        ("BLOB_CONNECTION_STRING", "UseDevelopmentStorage=true", "AccountKey"),
        ("BLOB_CONNECTION_STRING", f"AccountKey={KEY}", "AccountName"),
        ("BLOB_CONNECTION_STRING", "AccountName=contoso;AccountKey=never!", "not base64"),
        ("BLOB_CONNECTION_STRING", "AccountName=contoso;AccountKey=<key>", "placeholder"),
        (
            "BLOB_CONNECTION_STRING",
            f"AccountName=contoso;AccountKey={KEY};BlobEndpoint=http://127.0.0.1:10000/contoso",
            "QueueEndpoint",
        ),
        (
            "BLOB_CONNECTION_STRING",
            f"AccountName=contoso;AccountKey={KEY};BlobEndpoint=http://localhost/contoso;QueueEndpoint=https://q.net",
            "QueueEndpoint",
        ),
        (
            "AzureWebJobsStorage",
            f"AccountName=contoso;AccountKey={KEY};BlobEndpoint=http://127.0.0.1:10000/contoso",
            "QueueEndpoint",
        ),
        ("AzureWebJobsStorage", "never", "not a connection string"),
        ("AZURE_BATCH_ACCOUNT_KEY", "never!", "not base64"),
        ("AZURE_BATCH_ACCOUNT_KEY", "<key>", "placeholder"),
    ],
)
def test_a_faulty_secret_is_named_and_not_shown(name: str, value: str, said: str) -> None:
    sentence = fault({**LEGACY, name: value})
    assert sentence.startswith(f"{name} (its value is secret): ")
    assert said in sentence
    assert "never" not in sentence
    assert KEY not in sentence


def test_a_sas_in_a_url_is_not_shown() -> None:
    url = "https://contoso.blob.core.windows.net/data?sv=1&sig=never"
    sentence = fault({**LEGACY, "AZURE_BATCH_OUTPUT_CONTAINER_URL": url})
    assert "plain URL" in sentence
    assert "never" not in sentence


def test_secrets_are_in_no_text_of_the_settings() -> None:
    settings = load_settings({**LEGACY, "AzureWebJobsStorage": CONNECTION})
    assert KEY not in f"{settings} {settings!r} {settings.storage_account!r} {settings.model_dump_json()}"


def test_all_faults_are_told_at_once_each_once() -> None:
    broken = {
        **LEGACY,
        "BLOB_CONNECTION_STRING": "",
        "BLOB_CONTAINER": "Data",
        "AZURE_BATCH_USE_SAS": "maybe",
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": "<identity>",
        "WORKER_MAX_WAIT": "soon",
        "METADATA_STORAGE_TYPE": "local",
    }
    named = [re.split(r"[= ]", sentence)[0] for sentence in faults(broken)]
    assert named == [
        "BLOB_CONNECTION_STRING",
        "BLOB_CONTAINER",
        "METADATA_STORAGE_TYPE",
        "AZURE_BATCH_USE_SAS",
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
        "WORKER_MAX_WAIT",
    ]


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"WORKER_MAX_RUN_TRAINING": "P6DT22H"}, "WORKER_MAX_RUN_TRAINING"),
        ({"WORKER_MAX_RUN_INFERENCE": "P7D"}, "WORKER_MAX_RUN_INFERENCE"),
    ],
)
def test_what_storage_access_cannot_last_for_is_a_fault_in_shared_mode(changes: dict[str, str], setting: str) -> None:
    sentence = fault({**SHARED, **changes})
    assert sentence.startswith(f"{setting}: ")
    assert f"lower {setting} or WORKER_MAX_WAIT" in sentence
    load_settings({**LEGACY, **changes})


def test_a_wait_that_is_too_long_concerns_every_kind() -> None:
    assert [s.split(":")[0] for s in faults({**SHARED, "WORKER_MAX_WAIT": "P6DT22H"})] == [
        "WORKER_MAX_RUN_IMAGERYPREP",
        "WORKER_MAX_RUN_TRAINING",
        "WORKER_MAX_RUN_INFERENCE",
    ]


def test_the_longest_run_that_fits_is_no_fault() -> None:
    load_settings({**SHARED, "WORKER_MAX_RUN_TRAINING": "P5DT22H"})  # and a day of waiting, and an hour twice
    assert fault({**SHARED, "WORKER_MAX_RUN_TRAINING": "P5DT22H1S"})


def test_triggers_on_another_account_would_never_see_a_message() -> None:
    for changes in (
        {"AzureWebJobsStorage__accountName": "fabrikam"},
        {"AzureWebJobsStorage": CONNECTION.replace("contoso", "fabrikam")},
        {
            "AzureWebJobsStorage__accountName": "",
            "AzureWebJobsStorage__queueServiceUri": "https://fabrikam.queue.core.windows.net",
        },
        {"AzureWebJobsStorage": "UseDevelopmentStorage=true"},
    ):
        sentence = fault({**LEGACY, **changes})
        assert sentence.startswith("AzureWebJobsStorage is about the account ")
        assert "'contoso'" in sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"AzureWebJobsStorage": CONNECTION},
        {
            "AzureWebJobsStorage__accountName": "",
            "AzureWebJobsStorage__blobServiceUri": "https://contoso.blob.core.windows.net",
            "AzureWebJobsStorage__queueServiceUri": "https://contoso.queue.core.windows.net/",
        },
        {"AzureWebJobsStorage__accountName": "", "AzureWebJobsStorage__queueServiceUri": "https://queues.contoso.com"},
    ],
)
def test_triggers_on_hastes_account(changes: dict[str, str]) -> None:
    load_settings({**LEGACY, **changes})


def test_a_custom_domain_needs_the_tenants_name() -> None:
    changes = {"AZURE_BATCH_OUTPUT_CONTAINER_URL": "https://data.contoso.com/data"}
    assert fault({**LEGACY, **changes}).startswith("WORKER_TENANT is not set")
    assert load_settings({**LEGACY, **changes, "WORKER_TENANT": "contoso"}).worker_tenant == "contoso"


def test_shared_mode_needs_https_to_the_blobs() -> None:
    plain = EMULATED["BLOB_CONNECTION_STRING"].replace("https://", "http://")
    assert "https://" in fault({**EMULATED, "BLOB_CONNECTION_STRING": plain})
    load_settings({**EMULATED, "BLOB_CONNECTION_STRING": plain, "AZURE_BATCH_USE_SAS": "false"})


def test_two_queues_of_one_name_are_a_fault() -> None:
    sentence = fault({**LEGACY, "IMAGE_QUEUE_NAME": "same-queue", "INFERENCE_QUEUE_NAME": "same-queue"})
    assert sentence.startswith("INFERENCE_QUEUE_NAME='same-queue'")
    assert "IMAGE_QUEUE_NAME" in sentence


@pytest.mark.parametrize("kind", Kind)
def test_no_kind_s_queue_is_another_queue(kind: Kind) -> None:
    own = queue_setting(kind)
    for other in [name for name in setting_names() if name.endswith("_QUEUE_NAME") and name != own]:
        sentence = fault({**LEGACY, own: "same-queue", other: "same-queue"})
        assert own in sentence
        assert other in sentence


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_s_longest_run_is_a_setting_that_a_fault_can_name(kind: Kind) -> None:
    name = f"WORKER_MAX_RUN_{kind.name}"
    assert name in setting_names()
    assert fault({**SHARED, name: "P7D"}).startswith(f"{name}:")


def test_what_is_sent_to_haste_must_not_come_back() -> None:
    sentence = fault({**LEGACY, "ZIP_QUEUE_NAME": "haste-worker-jobs"})
    assert sentence.startswith("WORKER_QUEUE_NAME='haste-worker-jobs'")
    assert "ZIP_QUEUE_NAME" in sentence


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_its_own_settings(kind: Kind) -> None:
    settings = load_settings(
        {
            **LEGACY,
            f"AZURE_BATCH_{kind.name}_POOL_IDS": "one,two",
            f"{kind.name}_BATCH_JOB_ID": "base",
            f"WORKER_MAX_RUN_{kind.name}": "PT3H",
            queue_setting(kind): "own-queue",
        }
    )
    for other in Kind:
        is_own = other is kind
        assert (settings.of(other).pool_ids == ("one", "two")) is is_own
        assert (settings.of(other).base_job_id == "base") is is_own
        assert (settings.of(other).max_run == timedelta(hours=3)) is is_own
        assert (settings.of(other).queue_name == "own-queue") is is_own


@given(st.dictionaries(st.sampled_from(setting_names()), st.text(max_size=40), max_size=8))
def test_no_value_makes_reading_fail_in_any_other_way(changes: dict[str, str]) -> None:
    try:
        settings = load_settings({**LEGACY, **changes})
    except ConfigurationError as error:
        assert error.faults
        for sentence in error.faults:
            assert sentence.startswith(setting_names())
    else:
        assert settings.worker_tenant


def test_the_table_is_named_like_its_settings_and_explained() -> None:
    for attribute, field in Settings.model_fields.items():
        assert field.alias is not None
        assert attribute == field.alias.lower()
        assert field.description is not None
        assert "\n" not in field.description
        assert field.description.endswith(".")
