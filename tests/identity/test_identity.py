"""What it means when the app gets no token, by the library's own errors."""

from __future__ import annotations

import json
import socket

import pytest

from shared.errors import NeedsOperator, Transient, WorkerError
from shared.identity import AppIdentity, no_token
from tests.support.identity_endpoint import ASSIGNED, SECRET, UNKNOWN, answering, app_with_one_identity, point_to

SCOPE = "https://batch.core.windows.net/.default"


def test_the_identity_of_the_setting_gets_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    with app_with_one_identity(monkeypatch, ASSIGNED):
        identity = AppIdentity(ASSIGNED)
        assert identity.get_token(SCOPE).token == identity.get_token_info(SCOPE).token


@pytest.mark.parametrize(
    ("client_id", "named"),
    [
        (UNKNOWN, f"AZURE_CLIENT_ID is {UNKNOWN}; it must be the client id of an identity that is assigned"),
        ("rubbish", "AZURE_CLIENT_ID is no client id; it must be"),
    ],
)
def test_a_wrong_client_id_is_told_as_that(monkeypatch: pytest.MonkeyPatch, client_id: str, named: str) -> None:
    with app_with_one_identity(monkeypatch, client_id), pytest.raises(NeedsOperator) as raised:
        AppIdentity(client_id).get_token_info(SCOPE)
    assert str(raised.value).startswith("could not get a token for the app's identity: the identity endpoint answered ")
    assert f"400; {named}" in str(raised.value)
    assert client_id == UNKNOWN or client_id not in str(raised.value), "it may be a secret"


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_is_asked_for_once(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    refusal = f"answered {status}"
    with answering(monkeypatch, status, _no(status)) as asked, pytest.raises(NeedsOperator, match=refusal):
        AppIdentity(None).get_token_info(SCOPE)
    assert len(asked) == 1


@pytest.mark.parametrize(("status", "said"), [(429, "answered 429"), (500, "answered 500"), (503, "answered 503")])
def test_what_may_pass_is_transient(monkeypatch: pytest.MonkeyPatch, status: int, said: str) -> None:
    with answering(monkeypatch, status, _no(status)) as asked, pytest.raises(Transient, match=said):
        AppIdentity(None).get_token_info(SCOPE)
    assert 1 <= len(asked) <= 2, "a message has a minute"


def _no(status: int) -> str:
    return json.dumps({"statusCode": status, "message": "no token for you"})


def test_what_does_not_pass_is_told_to_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]
    identity = AppIdentity(ASSIGNED, lambda: seconds[0])
    with answering(monkeypatch, 500, _no(500)):
        for seconds[0] in (0, 14 * 60):
            with pytest.raises(Transient):
                identity.get_token(SCOPE)
        seconds[0] = 15 * 60
        with pytest.raises(NeedsOperator, match="answered 500"):
            identity.get_token(SCOPE)


def test_an_answer_that_is_none_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(monkeypatch, 200, "<html>") as asked, pytest.raises(Transient, match="no answer"):
        AppIdentity(None).get_token_info(SCOPE)
    assert asked


def test_nobody_at_the_endpoint_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        point_to(monkeypatch, f"http://127.0.0.1:{probe.getsockname()[1]}/msi/token", ASSIGNED)
        with pytest.raises(Transient, match="no answer") as raised:
            AppIdentity(ASSIGNED).get_token(SCOPE)
    assert SECRET not in str(raised.value)


MANAGED = "ManagedIdentityCredential:"
HEAD = "DefaultAzureCredential failed to retrieve a token from the included credentials.\nAttempted credentials:"
TAIL = "\nTo mitigate this issue, please refer to the troubleshooting guidelines here at https://aka.ms/x."
NONE = (
    "EnvironmentCredential: EnvironmentCredential authentication unavailable. Not configured.\nVisit https://aka.ms/y."
)


@pytest.mark.parametrize(
    ("attempts", "meaning", "said"),
    [
        ([NONE, f"{MANAGED} ManagedIdentityCredential authentication unavailable."], NeedsOperator, "the app has none"),
        (
            [
                NONE,
                "ManagedIdentityCredential: ManagedIdentityCredential authentication unavailable.",
                "AzureCliCredential: Azure CLI not found on path",
                "BrokerCredential: InteractiveBrowserBrokerCredential unavailable. A package is required.",
            ],
            NeedsOperator,
            "the app has none; AZURE_CLIENT_ID is not set, so it must have a system-assigned identity",
        ),
        (
            ["EnvironmentCredential: Authentication failed: AADSTS7000215: Invalid client secret provided."],
            NeedsOperator,
            "Microsoft Entra ID refuses it",
        ),
        ([NONE, f"{MANAGED} HTTPConnection(host='127.0.0.1', port=1): timed out"], Transient, "no answer"),
        ([NONE, "ManagedIdentityCredential: X. Token request error: (invalid_request) no"], NeedsOperator, "no status"),
        (
            [NONE, f"{MANAGED} X. Token request error: (invalid_scope) 503, busy", "Broker: X unavailable."],
            Transient,
            "answered 503",
        ),
    ],
)  # fmt: skip
def test_the_library_s_texts(attempts: list[str], meaning: type[WorkerError], said: str) -> None:
    """As recorded of azure-identity 1.27."""
    error = no_token(HEAD + "".join(f"\n\t{one}" for one in attempts) + TAIL, None)
    assert type(error) is meaning
    assert said in str(error)
