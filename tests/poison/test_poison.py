"""Messages that failed too often: kept as they came, and no request among them ends in silence."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from unittest.mock import Mock

import pytest
from azure.storage.queue import QueueServiceClient

from local.stack.azurite import StorageAccount
from shared.errors import NeedsOperator, Transient
from shared.kinds import Kind
from shared.protocol.record import State
from shared.requests.own_message import CancelLater, Resume, to_text
from shared.storage.queues import QueueReader, TakenMessage
from shared.triggers import poison
from tests.support.hastes_task import JOB, TASK, Left
from tests.support.passing_waits import PassingWaits
from tests.support.small_world import MODEL, PROJECT, TRAINING
from tests.support.story import Story

NAMES: dict[str, Kind | None] = {
    "train-queue": Kind.TRAINING,
    "image-layers-queue": Kind.IMAGERYPREP,
    "own-queue": None,
}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


@dataclass
class Queues:
    """Queues in memory: what was taken comes back unless it is deleted."""

    messages: dict[str, list[TakenMessage]] = field(default_factory=dict)

    def put(self, queue: str, text: str, at: datetime | None = None) -> None:
        found = self.messages.setdefault(f"{queue}-poison", [])
        found.append(TakenMessage(f"{queue}-poison", f"id-{len(found)}", text, at, "receipt"))

    def take(self, queue: str, most: int) -> list[TakenMessage]:
        return self.messages.get(queue, [])[:most]

    def delete(self, message: TakenMessage) -> None:
        self.messages[message.queue_name].remove(message)

    def left(self) -> int:
        return sum(map(len, self.messages.values()))


def body(status: str = "Queued", **fields: Any) -> str:
    return json.dumps({"projectId": PROJECT, "modelId": MODEL, "status": status, **fields})


def empty(story: Story, queues: Queues, names: Mapping[str, Kind | None] = NAMES) -> None:
    poison.empty(story.worker, story.kept.rejected(), cast(QueueReader, queues), names)


def kept_reason(story: Story, name: str = "rejected/train-queue/id-0") -> str:
    return story.kept.blobs[name][1]["reason"]


def test_a_request_that_never_became_a_job_is_shown_as_failed() -> None:
    story, queues = Story(), Queues()
    queues.put("train-queue", body())
    empty(story, queues)
    assert story.shown["status"] == "Failed"
    assert "start it again" in story.shown["sentence"]
    assert story.kept.blobs["rejected/train-queue/id-0"][0] == body().encode()
    assert "shows the failure" in kept_reason(story)
    assert queues.left() == 0


@pytest.mark.parametrize("status", ["InProgress", "Processed", "Failed", "Cancelled", None])
def test_a_record_that_does_not_wait_for_it_is_left_alone(status: str | None) -> None:
    story, queues = Story(), Queues()
    story.world.save_record(TRAINING, status=status, taskId="trn-x")
    before = story.shown
    queues.put("train-queue", body())
    empty(story, queues)
    assert story.shown == before
    assert len(story.kept.blobs) == 1


def test_a_message_whose_job_is_live_is_left_to_the_timer() -> None:
    story, queues = Story(), Queues()
    story.ask()
    queues.put("train-queue", body())
    empty(story, queues)
    assert story.shown["status"] == "InProgress"
    assert "goes on" in kept_reason(story)
    story.complete()
    story.until_done()
    assert story.shown["status"] == "Processed"


def test_a_poll_message_of_haste_s_own_app_has_its_task_taken_over() -> None:
    """Nobody would ever look at the task again."""
    story, queues = Left(), Queues()
    queues.put("train-queue", body("InProgress", trainingJob={"jobId": JOB, "taskId": TASK}))
    empty(story, queues)
    assert "taken over" in kept_reason(story)
    assert queues.left() == 0
    story.until(lambda: story.record.state is State.PLACED)
    story.complete()
    story.until_done()
    assert (story.shown["status"], story.shown["taskId"]) == ("Processed", TASK)
    assert story.created() == [TASK]


def test_a_task_that_is_taken_over_is_older_than_a_request_that_is_on_its_way() -> None:
    """HASTE's API has put the message of a new run, and saves its record after that."""
    story, queues = Left(), Queues()
    story.complete()
    queues.put("train-queue", body("InProgress", trainingJob={"jobId": JOB, "taskId": TASK}), story.now())
    story.world.batch_world.advance(3)
    newer = story.message("m2", "Queued")
    story.world.batch_world.advance(3)
    empty(story, queues)
    story.world.save_record(TRAINING, status="Queued", taskId=None)
    story.deliver(newer)
    story.until(lambda: story.world.live_tasks() == [story.task_id(1, "m2")])
    assert story.ends() == {TASK: "completed"}


