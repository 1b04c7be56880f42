"""Fills and reads queues with a client of the tests' own."""

import json
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import QueueServiceClient


def send(queues: QueueServiceClient, queue: str, *texts: str) -> None:
    """Put texts on a new queue."""
    client = queues.create_queue(queue)
    for text in texts:
        client.send_message(text)


def texts(queues: QueueServiceClient, queue: str) -> list[str]:
    """The visible texts of a queue, at most 32; none when there is no such queue."""
    try:
        return [str(message.content) for message in queues.get_queue_client(queue).peek_messages(max_messages=32)]
    except ResourceNotFoundError:
        return []


def results(queues: QueueServiceClient) -> list[dict[str, Any]]:
    """What the sample app's `work` function reported."""
    return [json.loads(text) for text in texts(queues, "sample-results")]


def count(queues: QueueServiceClient, queue: str) -> int:
    """All messages of a queue, hidden ones too."""
    return int(queues.get_queue_client(queue).get_queue_properties().approximate_message_count or 0)
