"""Azure Storage in this process, behind the real SDKs: as much of blobs and queues as the worker uses, counted.

Nothing that the worker does is checked (tests on Azurite do that): this is there to count and to be fast.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from azure.core.pipeline.transport import HttpTransport
from azure.core.rest import HttpRequest, HttpResponse

from bench.storage_answers import Answer, StoredAnswer

_PAGE = 5000
_METADATA = "x-ms-meta-"


@dataclass
class Blob:
    """A block blob."""

    content: bytes
    etag: str
    written_at: datetime
    metadata: dict[str, str] = field(default_factory=dict)
    lease_id: str = ""
    leased_until: datetime | None = None
    lease_life: timedelta = timedelta()


class StorageService(HttpTransport[HttpRequest, HttpResponse]):
    """One account. `calls` counts requests by what they are."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._writes = itertools.count(1)
        self.containers: dict[str, dict[str, Blob]] = {}
        self.queues: dict[str, list[tuple[datetime, str]]] = {}
        self.calls: Counter[str] = Counter()

    def take(self, queue: str) -> list[str]:
        """What the trigger of this queue would be handed now. Not counted: the host asks, not the worker."""
        waiting = self.queues.get(queue, [])
        self.queues[queue] = [one for one in waiting if one[0] > self._now()]
        return [text for visible_at, text in waiting if visible_at <= self._now()]

    def send(self, request: HttpRequest, **_options: Any) -> HttpResponse:
        """Answer at once."""
        url = urlsplit(request.url)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        path = unquote(url.path).strip("/")
        answer = (self._queue if ".queue." in url.netloc else self._blob)(request, path, query)
        headers = {"x-ms-request-id": "1", "x-ms-version": "2026-02-06", "Date": self._http_date(), **answer.headers}
        if answer.code:
            headers["x-ms-error-code"] = answer.code
        return StoredAnswer(request, answer.status, headers, answer.body)

    def _count(self, what: str) -> None:
        self.calls[what] += 1

    # --- queues

    def _queue(self, request: HttpRequest, path: str, query: Mapping[str, str]) -> Answer:
        name, _, rest = path.partition("/")
        if not rest:
            self._count("create queue")
            self.queues.setdefault(name, [])
            return Answer(201)
        if request.method == "GET":
            self._count("take messages")
            if name not in self.queues:
                return Answer(404, code="QueueNotFound")
            return Answer(200, b"<QueueMessagesList />")
        self._count("send message")
        if name not in self.queues:
            return Answer(404, code="QueueNotFound")
        text = _body(request).decode().partition("<MessageText>")[2].partition("</MessageText>")[0]
        for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
            text = text.replace(entity, character)
        delay = float(query.get("visibilitytimeout") or 0)
        self.queues[name].append((datetime.fromtimestamp(self._now().timestamp() + delay, self._now().tzinfo), text))
        date = self._http_date()
        return Answer(
            201,
            (
                "<QueueMessagesList><QueueMessage><MessageId>1</MessageId><PopReceipt>1</PopReceipt>"
                f"<InsertionTime>{date}</InsertionTime><ExpirationTime>{date}</ExpirationTime>"
                f"<TimeNextVisible>{date}</TimeNextVisible></QueueMessage></QueueMessagesList>"
            ).encode(),
        )

    # --- blobs

    def _blob(self, request: HttpRequest, path: str, query: Mapping[str, str]) -> Answer:
        container, _, name = path.partition("/")
        if query.get("comp") == "userdelegationkey":
            self._count("get delegation key")
            return Answer(200, self._delegation_key(_body(request).decode()))
        if not name:
            return self._container(request, container, query)
        blobs = self.containers[container]
        if query.get("comp") == "lease":
            return self._lease(request, blobs.get(name))
        match request.method:
            case "PUT":
                return self._put(request, blobs, name)
            case "DELETE":
                self._count("delete blob")
                return Answer(202) if blobs.pop(name, None) else Answer(404, code="BlobNotFound")
        self._count("read blob" if request.method == "GET" else "look at blob")
        blob = blobs.get(name)
        if blob is None:
            return Answer(404, code="BlobNotFound")
        return self._read(request, blob)

    def _container(self, request: HttpRequest, name: str, query: Mapping[str, str]) -> Answer:
        if query.get("comp") == "list":
            self._count("list blobs")
            return Answer(200, self._list(self.containers[name], query))
        if query.get("comp") == "acl":
            self._count("look at container" if request.method == "GET" else "set container policy")
            return Answer(200, b"<SignedIdentifiers />" if request.method == "GET" else b"", self._versions('"0"'))
        if request.method == "PUT":
            self._count("create container")
            self.containers.setdefault(name, {})
            return Answer(201, headers=self._versions('"0"'))
        self._count("look at container")
        return Answer(200 if name in self.containers else 404, headers=self._versions('"0"'), code="ContainerNotFound")

    def _put(self, request: HttpRequest, blobs: dict[str, Blob], name: str) -> Answer:
        self._count("write blob")
        there = blobs.get(name)
        if request.headers.get("If-None-Match") == "*" and there is not None:
            return Answer(409, code="BlobAlreadyExists")
        expected = request.headers.get("If-Match")
        if expected is not None and (there is None or there.etag != expected):
            return Answer(412, code="ConditionNotMet")
        metadata = {
            key.lower().removeprefix(_METADATA): value
            for key, value in request.headers.items()
            if key.lower().startswith(_METADATA)
        }
        etag = f'"0x{next(self._writes):X}"'
        blobs[name] = Blob(_body(request), etag, self._now(), metadata)
        return Answer(201, headers=self._versions(etag) | {"x-ms-request-server-encrypted": "true"})

    def _read(self, request: HttpRequest, blob: Blob) -> Answer:
        headers = self._versions(blob.etag, blob.written_at) | {"x-ms-blob-type": "BlockBlob"}
        if request.method == "HEAD":
            return Answer(200, headers=headers | {"Content-Length": str(len(blob.content))})
        size = len(blob.content)
        first, _, last = (request.headers.get("x-ms-range") or "bytes=0-").removeprefix("bytes=").partition("-")
        part = blob.content[int(first) : int(last) + 1 if last else None]
        if not part:
            return Answer(200, b"", headers) if not size else Answer(416, code="InvalidRange")
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{size}"
        return Answer(206, part, headers | {"Content-Length": str(len(part))})

    def _lease(self, request: HttpRequest, blob: Blob | None) -> Answer:
        self._count("lease blob")
        if blob is None:
            return Answer(404, code="BlobNotFound")
        is_leased = blob.leased_until is not None and blob.leased_until > self._now()
        action = request.headers.get("x-ms-lease-action")
        if action == "acquire":
            if is_leased:
                return Answer(409, code="LeaseAlreadyPresent")
            blob.lease_id = f"lease-{next(self._writes)}"
            blob.lease_life = timedelta(seconds=int(request.headers["x-ms-lease-duration"]))
            blob.leased_until = self._now() + blob.lease_life
            return Answer(201, headers=self._versions(blob.etag) | {"x-ms-lease-id": blob.lease_id})
        if request.headers.get("x-ms-lease-id") != blob.lease_id:
            return Answer(409, code="LeaseIdMismatchWithLeaseOperation")
        blob.leased_until = self._now() + blob.lease_life if action == "renew" else None
        return Answer(200, headers=self._versions(blob.etag))

    def _list(self, blobs: Mapping[str, Blob], query: Mapping[str, str]) -> bytes:
        prefix, marker, delimiter = query.get("prefix", ""), query.get("marker", ""), query.get("delimiter")
        names = sorted(name for name in blobs if name.startswith(prefix) and name >= marker)
        if delimiter:
            names = [name for name in names if delimiter not in name[len(prefix) :]]
        shown, rest = names[:_PAGE], names[_PAGE:]
        entries = "".join(self._entry(name, blobs[name], "metadata" in query.get("include", "")) for name in shown)
        return (
            f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults>'
            f"<Prefix>{escape(prefix)}</Prefix><Blobs>{entries}</Blobs>"
            f"<NextMarker>{rest[0] if rest else ''}</NextMarker></EnumerationResults>"
        ).encode()

    def _entry(self, name: str, blob: Blob, with_metadata: bool) -> str:
        pairs = blob.metadata.items() if with_metadata else ()
        metadata = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in pairs)
        return (
            f"<Blob><Name>{escape(name)}</Name><Properties>"
            f"<Last-Modified>{format_datetime(blob.written_at, usegmt=True)}</Last-Modified>"
            f"<Etag>{blob.etag.strip(chr(34))}</Etag><Content-Length>{len(blob.content)}</Content-Length>"
            "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType>"
            "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState></Properties>"
            f"<Metadata>{metadata}</Metadata></Blob>"
        )

    def _delegation_key(self, body: str) -> bytes:
        start = body.partition("<Start>")[2].partition("</Start>")[0]
        expiry = body.partition("<Expiry>")[2].partition("</Expiry>")[0]
        return (
            "<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid>"
            f"<SignedStart>{start}</SignedStart><SignedExpiry>{expiry}</SignedExpiry><SignedService>b</SignedService>"
            "<SignedVersion>2026-02-06</SignedVersion><Value>YmVuY2g=</Value></UserDelegationKey>"
        ).encode()

    def _versions(self, etag: str, written_at: datetime | None = None) -> dict[str, str]:
        at = written_at or self._now()
        return {"ETag": etag, "Last-Modified": format_datetime(at, usegmt=True)}

    def _http_date(self) -> str:
        return format_datetime(self._now(), usegmt=True)

    def open(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def __enter__(self) -> StorageService:
        return self

    def __exit__(self, *_error: object) -> None:
        return None


def _body(request: HttpRequest) -> bytes:
    content: Any = request.content if hasattr(request, "content") else request.data
    if content is None:
        return b""
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes):
        return content
    if hasattr(content, "read"):
        content.seek(0)
        data: bytes = content.read()
        return data
    chunks: Iterator[bytes] = iter(content)
    return b"".join(chunks)
