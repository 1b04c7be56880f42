"""What the storage SDKs raise, told in the worker's own errors.

    no answer, 408, 429, 5xx        Transient, the same call may succeed later
    401, 403                        StorageAccessDenied, says what an operator has to look at; never retried
    anything else                   StorageFailed

A caller that expects one of the codes (a blob that is not there, a lost condition) lets it pass with `allowing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from azure.core.exceptions import AzureError, HttpResponseError

from shared.errors import NeedsOperator, Transient, WorkerError

_TRANSIENT_STATUS = (408, 429)
# Azure Storage documents both as passing states of the service, although their status is 409.
_TRANSIENT_CODES = ("ContainerBeingDeleted", "QueueBeingDeleted")

_DENIED = {
    "AuthorizationFailure": "the storage account's network rules (firewall) do not let this app in, or a SAS has "
    "expired or belongs to another account or container",
    "AuthenticationFailed": "the account key is not the account's, or this machine's clock is wrong",
    "KeyBasedAuthenticationNotPermitted": "the storage account does not allow its keys to be used",
}
_ROLE_MISSING = "AuthorizationPermissionMismatch"
DATA_ROLE = "Storage Blob Data Owner or Storage Blob Data Contributor"
DELEGATOR_ROLE = "Storage Blob Delegator"
QUEUE_ROLE = "Storage Queue Data Contributor"


class StorageFailed(NeedsOperator):
    """Azure Storage refused a call for a reason that will not pass. `code` is its error code, if it gave one."""

    def __init__(self, message: str, code: str | None = None) -> None:
        self.code = code
        super().__init__(message)


class StorageAccessDenied(StorageFailed):
    """Azure Storage does not let this app do what it tried. The text says what to look at; it holds no SAS."""


def code_of(error: AzureError) -> str | None:
    """Azure Storage's error code, such as `BlobNotFound`; None without one."""
    code = getattr(error, "error_code", None)
    return None if code is None else str(getattr(code, "value", code))


@contextmanager
def told(attempt: str, role: str = DATA_ROLE) -> Iterator[None]:
    """Raise the worker's own error for one of the SDK's. `attempt` completes "could not ...", without any secret.

    `role` is the role that lets an identity do it.
    """
    try:
        yield
    except AzureError as error:
        raise _own_error(error, attempt, role) from error


class allowing:
    """Passes over the SDK's error with one of these codes; what follows the block is then reached."""

    def __init__(self, *codes: str) -> None:
        self._codes = codes

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> bool:
        return isinstance(error, AzureError) and code_of(error) in self._codes


def _own_error(error: AzureError, attempt: str, role: str) -> WorkerError:
    status = error.status_code if isinstance(error, HttpResponseError) else None
    code = code_of(error)
    if status is None:
        return Transient(f"could not {attempt}: no answer ({type(error).__name__})")
    answer = f"could not {attempt}: {status} {code or 'without a code'}{_request_id(error)}"
    if status in _TRANSIENT_STATUS or status >= 500 or code in _TRANSIENT_CODES:
        return Transient(answer)
    if status in (401, 403):
        return StorageAccessDenied(f"{answer}: {_explained(code, role)}", code)
    return StorageFailed(answer, code)


def _explained(code: str | None, role: str) -> str:
    if code == _ROLE_MISSING:
        return f"the app's identity lacks the role {role} on the storage account"
    everything = (
        f"a network rule of the storage account, the role {role}, the account key and the clock may be the cause"
    )
    return _DENIED.get(code or "", everything)


def _request_id(error: AzureError) -> str:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return f", request {headers['x-ms-request-id']}" if "x-ms-request-id" in headers else ""