def test_a_run_that_is_asked_for_while_the_one_before_is_cancelled_comes_after_it() -> None:
    story, queues = Story(), Queues()
    story.ask()
    story.tick()
    story.cancel()
    story.world.batch_world.advance(1)
    story.world.save_record(TRAINING, status="Queued", taskId=None, jobStatus=None)
    queues.put("train-queue", body(), story.now())
    empty(story, queues)
    assert "comes after the run that was cancelled" in kept_reason(story) and queues.left() == 0
    story.until(lambda: story.live is not None and story.live.request.request_id == "id-0")
    story.until(lambda: story.world.live_tasks() == [story.task_id(1, "id-0")])
    story.tick()
    assert story.shown["status"] == "InProgress"


def test_a_message_of_a_run_that_waits_is_not_taken_for_another_run() -> None:
    story, queues = Story(), Queues()
    story.fault(operation="create_job", code="ActiveJobAndScheduleQuotaReached")
    story.ask()
    assert story.shown["status"] == "Queued"
    queues.put("train-queue", body(), story.now())
    empty(story, queues)
    assert "goes on" in kept_reason(story)
    assert story.record.next == ()


def test_a_cancel_that_is_looked_at_again_and_fails_too_often_is_carried_out() -> None:
    """The page says Cancelled, saved late; the training had succeeded."""
    story, queues = Story(), Queues()
    story.ask()
    story.tick()
    story.complete()
    story.until_done()
    story.world.save_record(TRAINING, status="Cancelled")
    queues.put("own-queue", to_text(CancelLater(TRAINING, "c1", story.now())))
    story.world.batch_world.advance(120)
    empty(story, queues)
    assert story.shown["status"] == "Processed"
    assert queues.left() == 0 and len(story.kept.blobs) == 1


def test_a_message_that_takes_a_job_up_again_needs_nothing() -> None:
    story, queues = Story(), Queues()
    story.ask()
    queues.put("own-queue", to_text(Resume(TRAINING, "m1", 1)))
    empty(story, queues)
    assert "the timer takes its job up" in kept_reason(story, "rejected/own-queue/id-0")


def test_a_cancel_that_failed_too_often_ends_its_job() -> None:
    """HASTE's page says Cancelled; the GPU must not be busy with it for days."""
    story, queues = Story(), Queues()
    story.ask()
    assert len(story.world.live_tasks()) == 1
    story.world.save_record(TRAINING, status="Cancelled")
    queues.put("train-queue", body("Cancelled"))
    empty(story, queues)
    assert "carried out" in kept_reason(story) and queues.left() == 0
    story.until_done()
    assert story.world.live_tasks() == []
    assert story.shown["status"] == "Cancelled"


def test_a_cancel_that_failed_too_often_does_not_end_a_newer_run() -> None:
    """Its copy in the poison queue is newer than the run; HASTE's record shows that the user has gone on."""
    story, queues = Story(), Queues()
    story.ask()
    queues.put("train-queue", body("Cancelled"))
    empty(story, queues)
    assert "not show a cancel" in kept_reason(story) and queues.left() == 0
    story.tick()
    assert len(story.world.live_tasks()) == 1
    story.complete()
    story.until_done()
    assert story.shown["status"] == "Processed"


