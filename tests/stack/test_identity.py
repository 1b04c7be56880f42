"""The identity endpoint answers as App Service's does, and DefaultAzureCredential takes its tokens."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
import requests
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import DefaultAzureCredential

from local.stack.settings import Identity
from local.stack.supervisor import Supervisor

STORAGE = "https://storage.azure.com"
BATCH = "https://batch.core.windows.net/"


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return decoded


@pytest.mark.parametrize(
    ("scope", "audience"), [(f"{STORAGE}/.default", STORAGE), (f"{BATCH}/.default", BATCH)], ids=["storage", "batch"]
)
def test_unmodified_credential_gets_a_token_for_the_resource(
    identity_endpoint: Identity, scope: str, audience: str
) -> None:
    with DefaultAzureCredential() as credential:
        token = credential.get_token(scope)
    claims = claims_of(token.token)
    assert claims["aud"] == audience
    assert claims["iss"].startswith("https://sts.windows.net/")
    assert claims["nbf"] <= time.time() < claims["exp"] == token.expires_on
    assert claims["oid"] and claims["tid"]


@pytest.mark.parametrize(
    ("query", "header", "status"),
    [
        ({"api-version": "2019-08-01", "resource": STORAGE}, None, 401),
        ({"api-version": "2019-08-01", "resource": STORAGE}, "wrong", 401),
        ({"resource": STORAGE}, "right", 400),
        ({"api-version": "2017-09-01", "resource": STORAGE}, "right", 400),
        ({"api-version": "2019-08-01"}, "right", 400),
    ],
    ids=["no header", "wrong header", "no version", "old version", "no resource"],
)
def test_a_request_that_app_service_refuses_gets_no_token(
    identity_endpoint: Identity, query: dict[str, str], header: str | None, status: int
) -> None:
    value = identity_endpoint.secret if header == "right" else header
    headers = {"X-IDENTITY-HEADER": value} if value else {}
    answer = requests.get(identity_endpoint.endpoint, params=query, headers=headers, timeout=10)
    assert answer.status_code == status
    assert set(answer.json()) == {"statusCode", "message"}
    assert identity_endpoint.secret not in answer.text


def test_credential_with_a_wrong_secret_fails(identity_endpoint: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_HEADER", "wrong")
    with DefaultAzureCredential() as credential, pytest.raises(ClientAuthenticationError):
        credential.get_token(f"{STORAGE}/.default")


def test_the_log_holds_no_token_and_no_secret(identity_endpoint: Identity, supervisor: Supervisor) -> None:
    with DefaultAzureCredential() as credential:
        token = credential.get_token(f"{STORAGE}/.default").token
    (log,) = [child.output() for child in supervisor.children if child.name == "identity"]
    assert identity_endpoint.endpoint in log
    assert token.split(".")[1] not in log
    assert identity_endpoint.secret not in log
