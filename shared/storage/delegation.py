"""SAS for tasks: signed with the app's identity, for https only, for one blob or for writing into one container.

Such a SAS ends with the delegation key that signed it, so keys are cached and a new one is fetched as soon as the
cached one would end before a SAS that is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ContainerSasPermissions,
    UserDelegationKey,
    generate_blob_sas,
    generate_container_sas,
)

from shared.errors import Refused
from shared.settings.lifetimes import TOO_LONG, Window, covers, key_window, sas_start
from shared.settings.values import container_name
from shared.storage.addresses import ContainerAddress, without_query
from shared.storage.failures import DELEGATOR_ROLE, told


class Delegation:
    """Mints SAS for one account; one instance per process, as it holds the key.

    `service` is the account with a token credential, `container` HASTE's container. Every `expiry` is UTC, see
    `lifetimes.sas_expiry`. Raises Refused if no key lasts until `expiry`; StorageAccessDenied if the app's identity may
    not get a key.
    """

    def __init__(
        self, service: BlobServiceClient, account_name: str, container: ContainerAddress, clock: Callable[[], datetime]
    ) -> None:
        self._service = service
        self._account_name = account_name
        self._container = container
        self._clock = clock
        self._key: UserDelegationKey | None = None
        self._lock = threading.Lock()

    def container_write(self, container_url: str, expiry: datetime) -> str:
        """URL to create and overwrite blobs in a container with; it cannot read, list or delete."""
        key, start = self._key_until(expiry)
        token = generate_container_sas(
            self._account_name,
            container_name(container_url),
            user_delegation_key=key,
            permission=ContainerSasPermissions(create=True, write=True),
            start=start,
            expiry=expiry,
            protocol="https",
        )
        return f"{container_url}?{token}"

    def resign(self, url: str, expiry: datetime) -> str:
        """A URL of HASTE's container with a SAS to read just that blob, in place of what query it had.

        Other URLs are returned as they are: nobody gets access of this account by naming its blobs elsewhere, such as
        the containers of Azure Functions.
        """
        name = self._container.blob_name(url)
        return url if name is None else f"{without_query(url)}?{self._blob_token(name, expiry)}"

    def _blob_token(self, name: str, expiry: datetime) -> str:
        key, start = self._key_until(expiry)
        return str(
            generate_blob_sas(
                self._account_name,
                container_name(self._container.url),
                name,
                user_delegation_key=key,
                permission=BlobSasPermissions(read=True),
                start=start,
                expiry=expiry,
                protocol="https",
            )
        )

    def _key_until(self, expiry: datetime) -> tuple[UserDelegationKey, datetime]:
        """A key that lasts until `expiry`, and when a SAS of it starts."""
        now = self._clock()
        with self._lock:
            if self._key is None or not covers(_window(self._key), now, expiry):
                self._key = self._fetch(key_window(now))
            key = self._key
        if not covers(_window(key), now, expiry):
            raise Refused(TOO_LONG)
        return key, sas_start(now, _window(key))

    def _fetch(self, window: Window) -> UserDelegationKey:
        with told(f"get a user delegation key of the storage account {self._account_name}", DELEGATOR_ROLE):
            return self._service.get_user_delegation_key(window.start, window.expiry)


def _window(key: UserDelegationKey) -> Window:
    """The life that Azure Storage gave the key, which is what counts."""
    return Window(_time(key.signed_start), _time(key.signed_expiry))


def _time(text: str | None) -> datetime:
    return datetime.fromisoformat(f"{str(text)[:19]}+00:00").astimezone(UTC)
