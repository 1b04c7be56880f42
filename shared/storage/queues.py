"""Queues to send to (the worker's own, HASTE's for zips), and any queue, to empty by hand. Triggers do the rest.

Messages are plain text, no base64: HASTE's are, and the worker's host.json says so for all queues.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from azure.storage.queue import QueueServiceClient

from shared.storage.failures import QUEUE_ROLE, allowing, told

# A message must not vanish because its job waited for longer than the seven days Azure Storage keeps it by default.
_NEVER_EXPIRES = -1

#: How long HASTE's own messages live.
HASTE_SECONDS_TO_LIVE = 7 * 24 * 3600

#: How long a taken message is hidden from others: enough to store it elsewhere and delete it.
TAKEN_FOR_SECONDS = 60

#: Azure Storage hands out at most this many messages per call.
_MESSAGES_PER_CALL = 32


class WorkerQueue:
    """A queue that the worker sends to; made when the first message is sent, if need be, as HASTE does."""

    def __init__(self, service: QueueServiceClient, name: str, seconds_to_live: int = _NEVER_EXPIRES) -> None:
        self._service = service
        self._name = name
        self._seconds_to_live = seconds_to_live

    def send(self, text: str, visible_after_seconds: int = 0) -> None:
        """Put one message, at most 64 KiB. It is seen after `visible_after_seconds`, seven days at most."""
        queue = self._service.get_queue_client(self._name)
        with told(f"send to the queue {self._name}", QUEUE_ROLE):
            with allowing("QueueNotFound"):
                queue.send_message(text, visibility_timeout=visible_after_seconds, time_to_live=self._seconds_to_live)
                return
            with allowing("QueueAlreadyExists"):
                queue.create_queue()
            queue.send_message(text, visibility_timeout=visible_after_seconds, time_to_live=self._seconds_to_live)


@dataclass(frozen=True)
class TakenMessage:
    """A message taken from a queue and hidden from others for a minute. `text` is verbatim, and never logged."""

    queue_name: str
    message_id: str
    text: str = field(repr=False)
    inserted_on: datetime | None
    receipt: str = field(repr=False)


class QueueReader:
    """Takes messages from queues without a trigger, poison queues above all."""

    def __init__(self, service: QueueServiceClient) -> None:
        self._service = service

    def take(self, queue_name: str, most: int) -> list[TakenMessage]:
        """Up to `most` messages; none if the queue does not exist."""
        queue = self._service.get_queue_client(queue_name)
        with told(f"read the queue {queue_name}", QUEUE_ROLE), allowing("QueueNotFound"):
            return [
                TakenMessage(queue_name, str(one.id), str(one.content), one.inserted_on, str(one.pop_receipt))
                for one in queue.receive_messages(
                    messages_per_page=min(most, _MESSAGES_PER_CALL),
                    max_messages=most,
                    visibility_timeout=TAKEN_FOR_SECONDS,
                )
            ]
        return []

    def delete(self, message: TakenMessage) -> None:
        """Delete a message that was taken. Nothing happens if it is gone, or was taken again meanwhile."""
        queue = self._service.get_queue_client(message.queue_name)
        gone = ("MessageNotFound", "PopReceiptMismatch", "QueueNotFound")
        with told(f"delete a message of the queue {message.queue_name}", QUEUE_ROLE), allowing(*gone):
            queue.delete_message(message.message_id, message.receipt)
