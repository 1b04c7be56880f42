"""The worker's own queue and poison queues, against Azurite."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from azure.storage.queue import QueueServiceClient

from shared.storage import queues as under_test
from shared.storage.accounts import queues
from shared.storage.failures import StorageFailed
from shared.storage.queues import HASTE_SECONDS_TO_LIVE, QueueReader, TakenMessage, WorkerQueue
from tests.storage.conftest import Tenant

TEXT = '{"job": "training/ab", "attempt": 2, "what": "é <&> \\" 日本"}'


@pytest.fixture
def service(tenant: Tenant) -> QueueServiceClient:
    return queues(tenant.settings)


def test_a_message_is_sent_verbatim_to_a_queue_that_did_not_exist_and_never_expires(
    service: QueueServiceClient,
) -> None:
    for _ in range(2):
        WorkerQueue(service, "haste-worker-jobs").send(TEXT)
    received = list(service.get_queue_client("haste-worker-jobs").receive_messages())
    assert [one.content for one in received] == [TEXT, TEXT]
    for one in received:
        assert one.expires_on is not None
        assert one.inserted_on is not None
        assert one.expires_on - one.inserted_on > timedelta(days=10_000)


def test_a_message_for_haste_lives_as_long_as_haste_s_own(service: QueueServiceClient) -> None:
    WorkerQueue(service, "zip-queue", HASTE_SECONDS_TO_LIVE).send(TEXT)
    service.get_queue_client("zip-queue").send_message(TEXT)
    lives = [
        one.expires_on - one.inserted_on
        for one in service.get_queue_client("zip-queue").receive_messages()
        if one.expires_on and one.inserted_on
    ]
    assert lives == [timedelta(days=7)] * 2


def test_a_delayed_message_is_there_and_not_seen(service: QueueServiceClient) -> None:
    WorkerQueue(service, "haste-worker-jobs").send(TEXT, 300)
    queue = service.get_queue_client("haste-worker-jobs")
    assert queue.get_queue_properties().approximate_message_count == 1
    assert list(queue.receive_messages()) == []


def test_a_message_that_is_too_big_is_refused(service: QueueServiceClient) -> None:
    WorkerQueue(service, "haste-worker-jobs").send("x" * 65_536)
    with pytest.raises(StorageFailed, match="413"):
        WorkerQueue(service, "haste-worker-jobs").send("x" * 65_537)


def test_a_missing_queue_is_empty(service: QueueServiceClient) -> None:
    assert QueueReader(service).take("train-queue-poison", 5) == []


def test_messages_are_taken_verbatim_hidden_and_deleted(service: QueueServiceClient) -> None:
    encoded = base64.b64encode(TEXT.encode()).decode()
    queue = service.create_queue("train-queue-poison")
    for text in (TEXT, encoded, "not json"):
        queue.send_message(text)
    reader = QueueReader(service)

    taken = reader.take("train-queue-poison", 2)
    rest = reader.take("train-queue-poison", 32)
    assert [message.text for message in taken + rest] == [TEXT, encoded, "not json"]
    assert reader.take("train-queue-poison", 32) == []
    assert all(message.inserted_on is not None and message.message_id for message in taken)
    assert TEXT not in repr(taken)

    for message in (*taken, *rest, taken[0]):
        reader.delete(message)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_more_messages_than_one_call_gives_are_taken(service: QueueServiceClient) -> None:
    queue = service.create_queue("train-queue-poison")
    for number in range(40):
        queue.send_message(str(number))
    assert len(QueueReader(service).take("train-queue-poison", 35)) == 35


def test_a_message_taken_again_by_somebody_else_is_not_deleted(
    service: QueueServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = service.create_queue("train-queue-poison")
    queue.send_message(TEXT)
    monkeypatch.setattr(under_test, "TAKEN_FOR_SECONDS", 1)
    reader = QueueReader(service)
    (first,) = reader.take("train-queue-poison", 1)
    second: list[TakenMessage] = []
    while not second:  # until the second is over; the test's own time limit ends the wait
        second = reader.take("train-queue-poison", 1)
    reader.delete(first)
    assert queue.get_queue_properties().approximate_message_count == 1


def test_deleting_from_a_queue_that_is_gone_does_nothing(service: QueueServiceClient) -> None:
    queue = service.create_queue("train-queue-poison")
    queue.send_message(TEXT)
    reader = QueueReader(service)
    (message,) = reader.take("train-queue-poison", 1)
    queue.delete_queue()
    reader.delete(message)
