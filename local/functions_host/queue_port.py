"""What the queue listener needs of a queue, free of any SDK."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class QueueMissing(Exception):
    """The queue does not exist."""


class MessageGone(Exception):
    """The message was deleted, or its pop receipt is no longer the newest."""


class StorageFailure(Exception):
    """Storage refused or did not answer; the message holds status and error code only."""


@dataclass(frozen=True)
class QueueItem:
    """A received message; `text` is what lies in the queue, still encoded, and stays out of the repr and the logs."""

    id: str
    pop_receipt: str
    text: str
    dequeue_count: int
    insertion_time: datetime
    expiration_time: datetime
    next_visible_time: datetime

    def __repr__(self) -> str:
        return f"QueueItem(id={self.id!r}, dequeue_count={self.dequeue_count})"


class QueuePort(Protocol):
    """One queue. Every method may raise StorageFailure; all but `exists` and `create` raise QueueMissing."""

    @property
    def name(self) -> str: ...

    async def exists(self) -> bool: ...

    async def receive(self, max_messages: int, visibility_seconds: int) -> list[QueueItem]:
        """One request for up to `max_messages`, each hidden from others for `visibility_seconds`."""
        ...

    async def update(self, message_id: str, pop_receipt: str, visibility_seconds: int) -> str:
        """Hide the message for that long from now, keeping its text; returns the new receipt, or MessageGone."""
        ...

    async def delete(self, message_id: str, pop_receipt: str) -> None:
        """Delete the message, or MessageGone."""
        ...

    async def send(self, text: str) -> None:
        """Put a message with the service's default time to live."""
        ...

    async def create(self) -> None:
        """Create the queue; fine when it is there already."""
        ...


async def send_creating_queue(queue: QueuePort, text: str) -> None:
    """Send, and when the queue is missing create it and send again."""
    try:
        await queue.send(text)
    except QueueMissing:
        await queue.create()
        await queue.send(text)
