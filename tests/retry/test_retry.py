"""What a refusal means, and the one place that waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import tenacity
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    IncompleteReadError,
    ResourceExistsError,
    ServiceRequestError,
    ServiceResponseError,
)

from shared.retry import MAX_WAIT_SECONDS, TOTAL_SECONDS, Fault, classify, patiently, status_and_code
from tests.support.passing_waits import PassingWaits

CODES: dict[Fault, list[tuple[int | None, str | None]]] = {
    Fault.PERMANENT: [
        (400, "InvalidRequestBody"),
        (400, "InvalidPropertyValue"),
        (400, "MissingRequiredProperty"),
        (400, "OutOfRangeInput"),
        (400, "InvalidQueryParameterValue"),
        (400, "UnsupportedRequestVersion"),
        (400, "TaskDependenciesNotSpecifiedOnJob"),
        (405, "UnsupportedHttpVerb"),
        (411, "MissingContentLengthHeader"),
        (409, "InvalidApplicationPackageReferences"),
        (409, "OperationNotValidOnPool"),
        (409, "OperationNotValidOnNode"),
        (409, "JobWithSameIdExists"),
        (413, "RequestBodyTooLarge"),
        (400, None),
        (410, None),
    ],
    Fault.DENIED: [
        (401, None),
        (401, "AuthenticationFailed"),
        (403, "AuthenticationFailed"),
        (403, "InsufficientAccountPermissions"),
        (403, "AccountIsDisabled"),
        (403, None),
    ],
    Fault.GONE: [
        (404, "PoolNotFound"),
        (404, "JobNotFound"),
        (404, "TaskNotFound"),
        (404, "NodeNotFound"),
        (404, "FileNotFound"),
        (404, "ResourceNotFound"),
        (404, None),
    ],
    Fault.EXISTS: [(409, "JobExists"), (409, "TaskExists"), (409, "PoolExists")],
    Fault.QUOTA: [(409, "ActiveJobAndScheduleQuotaReached"), (409, "PoolQuotaReached")],
    Fault.STATE: [
        (409, "PoolBeingResized"),
        (409, "JobBeingTerminated"),
        (409, "JobBeingDeleted"),
        (409, "JobDisabled"),
        (409, "JobCompleted"),
        (409, "JobNotActive"),
        (409, "OperationInvalidForCurrentState"),
        (409, "TaskCompleted"),
        (409, "TaskFilesUnavailable"),
        (409, "NodeStateUnusable"),
        (409, None),
        (409, "SomethingNew"),
    ],
    Fault.CHANGED: [(412, "ConditionNotMet"), (412, None), (304, None)],
    Fault.TRANSIENT: [
        (None, None),
        (408, None),
        (429, "TooManyRequests"),
        (429, None),
        (500, "InternalError"),
        (500, "OperationTimedOut"),
        (502, None),
        (503, "ServerBusy"),
        (503, "TooManyEnableAutoScaleRequests"),
        (503, None),
        (504, None),
        (403, "IOError"),
        (409, "PoolBeingCreated"),
        (500, "TaskExists"),  # nothing is certain after a 5xx
    ],
}


@pytest.mark.parametrize(
    ("status", "code", "fault"), [(status, code, fault) for fault, rows in CODES.items() for status, code in rows]
)
def test_what_an_answer_means(status: int | None, code: str | None, fault: Fault) -> None:
    assert classify(status, code) is fault


class Answer:
    """A response as the SDK's exceptions hold it."""

    def __init__(self, status: int, body: bytes = b"", content_type: str = "application/json", **headers: str) -> None:
        self.status_code = status
        self.reason = "a reason"
        self.headers = {"Content-Type": content_type} | {name.replace("_", "-"): text for name, text in headers.items()}
        self._body = body

    def text(self, encoding: str | None = None) -> str:
        return self._body.decode(encoding or "utf-8")

    body = text

    def json(self) -> Any:
        return json.loads(self._body)


