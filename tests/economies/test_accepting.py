"""A new request costs one conditional create; whether it is known is asked only if a record is there."""

from __future__ import annotations

from collections import Counter

import pytest

from shared.ledger.port import Versioned
from shared.protocol.record import State
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import TRAINING
from tests.support.story import Story


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class LedgerCalls:
    """What is asked of the ledger, in order."""

    def __init__(self, story: Story, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        for method in ("read", "read_listed", "create", "replace", "done", "live"):
            self._note(patch, story, method)

    def _note(self, patch: pytest.MonkeyPatch, story: Story, method: str) -> None:
        real = getattr(story.world.ledger, method)

        def noted(*arguments: object) -> object:
            self.asked.append(method)
            return real(*arguments)

        patch.setattr(story.world.ledger, method, noted)


def test_a_new_request_is_created_and_placed_without_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    calls = LedgerCalls(story, monkeypatch)
    story.ask()
    assert calls.asked[0] == "create"
    assert Counter(calls.asked) - Counter(live=1) == Counter(create=1, done=1, replace=1)
    assert story.world.live_tasks() == [story.task_id()]


def test_a_message_that_comes_again_is_recognised_by_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    message = story.ask()
    story.tick()
    before = story.version
    calls = LedgerCalls(story, monkeypatch)
    story.deliver(message)
    assert calls.asked == ["create", "read"]
    assert story.version == before, "nothing is written"
    assert story.created() == [story.task_id()]


def test_a_newer_request_meets_the_live_one(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.ask("m1")
    story.world.batch_world.advance(1)
    calls = LedgerCalls(story, monkeypatch)
    story.ask("m2")
    assert calls.asked == ["create", "read", "done", "replace"]
    assert story.record.request.request_id == "m1"
    assert [one.request_id for one in story.record.next] == ["m2"]


def test_a_record_that_goes_between_create_and_read_does_not_swallow_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request before has just come to its end."""
    story = Story()
    story.ask("m1")
    story.complete()
    real = story.world.ledger.read

    def gone(key: str) -> Versioned | None:
        version = real(key)
        if version is not None and version.record.request.request_id == "m1":
            story.world.ledger.remove(version)
            return None
        return version

    story.world.save_record(TRAINING, status="Queued")
    monkeypatch.setattr(story.world.ledger, "read", gone)
    story.world.batch_world.advance(1)
    story.ask("m2")
    assert story.record.request.request_id == "m2"
    assert story.state is State.PLACED
    assert story.world.live_tasks() == [story.task_id(message_id="m2")]
