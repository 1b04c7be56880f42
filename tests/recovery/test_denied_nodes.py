"""Nodes that the app may not list: an operator is told, and no task is taken for lost."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from shared.pools import readings
from tests.support.story import Story


def test_nodes_that_may_not_be_listed_are_told_and_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Mock()
    monkeypatch.setattr(readings, "log", log)
    story = Story()
    story.ask()
    story.fault(operation="list_nodes", status=403, code="AuthorizationFailure")
    for _ in range(11):
        story.tick()
    ((event,), fields) = log.error.call_args
    assert event == "waits for an operator" and "nodes of h100 not read" in fields["error"]
    story.mend()
    story.complete()
    story.until_done()
    assert story.started() == [story.task_id()]