def failure(*args: Any, **headers: str) -> HttpResponseError:
    return HttpResponseError(response=Answer(*args, **headers))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failure(409, b'{"code": "TaskExists", "message": {"value": "x"}}'), (409, "TaskExists")),
        (failure(409, b'{"error": {"code": "TaskExists", "message": "x"}}'), (409, "TaskExists")),
        (failure(404, b""), (404, None)),
        (failure(502, b"<html>Bad gateway</html>", "text/html"), (502, None)),
        (failure(500, b"[1, 2]"), (500, None)),
        (failure(500, b'"text"'), (500, None)),
        (failure(500, b'{"no": "code"}'), (500, None)),
        (failure(500, b"\xff\xfe"), (500, None)),
        (HttpResponseError("no response"), (None, None)),
        (ServiceRequestError("refused"), (None, None)),
        (ServiceResponseError("read timeout"), (None, None)),
        (IncompleteReadError("cut off"), (None, None)),
        (AzureError("anything"), (None, None)),
    ],
    ids=str,
)
def test_status_and_code_of_whatever_the_sdk_raises(error: AzureError, expected: tuple[int | None, str | None]) -> None:
    assert status_and_code(error) == expected


def test_the_class_of_the_exception_says_nothing() -> None:
    """Every 409 is a ResourceExistsError for the SDK, quota too."""
    quota = ResourceExistsError(response=Answer(409, b'{"code": "ActiveJobAndScheduleQuotaReached"}'))  # type: ignore[arg-type]
    assert classify(*status_and_code(quota)) is Fault.QUOTA


# --- waiting ----------------------------------------------------------------------------------------------------


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    passing = PassingWaits()
    monkeypatch.setattr(tenacity, "time", SimpleNamespace(monotonic=passing.monotonic))
    return passing


class Failing:
    """Fails so many times, then answers."""

    def __init__(self, times: float, error: Callable[[], Exception]) -> None:
        self.calls = 0
        self._times = times
        self._error = error

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._times:
            raise self._error()
        return "answer"


@pytest.mark.parametrize("error", [lambda: failure(503), lambda: failure(429), lambda: ServiceResponseError("cut off")])
def test_transient_failures_are_outwaited(waits: PassingWaits, error: Callable[[], Exception]) -> None:
    call = Failing(3, error)
    assert waits.patiently(call) == "answer"
    assert call.calls == 4
    assert len(waits.seconds) == 3
    assert all(0 < pause <= MAX_WAIT_SECONDS for pause in waits.seconds)
    assert waits.seconds[2] > waits.seconds[0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412])
def test_other_failures_are_raised_at_once(waits: PassingWaits, status: int) -> None:
    call = Failing(1, lambda: failure(status))
    with pytest.raises(HttpResponseError):
        waits.patiently(call)
    assert (call.calls, waits.seconds) == (1, [])


def test_retry_after_does_not_make_a_failure_transient(waits: PassingWaits) -> None:
    call = Failing(1, lambda: failure(404, Retry_After="1"))
    with pytest.raises(HttpResponseError):
        waits.patiently(call)
    assert call.calls == 1


def test_our_own_errors_are_raised_at_once(waits: PassingWaits) -> None:
    call = Failing(1, lambda: ValueError("a defect"))
    with pytest.raises(ValueError, match="a defect"):
        waits.patiently(call)
    assert call.calls == 1


def test_it_gives_up_within_its_time_with_the_services_own_last_error(waits: PassingWaits) -> None:
    call = Failing(float("inf"), lambda: failure(503, b'{"code": "ServerBusy"}'))
    with pytest.raises(HttpResponseError) as raised:
        waits.patiently(call)
    assert status_and_code(raised.value) == (503, "ServerBusy")
    assert call.calls > 3
    assert TOTAL_SECONDS / 2 < sum(waits.seconds) < TOTAL_SECONDS


@pytest.mark.parametrize(("retry_after", "pause"), [("3", 3.0), ("5", 5.0), ("3600", MAX_WAIT_SECONDS)])
def test_retry_after_is_honoured_up_to_a_cap(waits: PassingWaits, retry_after: str, pause: float) -> None:
    assert waits.patiently(Failing(1, lambda: failure(429, Retry_After=retry_after))) == "answer"
    assert waits.seconds == [pause]


@pytest.mark.parametrize("retry_after", ["", "soon", "-5", "1.5", "Wed, 12 Aug 2026 09:00:00 GMT", "0"])
def test_other_values_of_retry_after_fall_back_to_the_own_pause(waits: PassingWaits, retry_after: str) -> None:
    assert waits.patiently(Failing(1, lambda: failure(429, Retry_After=retry_after))) == "answer"
    assert 0 < waits.seconds[0] <= 2


def test_pauses_are_spread() -> None:
    """Many workers meet the same throttling at the same moment."""
    first = []
    for _ in range(20):
        pauses: list[float] = []
        patiently(Failing(1, lambda: failure(503)), sleep=pauses.append)
        first += pauses
    assert len({round(pause, 6) for pause in first}) > 10
