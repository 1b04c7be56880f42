"""Which URLs are blobs of HASTE's container, and which are somebody else's."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

_DEFAULT_PORT = ":443"


@dataclass(frozen=True)
class ContainerAddress:
    """The URL of a container, https, without a query: `https://<account>.blob.core.windows.net/<container>`.

    An emulator has the account in the path, as it has one host for all; then the account is part of what must match.
    """

    url: str

    def blob_url(self, name: str) -> str:
        """Plain URL of a blob of this container."""
        return f"{self.url}/{quote(name, safe='/~')}"

    def is_at(self, url: str) -> bool:
        """Whether `url`, with or without a query, is this container."""
        return self.blob_name(f"{without_query(url).rstrip('/')}/blob") == "blob"

    def blob_name(self, url: str) -> str | None:
        """The name of the blob that `url` points to, with or without a query; None if it is not in this container.

        Scheme, host and port must be the same. A user name before the host, or anything else that could make a client
        go elsewhere than this reading of the URL, makes it somebody else's.
        """
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        own = urlsplit(self.url)
        if (parts.scheme.lower(), _place(parts.netloc)) != (own.scheme.lower(), _place(own.netloc)):
            return None
        if not parts.path.startswith(f"{own.path}/"):
            return None
        name = unquote(parts.path.removeprefix(f"{own.path}/"))
        return name if name and not _has_dot_segments(name) else None


def without_query(url: str) -> str:
    """The URL up to its query or fragment."""
    return url.split("?", 1)[0].split("#", 1)[0]


def _place(netloc: str) -> str:
    return netloc.lower().removesuffix(_DEFAULT_PORT)


def _has_dot_segments(name: str) -> bool:
    # clients take them out of the path, so the request would be for another blob than the one that was signed
    return any(part in (".", "..") for part in name.split("/"))
