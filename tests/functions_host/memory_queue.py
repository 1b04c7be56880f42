"""Queues in memory with the semantics of Azure Queue Storage, on the event loop's clock."""

import asyncio
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from local.functions_host.queue_port import MessageGone, QueueItem, QueueMissing

EPOCH = datetime(2026, 11, 30, tzinfo=UTC)
DEFAULT_TTL_SECONDS = 7 * 24 * 3600.0
_HALF_ROUND_TRIP_SECONDS = 0.001


@dataclass
class StoredMessage:
    id: str
    text: str
    inserted_at: float
    expires_at: float
    visible_at: float
    dequeue_count: int = 0
    receipt: int = 0


@dataclass
class MemoryStorage:
    """The queues of one account. `trace` hears every request: its name, then queue, message id or numbers."""

    trace: Callable[..., None] = lambda *_: None
    queues: dict[str, list[StoredMessage]] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def put(
        self, queue: str, text: str, *, ttl_seconds: float = DEFAULT_TTL_SECONDS, dequeue_count: int = 0
    ) -> StoredMessage:
        """Put a message without a request; a negative time to live means forever."""
        now = asyncio.get_running_loop().time()
        expires_at = math.inf if ttl_seconds < 0 else now + ttl_seconds
        message = StoredMessage(f"id-{next(self._numbers)}", text, now, expires_at, now, dequeue_count)
        self.queues[queue].append(message)
        return message

    def live(self, queue: str) -> list[StoredMessage]:
        """The queue's messages that have not expired. Raises QueueMissing."""
        if queue not in self.queues:
            raise QueueMissing(queue)
        now = asyncio.get_running_loop().time()
        self.queues[queue] = [message for message in self.queues[queue] if message.expires_at > now]
        return self.queues[queue]

    def new_receipt(self) -> int:
        return next(self._numbers)


class MemoryQueue:
    """A queue port; a request takes effect after one millisecond and returns after two."""

    def __init__(self, storage: MemoryStorage, name: str) -> None:
        self._storage = storage
        self.name = name

    async def exists(self) -> bool:
        self._storage.trace("exists?", self.name)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        found = self.name in self._storage.queues
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        return found

    async def receive(self, max_messages: int, visibility_seconds: int) -> list[QueueItem]:
        assert 1 <= max_messages <= 32, "storage refuses other batch sizes"
        assert 1 <= visibility_seconds <= 604_800, "storage refuses other visibility timeouts"
        self._storage.trace("receive", max_messages, visibility_seconds)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        now = asyncio.get_running_loop().time()
        visible = [message for message in self._storage.live(self.name) if message.visible_at <= now][:max_messages]
        for message in visible:
            message.dequeue_count += 1
            message.receipt = self._storage.new_receipt()
            message.visible_at = now + visibility_seconds
        items = [_item(message) for message in visible]
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        return items

    async def update(self, message_id: str, pop_receipt: str, visibility_seconds: int) -> str:
        self._storage.trace("update", message_id, visibility_seconds)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        message = self._held(message_id, pop_receipt)
        message.receipt = self._storage.new_receipt()
        message.visible_at = asyncio.get_running_loop().time() + visibility_seconds
        receipt = str(message.receipt)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        return receipt

    async def delete(self, message_id: str, pop_receipt: str) -> None:
        self._storage.trace("delete", message_id)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        message = self._held(message_id, pop_receipt)
        self._storage.queues[self.name].remove(message)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)

    async def send(self, text: str) -> None:
        self._storage.trace("send", self.name)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        if self.name not in self._storage.queues:
            raise QueueMissing(self.name)
        self._storage.put(self.name, text)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)

    async def create(self) -> None:
        self._storage.trace("create-queue", self.name)
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)
        self._storage.queues.setdefault(self.name, [])
        await asyncio.sleep(_HALF_ROUND_TRIP_SECONDS)

    def _held(self, message_id: str, pop_receipt: str) -> StoredMessage:
        for message in self._storage.live(self.name):
            if message.id == message_id:
                if str(message.receipt) != pop_receipt:
                    raise MessageGone("PopReceiptMismatch")
                return message
        raise MessageGone("MessageNotFound")


def _item(message: StoredMessage) -> QueueItem:
    return QueueItem(
        id=message.id,
        pop_receipt=str(message.receipt),
        text=message.text,
        dequeue_count=message.dequeue_count,
        insertion_time=_moment(message.inserted_at),
        expiration_time=_moment(message.expires_at),
        next_visible_time=_moment(message.visible_at),
    )


def _moment(seconds: float) -> datetime:
    return datetime.max.replace(tzinfo=UTC) if math.isinf(seconds) else EPOCH + timedelta(seconds=seconds)
