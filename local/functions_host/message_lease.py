"""Keeps one message hidden from other hosts while its function runs."""

import asyncio
import logging
from types import TracebackType

from local.functions_host.log import EventLog
from local.functions_host.queue_port import MessageGone, QueueItem, QueueMissing, QueuePort, StorageFailure

_SHORTEST_PART_OF_LEASE = 0.1  # one minute of the real host's ten


class MessageLease:
    """Async context that renews a message's lease at half its length.

    Without it a function that outlasts the lease would run a second time on another host. After a storage failure the
    next renewal comes after half the interval, down to a tenth of the lease; a message that is gone is not renewed
    again. `pop_receipt` is always the newest receipt.
    """

    def __init__(self, queue: QueuePort, item: QueueItem, lease_seconds: int, log: EventLog, function: str) -> None:
        self._queue = queue
        self._item = item
        self._lease_seconds = lease_seconds
        self._log = log
        self._function = function
        self._ended = asyncio.Event()
        self._renewal: asyncio.Task[None] | None = None
        self.pop_receipt = item.pop_receipt

    async def __aenter__(self) -> "MessageLease":
        self._renewal = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not cancelled: a renewal under way may already have changed the receipt.
        self._ended.set()
        if self._renewal is not None:
            await self._renewal

    async def _renew(self) -> None:
        interval = self._lease_seconds / 2
        while not await self._ended_within(interval):
            try:
                self.pop_receipt = await self._queue.update(self._item.id, self.pop_receipt, self._lease_seconds)
                interval = self._lease_seconds / 2
            except (MessageGone, QueueMissing) as error:
                self._report("queue.lease_lost", error)
                return
            except StorageFailure as error:
                interval = max(interval / 2, self._lease_seconds * _SHORTEST_PART_OF_LEASE)
                self._report("queue.lease_renewal_failed", error)

    async def _ended_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _report(self, event: str, error: Exception) -> None:
        self._log(event, level=logging.WARNING, function=self._function, message=self._item.id, error=str(error))
