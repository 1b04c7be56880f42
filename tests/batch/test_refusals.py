"""What becomes of each of Batch's refusals, whatever the method."""

from __future__ import annotations

from typing import Any

import pytest

from shared.errors import Conflict, JobOver, QuotaReached, Refused, Transient, WorkerError
from tests.support.batch_calls import EVERY, with_job
from tests.support.passing_waits import PassingWaits


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


OUTCOMES: list[tuple[dict[str, Any], type[WorkerError]]] = [
    ({"status": 400, "code": "InvalidPropertyValue"}, Refused),
    ({"status": 503, "code": "ServerBusy"}, Transient),
    ({"status": 429, "code": "TooManyRequests"}, Transient),
    ({"status": 500, "code": "InternalError"}, Transient),
    ({"drop_connection": True}, Transient),
    ({"status": 409, "code": "PoolBeingResized"}, Transient),
    ({"status": 409, "code": "SomethingNew"}, Transient),
    ({"status": 409, "code": "ActiveJobAndScheduleQuotaReached"}, QuotaReached),
]


@pytest.mark.parametrize("operation", EVERY)
@pytest.mark.parametrize(("fault", "error"), OUTCOMES, ids=[str(fault) for fault, _ in OUTCOMES])
def test_every_method_tells_what_batchs_refusal_means(
    operation: str, fault: dict[str, Any], error: type[WorkerError]
) -> None:
    account = with_job("trn-1")
    account.fault(operation=operation, **fault)
    with pytest.raises(error) as raised:
        EVERY[operation](account.batch)
    assert type(raised.value) is error
    assert (fault.get("code") or "nothing") in str(raised.value)


@pytest.mark.parametrize("operation", EVERY)
@pytest.mark.parametrize("status", [401, 403])
def test_denied_access_is_neither_transient_nor_the_users_fault(operation: str, status: int) -> None:
    account = with_job("trn-1")
    account.fault(operation=operation, status=status, code="AuthenticationFailed")
    with pytest.raises(WorkerError) as raised:
        EVERY[operation](account.batch)
    assert not isinstance(raised.value, Transient | Refused | JobOver | Conflict)
    assert str(status) in str(raised.value)
