"""The kinds of values that app settings hold: parsers that take the text and raise ValueError with the rule.

A rule completes the sentence "<SETTING>='<value>': ...", so it starts in lower case and says what would be right.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, SecretStr

from shared.settings.schedules import check_schedule

_DURATION = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.ASCII)
_STORAGE_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")
_BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")

# Azure Functions moves messages that keep failing to "<queue>-poison", which must be a queue name as well.
_QUEUE_NAME_MAX = 63 - len("-poison")


@dataclass(frozen=True)
class StorageAccount:
    """A storage account as its connection string describes it. URLs have no trailing slash and no query."""

    name: str
    key: str = field(repr=False)
    blob_url: str
    queue_url: str


def is_loopback(url: str) -> bool:
    """Whether the host of `url` is this machine."""
    host = urlsplit(url).hostname or ""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def account_name(url: str) -> str | None:
    """The storage account a blob or queue URL belongs to; None for a custom domain, which does not tell.

    Azure puts the account into the host name, an emulator at an IP address or localhost into the path.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or _is_address(host):
        return parts.path.strip("/").split("/")[0] or None
    labels = host.split(".")
    return labels[0] if {"blob", "queue"} & set(labels[1:]) else None


def container_name(url: str) -> str:
    """The last part of a container URL's path."""
    return urlsplit(url).path.rstrip("/").rsplit("/", 1)[-1]


def parse_connection_string(text: str) -> StorageAccount:
    """The account behind a storage connection string. Raises ValueError; no part of a value is in its text."""
    parts = _parts(text)
    if not parts.get("accountkey"):
        raise ValueError("must contain AccountKey: the long-lived URLs in HASTE's records are signed with it")
    if not parts.get("accountname"):
        raise ValueError("must contain AccountName")
    _check_base64(parts["accountkey"], "its AccountKey is not base64; copy the connection string again")
    blob_url, queue_url = _endpoints(parts)
    return StorageAccount(parts["accountname"], parts["accountkey"], blob_url, queue_url)


def connection_account(text: str) -> str | None:
    """The account name in any storage connection string, with a key or not; None if it does not tell."""
    parts = _parts(text)
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return "devstoreaccount1"
    return parts.get("accountname") or account_name(parts.get("queueendpoint", ""))


def _parts(text: str) -> dict[str, str]:
    pairs = (part.split("=", 1) for part in text.split(";") if "=" in part)
    return {name.strip().lower(): value.strip() for name, value in pairs}


def _endpoints(parts: dict[str, str]) -> tuple[str, str]:
    """Blob and queue URL. A client takes Azure's own address for an endpoint that is missing."""
    protocol = parts.get("defaultendpointsprotocol", "https")
    host = parts.get("endpointsuffix", "core.windows.net")
    blob_url, queue_url = (
        parts.get(f"{service}endpoint", f"{protocol}://{parts.get('accountname', '')}.{service}.{host}").rstrip("/")
        for service in ("blob", "queue")
    )
    if is_loopback(blob_url) != is_loopback(queue_url):
        raise ValueError(
            "only one of its BlobEndpoint and QueueEndpoint is on this machine, so blobs and messages would go to "
            "different places; name both"
        )
    return blob_url, queue_url


def _connection_string(value: str) -> SecretStr:
    parse_connection_string(value)
    return SecretStr(value)


def _trigger_connection(value: str) -> SecretStr:
    parts = _parts(value)
    if not parts:
        raise ValueError("is not a connection string")
    _endpoints(parts)
    return SecretStr(value)


def _account_key(value: str) -> SecretStr:
    _check_base64(value, "is not base64; copy the key again")
    return SecretStr(value)


def _switch(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return value.lower() == "true"


def _number(least: int) -> BeforeValidator:
    def parse(value: str) -> int:
        if not re.fullmatch(r"\d{1,9}", value, re.ASCII) or int(value) < least:
            raise ValueError(f"must be a whole number, {least} or more")
        return int(value)

    return BeforeValidator(parse)


def _duration(value: str) -> timedelta:
    found = _DURATION.fullmatch(value)
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0,) * 5
    rule = "must be a positive ISO 8601 duration of weeks, days, hours, minutes and seconds, such as PT30M or P2D"
    try:
        duration = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        raise ValueError(rule) from None
    if duration <= timedelta():
        raise ValueError(rule)
    return duration


def _https_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme.lower() != "https" or not parts.hostname:
        raise ValueError("must be a URL that starts with https://")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("must be a plain URL, without a query, a SAS or a user name")
    return value.rstrip("/")


def _container_url(value: str) -> str:
    url = _https_url(value)
    least = 2 if _is_address(urlsplit(url).hostname or "") or is_loopback(url) else 1
    if len(urlsplit(url).path.strip("/").split("/")) != least or container_name(url) == "":
        raise ValueError("must be the URL of a container, such as https://<account>.blob.core.windows.net/data")
    return url


def _folder_url(value: str) -> str:
    return value if value.endswith("/") else f"{value}/"


def _storage_name(longest: int) -> BeforeValidator:
    def parse(value: str) -> str:
        if not 3 <= len(value) <= longest or not _STORAGE_NAME.fullmatch(value):
            raise ValueError(f"must have 3 to {longest} lower-case letters, digits and single hyphens between them")
        return value

    return BeforeValidator(parse)


def _batch_id(value: str) -> str:
    if not _BATCH_ID.fullmatch(value):
        raise ValueError("must have 1 to 64 letters, digits, hyphens and underscores, as Azure Batch asks of ids")
    return value


def _batch_ids(value: str) -> tuple[str, ...]:
    ids = [part.strip() for part in value.split(",") if part.strip()]
    if not ids:
        raise ValueError("names no pool; give ids separated by commas, or leave it empty for the single pool")
    return tuple(dict.fromkeys(_batch_id(one) for one in ids))


def _tenant(value: str) -> str:
    if not _TENANT.fullmatch(value):
        raise ValueError("must have 1 to 63 lower-case letters, digits and hyphens between them")
    return value


def _resource_id(value: str) -> str:
    if not value.lower().startswith("/subscriptions/"):
        raise ValueError("must be the resource id of a user-assigned identity; it starts with /subscriptions/")
    return value


def _schedule(value: str) -> str:
    check_schedule(value)
    return value


def _check_base64(text: str, rule: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(rule) from None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


ConnectionString = Annotated[SecretStr, BeforeValidator(_connection_string)]
TriggerConnection = Annotated[SecretStr, BeforeValidator(_trigger_connection)]
AccountKey = Annotated[SecretStr, BeforeValidator(_account_key)]
Switch = Annotated[bool, BeforeValidator(_switch)]
CountFromZero = Annotated[int, _number(0)]
CountFromOne = Annotated[int, _number(1)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
HttpsUrl = Annotated[str, BeforeValidator(_https_url)]
ContainerUrl = Annotated[str, BeforeValidator(_container_url)]
FolderUrl = Annotated[str, BeforeValidator(_folder_url)]
ContainerName = Annotated[str, _storage_name(63)]
QueueName = Annotated[str, _storage_name(_QUEUE_NAME_MAX)]
BatchId = Annotated[str, BeforeValidator(_batch_id)]
BatchIds = Annotated[tuple[str, ...], BeforeValidator(_batch_ids)]
Tenant = Annotated[str, BeforeValidator(_tenant)]
ResourceId = Annotated[str, BeforeValidator(_resource_id)]
Schedule = Annotated[str, BeforeValidator(_schedule)]
