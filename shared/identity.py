"""The app's identity, as the SDKs ask it for tokens; says what it means when there is none.

    no identity, or the endpoint (Microsoft Entra ID) refuses it    NeedsOperator, names the identity and the setting
    no answer, 408, 429, 5xx                                        Transient; NeedsOperator after a quarter of an hour

Neither is an error of the SDKs, so that none of their policies and none of ours repeats the call that needed the token.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions
from azure.core.exceptions import AzureError
from azure.identity import DefaultAzureCredential

from shared.errors import NeedsOperator, Transient, WorkerError

_CONNECT_SECONDS = 2
_READ_SECONDS = 5
#: Of the library itself, at once; without a limit it waits for an answer for 20 minutes.
_RETRIES = 1
_ATTEMPTS = "Attempted credentials:"
#: How the library tells what an identity endpoint has answered.
_ANSWER = re.compile(r"Token request error: \([^)]*\)(?: (\d{3})\b)?")
_PASSING_STATUS = frozenset({"408", "429"})
#: What may pass is told to an operator if no token could be had for so long.
_PASSES_WITHIN_SECONDS = 15 * 60
_COULD_NOT = "could not get a token for the app's identity"


class AppIdentity:
    """A credential for the SDKs. `client_id` is the value of AZURE_CLIENT_ID, which the library reads by itself."""

    def __init__(self, client_id: str | None, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._client_id = client_id
        self._monotonic_seconds = monotonic_seconds
        self._failing_since: float | None = None

    @functools.cached_property
    def _credential(self) -> DefaultAzureCredential:
        return DefaultAzureCredential(
            connection_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS, retry_total=_RETRIES
        )

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """See `TokenCredential`. Raises NeedsOperator or Transient."""
        with self._told():
            return self._credential.get_token(*scopes, **options)

    def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """See `SupportsTokenInfo`: as `get_token`, with the time from which a newer token can be had."""
        with self._told():
            return self._credential.get_token_info(*scopes, options=options)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except AzureError as error:
            fault = no_token(str(error), self._client_id)
            raise self._lasting(fault) from None  # the library's text names every way it has tried
        self._failing_since = None

    def _lasting(self, fault: WorkerError) -> WorkerError:
        now = self._monotonic_seconds()
        if self._failing_since is None:
            self._failing_since = now
        lasts = now - self._failing_since >= _PASSES_WITHIN_SECONDS
        return NeedsOperator(str(fault)) if lasts else fault


def no_token(text: str, client_id: str | None) -> WorkerError:
    """What the identity library's error means. The text is all it leaves: its error has no status and no cause.

    The library goes on to its next way to sign in when one is not set up or refuses, and stops where one fails
    otherwise: that is the last it names.
    """
    answer = _ANSWER.search(text)
    last = _last_attempt(text)
    if answer is not None:
        status = answer[1] or "no status"
        if status in _PASSING_STATUS or status.startswith("5"):
            return Transient(f"{_COULD_NOT}: the identity endpoint answered {status}")
        return NeedsOperator(f"{_COULD_NOT}: the identity endpoint answered {status}; {_setting(client_id)}")
    if "AADSTS" in last:
        return NeedsOperator(f"{_COULD_NOT}: Microsoft Entra ID refuses it; {_setting(client_id)}")
    if "unavailable" in last:
        return NeedsOperator(f"{_COULD_NOT}: the app has none; {_setting(client_id)}")
    return Transient(f"{_COULD_NOT}: no answer from the identity endpoint")


def _last_attempt(text: str) -> str:
    attempts = text.partition(_ATTEMPTS)[2].partition("\nTo mitigate this issue")[0]
    return attempts.rpartition("\n\t")[2]


def _setting(client_id: str | None) -> str:
    if not client_id:
        return (
            "AZURE_CLIENT_ID is not set, so it must have a system-assigned identity; if it has a user-assigned one, "
            "set AZURE_CLIENT_ID to its client id"
        )
    return (
        f"AZURE_CLIENT_ID is {_shown(client_id)}; it must be the client id of an identity that is assigned to the app"
    )


def _shown(client_id: str) -> str:
    try:
        return str(UUID(client_id))
    except ValueError:
        return "no client id"  # whatever it is, it may be a secret
