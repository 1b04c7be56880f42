"""SharedKey signatures are verified, as Azure documents them; bearer tokens are taken."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qsl, urlsplit

import pytest

from local.batch import ACCOUNT_KEY
from local.batch.clock import FIRST_DAY
from tests.batch_conformance.wire import VERSION, Answer, Wire, account


def _signed(
    wire: Wire, method: str, target: str, key: str = ACCOUNT_KEY, date: datetime = FIRST_DAY, body: bytes | None = None
) -> Answer:
    """Sign a request from the documented scheme alone."""
    headers = {"ocp-date": format_datetime(date, usegmt=True)}
    length = "" if method == "GET" else str(len(body or b""))
    if body is not None:
        headers["Content-Type"] = "application/json; odata=minimalmetadata"
    url = urlsplit(target)
    lines = [method, "", "", length, "", headers.get("Content-Type", ""), "", "", "", "", "", ""]
    lines += [f"ocp-date:{headers['ocp-date']}", f"/localbatch{url.path}"]
    lines += [f"{name}:{value}" for name, value in sorted(parse_qsl(url.query))]
    digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey localbatch:{base64.b64encode(digest).decode()}"
    return wire.raw(method, target, body, headers)


def test_a_right_signature_is_taken(wire: Wire) -> None:
    job = b'{"id":"job","poolInfo":{"poolId":"pool"}}'
    filtered = f"/jobs?api-version={VERSION}&$filter=state%20eq%20%27active%27&$select=id,state"

    assert _signed(wire, "POST", f"/jobs?api-version={VERSION}", body=job).status == 201
    assert _signed(wire, "GET", filtered).json()["value"] == [{"id": "job", "state": "active"}]
    assert _signed(wire, "POST", f"/jobs/job/terminate?api-version={VERSION}&force=true").status == 202
    assert _signed(wire, "GET", f"/jobs/a%2Fb?api-version={VERSION}").refusal == (404, "JobNotFound")


def test_a_wrong_key_is_403(wire: Wire) -> None:
    answer = _signed(wire, "GET", f"/pools?api-version={VERSION}", key="d3Jvbmc=")

    assert answer.refusal == (403, "AuthenticationFailed")


def test_a_request_that_was_changed_after_it_was_signed_is_403(wire: Wire) -> None:
    target = f"/pools?api-version={VERSION}"
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), b"something else", hashlib.sha256).digest()
    authorization = f"SharedKey localbatch:{base64.b64encode(digest).decode()}"

    assert wire.raw("GET", target, None, {"Authorization": authorization}).refusal == (403, "AuthenticationFailed")


def test_a_bearer_token_is_taken_and_nothing_is_401(wire: Wire) -> None:
    target = f"/pools?api-version={VERSION}"

    assert wire.raw("GET", target, None, {"Authorization": "Bearer any"}).status == 200
    assert wire.raw("GET", target, None, {}).status == 401


@pytest.mark.parametrize(("checks", "minutes", "status"), [(True, 16, 403), (True, 14, 200), (False, 16, 200)])
@pytest.mark.parametrize("sign", [1, -1])
def test_dates_far_off_are_refused_where_the_world_says_so(checks: bool, minutes: int, sign: int, status: int) -> None:
    with account(check_date_skew=checks) as wire:
        date = FIRST_DAY + sign * timedelta(minutes=minutes)

        answer = _signed(wire, "GET", f"/pools?api-version={VERSION}", date=date)

    assert answer.status == status
    assert status == 200 or answer.refusal == (403, "AuthenticationFailed")
