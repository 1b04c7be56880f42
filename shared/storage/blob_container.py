"""One blob container: whole blobs in and out, and writes that are conditional on what was read.

A blob that is not there is an answer. A container that is not there, a refusal or no answer is an error, always: taking
one of those for "not there" would lose records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from azure.core import MatchConditions
from azure.storage.blob import BlobLeaseClient, BlobPrefix, BlobProperties, ContainerClient

from shared.errors import Conflict
from shared.storage.failures import allowing, told

if TYPE_CHECKING:
    from shared.storage.reading_urls import ReadingUrls

_EXISTS = ("BlobAlreadyExists", "ConditionNotMet")
# What a write conditional on an ETag meets when somebody else wrote, deleted or leased the blob first.
_LOST = ("ConditionNotMet", "BlobNotFound", "BlobAlreadyExists", "LeaseIdMissing")
# What a lease meets when somebody else has one, and the end of a lease when it is over already.
_LEASED = ("LeaseAlreadyPresent", "LeaseIdMissing")
_LEASE_GONE = ("LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation", "BlobNotFound")


class Version(str):
    """An ETag as Azure Storage writes it, and when that version was written, by the storage's clock (whole seconds)."""

    __slots__ = ("written_at",)

    written_at: datetime

    def __new__(cls, etag: str, written_at: datetime) -> Version:
        version = super().__new__(cls, etag)
        version.written_at = written_at
        return version


def _version_listed(blob: BlobProperties) -> Version:
    # lists show ETags without the quotes that conditions are written with
    return Version(f'"{str(blob.etag).strip(chr(34))}"', blob.last_modified)


def _is_directory(blob: BlobProperties) -> bool:
    """With a hierarchical namespace lists show directories too; they hold nothing, and most cannot be deleted."""
    return any(key.lower() == "hdi_isfolder" for key in blob.metadata or {})


