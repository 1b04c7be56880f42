"""Without a token a request waits for an operator: its record, the log and its user say so."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from shared.identity import AppIdentity
from shared.protocol.record import State
from shared.telemetry import operator
from tests.support.identity_endpoint import UNKNOWN, app_with_one_identity
from tests.support.story import Story


def test_with_a_wrong_client_id_a_request_waits_and_its_user_sees_that(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Mock()
    monkeypatch.setattr(operator, "log", log)
    with app_with_one_identity(monkeypatch, UNKNOWN):
        story = Story(credential=AppIdentity(UNKNOWN))
        story.ask()
    told = "could not get a token for the app's identity: the identity endpoint answered 400; AZURE_CLIENT_ID is "
    told += UNKNOWN
    assert story.state is State.WAITING and story.record.reason.startswith(f"waiting for an operator: {told}")
    ((event,), fields) = log.error.call_args
    assert event == "waits for an operator", "the alerts count this line"
    assert fields["error"].startswith(told)
    assert (story.shown["status"], story.shown["note"]) == ("Queued", "Waiting for an operator")
    assert story.events("request") == [], "Batch is not asked without a token"
