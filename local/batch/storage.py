"""Blob storage as a node reaches it: with the SAS of the URL, or with the pool's identity."""

import json
import os
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from azure.core.credentials import AccessToken
from azure.core.exceptions import AzureError, HttpResponseError, ServiceResponseTimeoutError
from azure.storage.blob import BlobClient, ContainerClient

from local.batch.config import StorageIdentity

_CHUNK_BYTES = 4 * 1024 * 1024
_LARGEST_SINGLE_PUT_BYTES = 256 * 1024 * 1024
_TOKEN_SPARE_SECONDS = 60


class StorageRefused(Exception):
    """A transfer failed. `status` is the HTTP status; 0: no answer, -1: timed out. The text holds no query."""

    def __init__(self, status: int, url: str) -> None:
        where = url.partition("?")[0]
        said = f"HTTP {status}" if status > 0 else "no answer in time" if status < 0 else "no answer"
        super().__init__(f"{where}: {said}")
        self.status = status


class Interrupted(Exception):
    """The transfer was given up because its task is to end."""


class Storage:
    """Downloads, lists and uploads blobs. `stopping` is asked between chunks; Interrupted is raised when it says yes.

    Certificates are trusted as REQUESTS_CA_BUNDLE or SSL_CERT_FILE say.
    """

    def __init__(self, identity: StorageIdentity | None) -> None:
        self._credential = _credential(identity) if identity else None
        bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE")
        self._options: dict[str, Any] = {
            "connection_verify": bundle or True,
            "connection_timeout": 10,
            "read_timeout": 60,
            "retry_total": 2,
            "retry_backoff_factor": 0.2,
            "initial_backoff": 1,
            "increment_base": 1,
            "max_single_put_size": _LARGEST_SINGLE_PUT_BYTES,
            "max_chunk_get_size": _CHUNK_BYTES,
            "max_single_get_size": _CHUNK_BYTES,
        }

    def download(self, url: str, with_identity: bool, target: Path, stopping: Callable[[], bool]) -> None:
        """Copy one blob into a file. Raises StorageRefused."""
        with _Refusals(url), self._blob(url, with_identity) as blob, target.open("wb") as file:
            for chunk in blob.download_blob().chunks():
                if stopping():
                    raise Interrupted
                file.write(chunk)

    def list(self, container_url: str, with_identity: bool, prefix: str) -> Iterator[str]:
        """The names of a container's blobs that begin with a prefix. Raises StorageRefused."""
        with (
            _Refusals(container_url),
            ContainerClient.from_container_url(
                container_url, self._chosen(with_identity), **self._options
            ) as container,
        ):
            yield from container.list_blob_names(name_starts_with=prefix)

    def upload(self, source: Path, container_url: str, with_identity: bool, name: str) -> None:
        """Copy a file into a blob, over one that exists. Raises StorageRefused."""
        url = blob_url(container_url, name)
        with _Refusals(url), self._blob(url, with_identity) as blob, source.open("rb") as file:
            blob.upload_blob(file, overwrite=True)

    def _blob(self, url: str, with_identity: bool) -> BlobClient:
        return BlobClient.from_blob_url(url, self._chosen(with_identity), **self._options)

    def _chosen(self, with_identity: bool) -> Any:
        return self._credential if with_identity else None


def blob_url(container_url: str, name: str) -> str:
    """A blob's URL with the query (SAS) of its container's."""
    base, _, query = container_url.partition("?")
    return f"{base.rstrip('/')}/{urllib.parse.quote(name)}" + (f"?{query}" if query else "")


class _Refusals:
    """Turns the SDK's errors, whose texts may hold URLs with signatures, into StorageRefused."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, HttpResponseError):
            raise StorageRefused(error.status_code or 0, self._url) from None
        if isinstance(error, ServiceResponseTimeoutError):
            raise StorageRefused(-1, self._url) from None
        if isinstance(error, (AzureError, OSError, ValueError)):
            raise StorageRefused(0, self._url) from None


def _credential(identity: StorageIdentity) -> Any:
    return identity.account_key or _ManagedIdentity(identity)


class _ManagedIdentity:
    """Tokens from an App Service managed identity endpoint."""

    def __init__(self, identity: StorageIdentity) -> None:
        self._identity = identity
        self._token: AccessToken | None = None

    def get_token(self, *scopes: str, **_options: Any) -> AccessToken:
        if self._token and self._token.expires_on - _TOKEN_SPARE_SECONDS > time.time():
            return self._token
        resource = scopes[0].removesuffix("/.default")
        query = urllib.parse.urlencode({"api-version": "2019-08-01", "resource": resource})
        request = urllib.request.Request(  # noqa: S310 - the operator of the world names the endpoint
            f"{self._identity.token_url}?{query}", headers={"X-IDENTITY-HEADER": self._identity.secret}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            body = json.load(answer)
        self._token = AccessToken(body["access_token"], int(body["expires_on"]))
        return self._token