def test_what_cannot_be_dealt_with_now_comes_back_and_keeps_no_other_message_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story, queues = Left(), Queues()
    poll = body("InProgress", trainingJob={"jobId": JOB, "taskId": TASK})
    for text in (poll, poll, "not JSON"):
        queues.put("train-queue", text)
    with monkeypatch.context() as patch:
        for error in (Transient("Batch did not answer"), NeedsOperator("the role is missing")):
            patch.setattr(story.world.haste, "read_with_etag", Mock(side_effect=error))
            raises = pytest.raises(ExceptionGroup) if isinstance(error, NeedsOperator) else contextlib.nullcontext()
            with raises:
                empty(story, queues)
            assert list(story.kept.blobs) == ["rejected/train-queue/id-2"]
            assert queues.left() == 2
    empty(story, queues)
    assert queues.left() == 0 and len(story.kept.blobs) == 3
    assert story.record.request.adopted_job_id == JOB


@pytest.mark.parametrize(
    "message", [body("Cancelled"), body("InProgress", trainingJob={"jobId": "j", "taskId": f"trn-{PROJECT}"})]
)
def test_a_cancel_or_a_poll_fails_nothing(message: str) -> None:
    story, queues = Story(), Queues()
    queues.put("train-queue", message)
    empty(story, queues)
    assert story.shown["status"] == "Queued"
    assert len(story.kept.blobs) == 1 and queues.left() == 0


@pytest.mark.parametrize(
    "text", ["", "not JSON", "{}", "[" * 60_000, "…\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")]
)
def test_a_message_that_nobody_understands_is_kept(text: str) -> None:
    story, queues = Story(), Queues()
    queues.put("train-queue", text)
    queues.put("own-queue", text)
    empty(story, queues)
    assert story.kept.blobs["rejected/train-queue/id-0"][0] == text.encode()
    assert story.kept.blobs["rejected/own-queue/id-0"][0] == text.encode()
    assert kept_reason(story).startswith("from train-queue-poison: ")
    assert queues.left() == 0
    assert story.shown["status"] == "Queued"


def test_a_request_without_a_record_of_haste_is_kept() -> None:
    story, queues = Story(record_is_there=False), Queues()
    queues.put("train-queue", body())
    empty(story, queues)
    assert len(story.kept.blobs) == 1 and story.world.haste.blobs == {}


def test_a_message_is_deleted_only_after_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    story, queues = Story(), Queues()
    queues.put("train-queue", body())

    def unavailable(*_args: Any) -> None:
        raise ConnectionError("storage did not answer")

    with monkeypatch.context() as patch:
        patch.setattr(story.kept, "create_with_etag", unavailable)
        with pytest.raises((ConnectionError, ExceptionGroup)):
            empty(story, queues)
    assert queues.left() == 1
    empty(story, queues)
    assert queues.left() == 0
    assert len(story.kept.blobs) == 1


def test_a_message_that_cannot_be_accounted_for_does_not_stay_for_ever_nor_stop_the_others() -> None:
    """HASTE's record of one request is broken; the next request must not end in silence because of it."""
    story, queues = Story(), Queues()
    story.world.haste.save("training_1", b"not a record")
    queues.put("train-queue", body(modelId="1"))
    queues.put("train-queue", body())
    empty(story, queues)
    assert story.shown["status"] == "Failed"
    assert set(story.kept.blobs) == {"rejected/train-queue/id-0", "rejected/train-queue/id-1"}
    assert queues.left() == 0


def test_on_real_queues_everything_is_taken_kept_and_gone(storage_account: StorageAccount) -> None:
    service = QueueServiceClient.from_connection_string(storage_account.connection_string)
    story = Story()
    for queue in ("train-queue-poison", "own-queue-poison"):
        client = service.create_queue(queue)
        for _ in range(2):
            client.send_message(body())
    poison.empty(story.worker, story.kept.rejected(), QueueReader(service), NAMES)
    assert story.shown["status"] == "Failed"
    assert len(story.kept.blobs) == 4
    assert {content for content, _ in story.kept.blobs.values()} == {body().encode()}
    for queue in ("train-queue-poison", "own-queue-poison"):
        assert service.get_queue_client(queue).get_queue_properties().approximate_message_count == 0
