"""Rules about more than one app setting, or about a setting that has to be there.

Each yields a setting's name, what is wrong with it and what to do. `needs` are the settings a rule looks at: when one
of them has a fault of its own already, the rule would only repeat it in other words and is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from shared.kinds import Kind
from shared.settings.lifetimes import KEY_MAX_LIFE, MARGIN, fits
from shared.settings.table import Settings
from shared.settings.values import QueueName, account_name, container_name

_REQUIRED = {
    "BLOB_CONNECTION_STRING": "HASTE's blobs and queues are reached with it, and the long-lived URLs in HASTE's "
    "records are signed with its AccountKey (a token cannot do that); set the one of HASTE's storage account",
    "AZURE_BATCH_ACCOUNT_NAME": "set the name of the Batch account",
    "AZURE_BATCH_URL": "set https://<account>.<region>.batch.azure.com",
    "AZURE_BATCH_OUTPUT_CONTAINER_URL": "set the URL of HASTE's container, https://<account>.blob.core.windows.net/data",
    "AZURE_BATCH_DOCKER_IMAGE": "set the container image of training and inference",
    "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": "set the container image of imagery preparation",
    "TITILER_ENDPOINT": "set the address of the tile server; it goes into the label projects",
}
_FIXED = {"METADATA_STORAGE_TYPE": "blob", "ARTIFACT_STORAGE_TYPE": "blob", "RUNNER_TYPE": "azure_batch"}
_TRIGGERS = "AzureWebJobsStorage"
_TRIGGER_NAMES = (_TRIGGERS, f"{_TRIGGERS}__accountName", f"{_TRIGGERS}__queueServiceUri")
#: Every row of the table that is of type QueueName.
_QUEUES = tuple(
    str(row.alias) for row in Settings.model_fields.values() if set(row.metadata) & set(get_args(QueueName)[1:])
)


@dataclass(frozen=True)
class Broken:
    """One broken rule. `sentence` follows the setting's name."""

    setting: str
    sentence: str
    needs: tuple[str, ...] = ()


def broken_rules(settings: Settings) -> Iterator[Broken]:
    """Every rule that `settings` breaks."""
    yield from _required(settings)
    yield from _storage(settings)
    yield from _lifetimes(settings)


def _required(settings: Settings) -> Iterator[Broken]:
    for name, what_to_do in _REQUIRED.items():
        if not getattr(settings, name.lower()):
            yield Broken(name, f" is not set: {what_to_do}")
    for name, only in _FIXED.items():
        value = getattr(settings, name.lower())
        if value != only:
            yield Broken(name, f"={value!r}: must be {only!r}; the worker has no other kind")
    if not settings.shared_mode and settings.azure_batch_registry_identity_resource_id is None:
        yield Broken(
            "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
            " is not set: tasks read and write blobs as this identity; set its resource id, "
            "or AZURE_BATCH_USE_SAS=true",
            ("AZURE_BATCH_USE_SAS",),
        )
    if not settings.worker_tenant and settings.azure_batch_output_container_url:
        yield Broken(
            "WORKER_TENANT",
            " is not set: AZURE_BATCH_OUTPUT_CONTAINER_URL has a host of its own and does not tell the account's name",
            ("AZURE_BATCH_OUTPUT_CONTAINER_URL",),
        )
    if not any(getattr(settings, name.lower()) for name in _TRIGGER_NAMES):
        names = " or ".join(_TRIGGER_NAMES[1:])
        yield Broken(_TRIGGERS, f" is not set: triggers listen on this account; set it, {names}", _TRIGGER_NAMES)


def _storage(settings: Settings) -> Iterator[Broken]:
    for queue, count in Counter(getattr(settings, name.lower()) for name in _QUEUES).items():
        if count > 1:
            names = [name for name in _QUEUES if getattr(settings, name.lower()) == queue]
            yield Broken(
                names[-1], f"={queue!r}: is the name in {names[0]} too; each queue needs its own", tuple(names)
            )
    if settings.worker_container == settings.blob_container:
        yield Broken(
            "WORKER_CONTAINER",
            f"={settings.worker_container!r}: is HASTE's container (BLOB_CONTAINER); the worker needs its own",
            ("BLOB_CONTAINER",),
        )
    if not settings.blob_connection_string:
        return
    if settings.shared_mode and not settings.storage_account.blob_url.startswith("https://"):
        yield Broken(
            "BLOB_CONNECTION_STRING",
            " has a blob endpoint that starts with http://; tasks get SAS for https only, so AZURE_BATCH_USE_SAS=true "
            "needs an https:// one",
            ("AZURE_BATCH_USE_SAS",),
        )
    account = settings.storage_account.name
    yield from _output_container(settings, account)
    listening = settings.trigger_account
    if listening is not None and listening != account:
        yield Broken(
            _TRIGGERS,
            f" is about the account {listening!r}, but HASTE's messages are in {account!r} (BLOB_CONNECTION_STRING): "
            "the triggers would never see one",
            (*_TRIGGER_NAMES, "BLOB_CONNECTION_STRING"),
        )


def _output_container(settings: Settings, account: str) -> Iterator[Broken]:
    url = settings.azure_batch_output_container_url
    if not url:
        return
    if container_name(url) != settings.blob_container or account_name(url) not in (None, account):
        yield Broken(
            "AZURE_BATCH_OUTPUT_CONTAINER_URL",
            f"={url!r}: must be the container of HASTE's records, {settings.blob_container!r} of account {account!r}; "
            "results are looked for there",
            ("BLOB_CONTAINER", "BLOB_CONNECTION_STRING"),
        )


def _lifetimes(settings: Settings) -> Iterator[Broken]:
    if not settings.shared_mode:
        return
    for kind in Kind:
        name = f"WORKER_MAX_RUN_{kind.name}"
        max_run = settings.of(kind).max_run
        if max_run is not None and not fits(settings.worker_max_wait, max_run):
            yield Broken(
                name,
                f": {kind.value} may wait {settings.worker_max_wait} (WORKER_MAX_WAIT) and run {max_run}, but its "
                f"access to storage lasts {KEY_MAX_LIFE - 2 * MARGIN} at most; lower {name} or WORKER_MAX_WAIT",
                ("WORKER_MAX_WAIT", "AZURE_BATCH_USE_SAS"),
            )
