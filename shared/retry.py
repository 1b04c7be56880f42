"""The one place that waits and tries again, and the one that says what a service's refusal means."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum, auto
from typing import TypeVar

import tenacity
from azure.core.exceptions import AzureError, HttpResponseError, IncompleteReadError, ServiceResponseError

from shared.errors import Transient

T = TypeVar("T")

#: Total time one call may take with its repetitions; far below the function timeout and the message lease.
TOTAL_SECONDS = 25.0
#: The longest single wait, also when the service's Retry-After asks for more (what takes longer goes back to waiting).
MAX_WAIT_SECONDS = 8.0


class Fault(StrEnum):
    """What an error answer means for the caller."""

    EXISTS = auto()
    """The thing is there already: after a lost answer this is success."""
    GONE = auto()
    """The thing (pool, job, task, node, file) is not there."""
    TRANSIENT = auto()
    """The same call may succeed later; a create may have happened."""
    QUOTA = auto()
    """A Batch quota is used up."""
    STATE = auto()
    """The thing is in a state that does not allow this; read it again and decide."""
    CHANGED = auto()
    """A condition (ETag) did not hold."""
    DENIED = auto()
    """Credentials, roles or network rules refuse."""
    PERMANENT = auto()
    """The request itself is wrong."""


_BY_CODE = {
    "TaskExists": Fault.EXISTS,
    "JobExists": Fault.EXISTS,
    "PoolExists": Fault.EXISTS,
    "ActiveJobAndScheduleQuotaReached": Fault.QUOTA,
    "PoolQuotaReached": Fault.QUOTA,
    "PoolBeingResized": Fault.STATE,
    "PoolBeingCreated": Fault.TRANSIENT,
    "InvalidApplicationPackageReferences": Fault.PERMANENT,
    "OperationNotValidOnPool": Fault.PERMANENT,
    "OperationNotValidOnNode": Fault.PERMANENT,
    "JobWithSameIdExists": Fault.PERMANENT,
    "IOError": Fault.TRANSIENT,
}
_BY_STATUS = {
    401: Fault.DENIED,
    403: Fault.DENIED,
    404: Fault.GONE,
    409: Fault.STATE,
    304: Fault.CHANGED,
    412: Fault.CHANGED,
}
_TRANSIENT_STATUS = frozenset({408, 429, 500, 502, 503, 504})


def classify(status: int | None, code: str | None) -> Fault:
    """What an answer means, by HTTP status and Azure Batch error code. `status` None = no answer at all.

    The exception class tells nothing: every 409 of the SDK is the same class.
    """
    if status is None or status in _TRANSIENT_STATUS:
        return Fault.TRANSIENT
    if code in _BY_CODE:
        return _BY_CODE[code]
    return _BY_STATUS.get(status, Fault.PERMANENT)


def status_and_code(error: AzureError) -> tuple[int | None, str | None]:
    """HTTP status and service error code of an SDK exception; (None, None) if there was no answer."""
    if not isinstance(error, HttpResponseError) or isinstance(error, ServiceResponseError | IncompleteReadError):
        return None, None
    code = getattr(error.error, "code", None) or getattr(error, "error_code", None) or _code_in_body(error)
    return error.status_code, code


def _code_in_body(error: HttpResponseError) -> str | None:
    # Batch's error bodies are bare objects, which azure-core does not read for raw requests and downloads
    try:
        body = json.loads(error.response.text()) if error.response is not None else None
    except (ValueError, AzureError):
        return None
    return body.get("code") if isinstance(body, dict) else None


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, AzureError) and classify(*status_and_code(error)) is Fault.TRANSIENT


def _retry_after_seconds(error: BaseException | None) -> float:
    response = getattr(error, "response", None)
    text = response.headers.get("Retry-After", "") if response is not None else ""
    return float(text) if text.isdigit() else 0.0


_backoff = tenacity.wait_exponential_jitter(multiplier=0.5, max=MAX_WAIT_SECONDS, jitter=0.5)


def _wait_seconds(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return min(MAX_WAIT_SECONDS, max(_backoff(state), _retry_after_seconds(error)))


_give_up_at: ContextVar[float | None] = ContextVar("give_up_at", default=None)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """All calls made inside share this time; what begins after it is over fails at once with Transient."""
    token = _give_up_at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _give_up_at.reset(token)


def patiently(
    call: Callable[[], T], *, total_seconds: float = TOTAL_SECONDS, sleep: Callable[[float], None] = time.sleep
) -> T:
    """Call, and again while the failure is transient and time is left. Raises the service's own last error."""
    give_up_at = _give_up_at.get()
    if give_up_at is not None:
        total_seconds = min(total_seconds, give_up_at - time.monotonic())
        if total_seconds <= 0:
            raise Transient("the time for this piece of work is over")
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_is_transient),
        wait=_wait_seconds,
        stop=tenacity.stop_before_delay(total_seconds),
        sleep=sleep,
        reraise=True,
    )
    return retrying(call)