class BlobContainer:
    """`Blobs` as workloads know it, and the conditional access that records need.

    Raises Transient, StorageAccessDenied or StorageFailed; Conflict only where it is named.
    """

    def __init__(self, client: ContainerClient, reading_urls: ReadingUrls | None = None) -> None:
        self._client = client
        self._reading_urls = reading_urls

    def ensure(self) -> None:
        """Create the container if it is not there yet."""
        with told(f"create the container {self._client.container_name}"):
            if not self._client.exists():
                with allowing("ContainerAlreadyExists"):
                    self._client.create_container()

    def url(self, name: str) -> str:
        """Plain URL of a blob, no SAS."""
        return self._client.get_blob_client(name).url

    def reading_url(self, name: str) -> str:
        """URL with HASTE's long-lived container read SAS, as stored in HASTE's records."""
        if self._reading_urls is None:
            raise NotImplementedError("only HASTE's container has URLs for HASTE's records")
        return f"{self.url(name)}?{self._reading_urls.token()}"

    def read(self, name: str) -> bytes | None:
        """Whole content; None if the blob is not there."""
        found = self.read_with_etag(name)
        return None if found is None else found[0]

    def read_with_etag(self, name: str) -> tuple[bytes, Version] | None:
        """Whole content and its version; None if the blob is not there."""
        with told(f"read {self._named(name)}"), allowing("BlobNotFound"):
            stream = self._client.download_blob(name)
            properties = stream.properties
            return stream.readall(), Version(str(properties.etag), properties.last_modified)
        return None

    def read_range(self, name: str, offset: int, length: int) -> bytes | None:
        """Up to `length` bytes from `offset`, fewer at the end of the blob; None if it is not there."""
        with told(f"read {self._named(name)}"), allowing("BlobNotFound"):
            with allowing("InvalidRange"):
                return self._client.download_blob(name, offset=offset, length=length).readall()
            return b""
        return None

    def size_bytes(self, name: str) -> int | None:
        """Content length; None if the blob is not there."""
        with told(f"look at {self._named(name)}"), allowing("BlobNotFound"):
            return int(self._client.get_blob_client(name).get_blob_properties().size)
        return None

    def write(self, name: str, content: bytes) -> None:
        """Create or overwrite."""
        with told(f"write {self._named(name)}"):
            self._client.upload_blob(name, content, overwrite=True)

    def create(self, name: str, content: bytes) -> bool:
        """Create; False (and nothing changed) if it exists."""
        return self.create_with_etag(name, content) is not None

    def create_with_etag(self, name: str, content: bytes, metadata: Mapping[str, str] | None = None) -> Version | None:
        """Create and return the version; None (and nothing changed) if it exists.

        None can also be the answer to a write of our own whose first answer was lost: read before concluding.
        """
        with told(f"create {self._named(name)}"), allowing(*_EXISTS):
            written = self._client.get_blob_client(name).upload_blob(
                content, overwrite=True, metadata=dict(metadata or {}), match_condition=MatchConditions.IfMissing
            )
            return Version(written["etag"], written["last_modified"])
        return None

    def replace(self, name: str, content: bytes, etag: str, metadata: Mapping[str, str] | None = None) -> Version:
        """Overwrite exactly the version `etag` and return the new one; metadata is replaced too.

        Raises Conflict if the blob has changed or gone. The conflict can be with a write of our own whose first answer
        was lost.
        """
        with told(f"replace {self._named(name)}"), allowing(*_LOST):
            written = self._client.get_blob_client(name).upload_blob(
                content,
                overwrite=True,
                metadata=dict(metadata or {}),
                etag=etag,
                match_condition=MatchConditions.IfNotModified,
            )
            return Version(written["etag"], written["last_modified"])
        raise self._conflict(name)

    def delete(self, name: str, etag: str) -> None:
        """Delete exactly the version `etag`. Raises Conflict if the blob has changed or gone."""
        with told(f"delete {self._named(name)}"), allowing(*_LOST):
            self._client.delete_blob(name, etag=etag, match_condition=MatchConditions.IfNotModified)
            return
        raise self._conflict(name)

    def acquire_lease(self, name: str, seconds: int) -> str | None:
        """Lease a blob, made empty if it is not there, for 15 to 60 seconds. Its lease id; None if it is leased."""
        blob = self._client.get_blob_client(name)
        with told(f"lease {self._named(name)}"), allowing(*_LEASED):
            with allowing("BlobNotFound"):
                return blob.acquire_lease(seconds).id
            with allowing(*_EXISTS):
                blob.upload_blob(b"", overwrite=True, match_condition=MatchConditions.IfMissing)
            return blob.acquire_lease(seconds).id
        return None

    def renew_lease(self, name: str, lease_id: str) -> bool:
        """Let a lease begin anew. False if it ran out and somebody else has leased the blob since, or it is gone."""
        with told(f"renew {self._named(name)}"), allowing(*_LEASE_GONE):
            BlobLeaseClient(self._client.get_blob_client(name), lease_id).renew()
            return True
        return False

    def release_lease(self, name: str, lease_id: str) -> None:
        """End a lease. Nothing happens if it has run out and the blob is leased by somebody else, or gone."""
        with told(f"release {self._named(name)}"), allowing(*_LEASE_GONE):
            BlobLeaseClient(self._client.get_blob_client(name), lease_id).release()

    def names(self, prefix: str) -> list[str]:
        """Names of blobs directly at this prefix (delimiter `/`), sorted."""
        with told(f"list {self._named(prefix)}"):
            found = list(self._client.walk_blobs(name_starts_with=prefix, delimiter="/"))
        return sorted(item.name for item in found if not isinstance(item, BlobPrefix))

    def list_with_metadata(self, prefix: str) -> Iterator[tuple[str, dict[str, str], Version]]:
        """Name, metadata and version of every blob below `prefix`, in name order; one call per 5,000 blobs."""
        with told(f"list {self._named(prefix)}"):
            for blob in self._client.list_blobs(name_starts_with=prefix, include=["metadata"]):
                if not _is_directory(blob):
                    yield str(blob.name), dict(blob.metadata or {}), _version_listed(blob)

    def page(self, prefix: str, token: str | None) -> tuple[list[tuple[str, Version]], str | None]:
        """Names and versions of up to 5,000 blobs below `prefix`, in name order, and the token of the next page.

        A token stays good; None begins, and ends, the list.
        """
        with told(f"list {self._named(prefix)}"):
            pages: Any = self._client.list_blobs(name_starts_with=prefix, include=["metadata"]).by_page(token)
            found = [(str(blob.name), _version_listed(blob)) for blob in next(pages) if not _is_directory(blob)]
        return found, pages.continuation_token or None

    def _named(self, name: str) -> str:
        return f"{self._client.container_name}/{name}"

    def _conflict(self, name: str) -> Conflict:
        return Conflict(f"{self._named(name)} was changed or deleted by somebody else")
