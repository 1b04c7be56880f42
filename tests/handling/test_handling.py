"""One message in: its effect is stored, or it comes back; what can never be accepted is kept as it came."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from shared import retry
from shared.errors import Conflict, InvalidMessage, Transient
from shared.haste.by_kind import parse_message
from shared.haste.messages import HasteMessage
from shared.kinds import Entity, Kind, Subject
from shared.protocol.record import State
from shared.requests import accept
from shared.requests.own_message import CancelLater, Resume, from_bytes, to_text
from shared.triggers import messages
from shared.triggers.messages import QueueMessage
from tests.support.kept import KeptBlobs
from tests.support.passing_waits import PassingWaits
from tests.support.samples import LAYER_ID, MODEL_ID, PROJECT_ID
from tests.support.small_world import TRAINING
from tests.support.story import Story

GARBAGE = [
    b"",
    b" ",
    b"not JSON",
    b"null",
    b"[]",
    b"17",
    b'"text"',
    b"{}",
    b"\xff\xfe\x00",
    b"[" * 60_000,
    b'{"projectId": ' * 1000,
    b'{"status": "Queued"}',
    base64.b64encode(b'{"projectId": "x"}'),
    json.dumps({"projectId": "../..", "modelId": "4821", "status": "Queued"}).encode(),
]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def rejected_by(kept: KeptBlobs, body: bytes, own: bool) -> None:
    """Hand a message to a trigger of a worker that must not be needed for it."""
    message = QueueMessage("some-queue", "message-1", datetime.now(UTC), body)
    if own:
        messages.own_message(None, kept.rejected(), message)  # type: ignore[arg-type]
    else:
        messages.haste_message(None, kept.rejected(), Kind.TRAINING, message)  # type: ignore[arg-type]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("body", GARBAGE, ids=range(len(GARBAGE)))
def test_what_can_never_be_accepted_is_kept_byte_for_byte_with_a_reason(body: bytes, own: bool) -> None:
    kept = KeptBlobs()
    with capture_logs() as logs:
        rejected_by(kept, body, own)
        rejected_by(kept, body, own)
    ((name, (content, metadata)),) = kept.blobs.items()
    assert name == "rejected/some-queue/message-1"
    assert content == body
    assert metadata["reason"] and metadata["reason"].isascii() and len(metadata["reason"]) <= 1000
    assert "\n" not in metadata["reason"]
    assert [line["event"] for line in logs] == ["message rejected"] * 2
    assert len(body) < 10 or body[:200].decode(errors="replace") not in str(logs)


def test_a_reason_is_made_fit_for_metadata() -> None:
    kept = KeptBlobs()
    kept.rejected().keep("queue", "id", b"body", "über\nallem " + "x" * 5000)
    ((_content, metadata),) = kept.blobs.values()
    assert metadata["reason"].startswith(r"\xfcber allem x")
    assert len(metadata["reason"]) <= 1000


def test_base64_is_named_as_the_likely_mistake() -> None:
    kept = KeptBlobs()
    rejected_by(kept, base64.b64encode(b'{"projectId": "x"}'), own=False)
    ((_content, metadata),) = kept.blobs.values()
    assert "base64" in metadata["reason"]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = [
    "do",
    "kind",
    "projectId",
    "entityId",
    "requestId",
    "attempt",
    "cancelId",
    "asked",
    "modelId",
    "status",
    "trainingJob",
]
_WORDS = [
    "resume",
    "cancel",
    "training",
    "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34",
    "4821",
    "Queued",
    "InProgress",
    "2026-08-12T12:00:00Z",
]
_alike = st.dictionaries(st.sampled_from(_FIELDS), st.sampled_from(_WORDS) | _json, max_size=9)


@given(
    st.binary(max_size=60)
    | _json.map(lambda value: json.dumps(value).encode())
    | _alike.map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_a_message_or_an_invalid_one(body: bytes) -> None:
    for read in (
        from_bytes,
        lambda it: parse_message(it, Kind.TRAINING),
        lambda it: parse_message(it, Kind.IMAGERYPREP),
    ):
        try:
            assert isinstance(read(body), Resume | CancelLater | HasteMessage)
        except InvalidMessage as invalid:
            assert invalid.reason


_SUBJECT_IDS = {Subject.LAYER: st.uuids().map(str), Subject.MODEL: st.from_regex(r"[0-9]{1,8}", fullmatch=True)}
_entities = st.sampled_from(Kind).flatmap(
    lambda kind: st.builds(Entity, st.just(kind), st.uuids().map(str), _SUBJECT_IDS[kind.facts.subject])
)
_ids = st.from_regex(r"[A-Za-z0-9+_-]{1,100}", fullmatch=True)


@given(
    st.builds(Resume, _entities, _ids, st.integers(1, 99))
    | st.builds(CancelLater, _entities, _ids, st.datetimes(timezones=st.just(UTC)))
)
def test_our_own_messages_come_back_as_they_were_sent_and_are_small(message: Resume | CancelLater) -> None:
    text = to_text(message)
    assert from_bytes(text.encode()) == message
    assert len(text) < 1000
    assert set(json.loads(text)) <= {"do", "kind", "projectId", "entityId", "requestId", "attempt", "cancelId", "asked"}


@pytest.mark.parametrize("kind", Kind)
def test_our_own_messages_hold_the_id_of_what_a_kind_works_on(kind: Kind) -> None:
    ids = {Subject.LAYER: LAYER_ID, Subject.MODEL: MODEL_ID}
    for subject, entity_id in ids.items():
        message = Resume(Entity(kind, PROJECT_ID, entity_id), "message-1", 1)
        if subject is kind.facts.subject:
            assert from_bytes(to_text(message).encode()) == message
        else:
            with pytest.raises(InvalidMessage, match="entityId"):
                from_bytes(to_text(message).encode())


# --- messages that come back ------------------------------------------------------------------------------------


def test_a_message_whose_effect_could_not_be_stored_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()

    def unavailable(_name: str) -> None:
        raise Transient("storage did not answer")

    with monkeypatch.context() as patch:
        patch.setattr(story.world.haste, "read_with_etag", unavailable)
        with pytest.raises(Transient):
            story.ask()
    assert story.live is None
    story.ask()
    assert story.world.live_tasks() == [story.task_id()]


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_write_is_looked_at_afresh(lost: int, monkeypatch: pytest.MonkeyPatch, waits: PassingWaits) -> None:
    story = Story()
    story.ask()
    real, calls = story.world.ledger.replace, []

    def loses(*args: Any) -> Any:
        calls.append(args)
        if len(calls) <= lost:
            raise Conflict("somebody else")
        return real(*args)

    monkeypatch.setattr(story.world.ledger, "replace", loses)
    story.tick(1)
    calls.clear()
    story.cancel()
    assert story.record.cancel_asked is not None
    assert len(calls) == lost + 1


def test_a_message_that_loses_every_write_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def loses(*_args: Any) -> Any:
        raise Conflict("somebody else")

    story = Story()
    story.ask()
    monkeypatch.setattr(story.world.ledger, "replace", loses)
    with pytest.raises(Conflict):
        story.cancel()


def test_a_request_whose_record_exists_is_done_with_even_if_batch_is_down(waits: PassingWaits) -> None:
    """The timer goes on with it: the message would only burn its deliveries."""
    story = Story()
    for operation in ("get_job", "create_job", "create_task", "get_task"):
        story.fault(operation=operation, status=503)
    story.ask()
    assert story.state is State.WAITING
    story.mend()
    story.until(lambda: story.world.live_tasks())


def test_a_message_takes_no_longer_than_its_time(waits: PassingWaits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call to Batch hangs for as long as it may; the visibility of the message is not outlived."""
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=waits.monotonic))
    story = Story()
    story.fault(operation="get_job", status=503, retry_after=8, times=2)
    story.fault(operation="create_job", status=503, retry_after=8, times=2)
    story.fault(operation="create_task", status=503, retry_after=8)
    story.ask()
    assert 32 < sum(waits.seconds) <= 45
    assert story.state in (State.WAITING, State.PLACED)
    story.mend()
    story.until(lambda: story.world.live_tasks())


