"""The trip wire for the pinned pair Azurite and azure-storage-blob: delegated SAS work, and stay in their bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import (
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    UserDelegationKey,
    generate_container_sas,
)

from local.stack.azurite import StorageAccount

NOW = datetime.now(UTC)


@pytest.fixture
def delegation_key(storage_account: StorageAccount) -> UserDelegationKey:
    with (
        DefaultAzureCredential() as credential,
        BlobServiceClient(storage_account.blob_endpoint, credential) as service,
    ):
        return service.get_user_delegation_key(NOW - timedelta(minutes=5), NOW + timedelta(hours=1))


@pytest.fixture
def own(storage_account: StorageAccount) -> ContainerClient:
    return container_of(storage_account, "own")


def container_of(account: StorageAccount, name: str) -> ContainerClient:
    """The owner's client of a new container with one blob, `seen`."""
    container = ContainerClient.from_connection_string(account.connection_string, name)
    container.create_container()
    container.upload_blob("seen", b"content")
    return container


def with_sas(
    container: ContainerClient, key: UserDelegationKey, signed_for: ContainerClient, permissions: str
) -> ContainerClient:
    """A client of `container` that holds a SAS made for `signed_for`."""
    token = generate_container_sas(
        str(signed_for.account_name),
        signed_for.container_name,
        user_delegation_key=key,
        permission=ContainerSasPermissions.from_string(permissions),
        expiry=NOW + timedelta(minutes=30),
        protocol="https",
    )
    return ContainerClient.from_container_url(container.url, credential=token)


def refused(call: Callable[[], object]) -> bool:
    """Whether the service answers 403; the code differs between Azure and Azurite and is not looked at."""
    with pytest.raises(HttpResponseError) as caught:
        call()
    return caught.value.status_code == 403


def test_read_list_sas_reads_its_own_container(own: ContainerClient, delegation_key: UserDelegationKey) -> None:
    holder = with_sas(own, delegation_key, own, "rl")
    assert holder.download_blob("seen").readall() == b"content"
    assert list(holder.list_blob_names()) == ["seen"]


def test_read_list_sas_is_refused_on_another_container_of_the_account(
    own: ContainerClient, storage_account: StorageAccount, delegation_key: UserDelegationKey
) -> None:
    other = container_of(storage_account, "other")
    holder = with_sas(other, delegation_key, own, "rl")
    assert refused(lambda: holder.download_blob("seen").readall())
    assert refused(lambda: list(holder.list_blob_names()))


def test_read_list_sas_cannot_write_or_delete(own: ContainerClient, delegation_key: UserDelegationKey) -> None:
    holder = with_sas(own, delegation_key, own, "rl")
    assert refused(lambda: holder.upload_blob("new", b"x"))
    assert refused(lambda: holder.delete_blob("seen"))
    assert [*own.list_blob_names()] == ["seen"]


def test_output_sas_writes_and_nothing_else(own: ContainerClient, delegation_key: UserDelegationKey) -> None:
    holder = with_sas(own, delegation_key, own, "cw")
    holder.upload_blob("made", b"first")
    holder.upload_blob("made", b"second", overwrite=True)
    assert own.download_blob("made").readall() == b"second"
    assert refused(lambda: holder.download_blob("seen").readall())
    assert refused(lambda: holder.get_blob_client("seen").get_blob_properties())
    assert refused(lambda: list(holder.list_blob_names()))
    assert refused(lambda: holder.delete_blob("seen"))


def test_sas_of_one_tenant_is_refused_on_the_account_of_another(
    own: ContainerClient, azurite: Iterator[StorageAccount], delegation_key: UserDelegationKey
) -> None:
    other = container_of(next(azurite), own.container_name)
    reader = with_sas(other, delegation_key, own, "rl")
    writer = with_sas(other, delegation_key, own, "cw")
    assert refused(lambda: reader.download_blob("seen").readall())
    assert refused(lambda: list(reader.list_blob_names()))
    assert refused(lambda: writer.upload_blob("made", b"x"))
    assert [*other.list_blob_names()] == ["seen"]