# --- our own messages -------------------------------------------------------------------------------------------


def own(story: Story, message: Resume | CancelLater) -> None:
    queue_message = QueueMessage("own", "own-1", story.now(), to_text(message).encode())
    messages.own_message(story.worker, story.kept.rejected(), queue_message)


@pytest.mark.parametrize("message", [Resume(TRAINING, "m1", 2), Resume(TRAINING, "m0", 1), Resume(TRAINING, "m2", 1)])
def test_a_resume_of_another_attempt_or_request_does_nothing(message: Resume, waits: PassingWaits) -> None:
    story = Story()
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    story.ask()
    story.mend()
    version = story.version
    own(story, message)
    assert story.version == version
    own(story, Resume(TRAINING, "m1", 1))
    assert story.world.live_tasks() == [story.task_id()]
    own(story, Resume(TRAINING, "m1", 1))
    assert story.created() == [story.task_id()]


def test_a_resume_of_what_has_ended_does_nothing(waits: PassingWaits) -> None:
    story = Story()
    own(story, Resume(TRAINING, "m1", 1))
    assert story.live is None
    story.ask()
    story.complete()
    story.tick()
    version = story.version
    assert version.record.state is State.FINISHING
    own(story, Resume(TRAINING, "m1", 1))
    assert story.version == version, "the end is the timer's"


def test_a_cancel_that_meets_a_finishing_record_is_put_off_by_a_message_of_our_own(waits: PassingWaits) -> None:
    story = Story()
    story.ask()
    story.complete()
    story.tick()
    assert story.state is State.FINISHING
    before = len(story.world.own_queue.messages)
    asked = story.now()
    accept.cancel(story.worker, TRAINING, "c1", asked)
    assert story.ends() == {"c1": "cancel"}, "its entry is written first"
    (visible_at, text) = story.world.own_queue.messages[before]
    assert visible_at > story.now()
    assert from_bytes(text.encode()) == CancelLater(TRAINING, "c1", asked)
    story.until_done()
    assert story.shown["status"] == "Processed"
