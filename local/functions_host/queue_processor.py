"""The life of one received message: run, then delete, try again, or move to the poison queue."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from local.functions_host.host_json import QueueOptions
from local.functions_host.log import EventLog
from local.functions_host.message_lease import MessageLease
from local.functions_host.queue_port import (
    MessageGone,
    QueueItem,
    QueueMissing,
    QueuePort,
    StorageFailure,
    send_creating_queue,
)

RunFunction = Callable[[QueueItem, str], Awaitable[bool]]
"""Runs the function on a message and its decoded text; True when it succeeded."""


@dataclass(frozen=True)
class QueueProcessor:
    """Decides what becomes of a message; `poison` is None where the queue has no poison queue.

    Without a poison queue a failed message is left alone, so it stays hidden for the rest of its lease.
    """

    function: str
    queue: QueuePort
    poison: QueuePort | None
    options: QueueOptions
    lease_seconds: int
    run_function: RunFunction
    log: EventLog

    async def process(self, item: QueueItem, body: bytes) -> None:
        """Run the function on one message and complete the message; storage failures are logged, not raised.

        A message that storage would not let go comes back when its lease ends.
        """
        try:
            # The count is above the maximum when a host died during the last try.
            if self.poison is not None and item.dequeue_count > self.options.max_dequeue_count:
                await self._move_to_poison(self.poison, item, item.pop_receipt)
                return
            async with MessageLease(self.queue, item, self.lease_seconds, self.log, self.function) as lease:
                succeeded = await self._run(item, body)
            await self._complete(item, lease.pop_receipt, succeeded=succeeded)
        except (MessageGone, QueueMissing) as error:
            self._report("queue.message_gone", item, level=logging.WARNING, error=str(error))
        except StorageFailure as error:
            self._report("queue.storage_failure", item, level=logging.ERROR, error=str(error))

    async def reject(self, item: QueueItem) -> None:
        """Move a message whose text cannot be decoded to the poison queue, never run."""
        self._report("queue.undecodable", item, level=logging.ERROR)
        if self.poison is None:
            return
        try:
            await self._move_to_poison(self.poison, item, item.pop_receipt)
        except (MessageGone, QueueMissing, StorageFailure) as error:
            self._report("queue.storage_failure", item, level=logging.ERROR, error=str(error))

    async def _run(self, item: QueueItem, body: bytes) -> bool:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            self._report("function.failed", item, level=logging.ERROR, error="the message is not UTF-8")
            return False
        return await self.run_function(item, text)

    async def _complete(self, item: QueueItem, pop_receipt: str, *, succeeded: bool) -> None:
        if succeeded:
            await self.queue.delete(item.id, pop_receipt)
        elif self.poison is None:
            self._report("queue.no_poison_queue", item, level=logging.WARNING)
        elif item.dequeue_count >= self.options.max_dequeue_count:
            await self._move_to_poison(self.poison, item, pop_receipt)
        else:
            await self.queue.update(item.id, pop_receipt, self.options.visibility_timeout_seconds)

    async def _move_to_poison(self, poison: QueuePort, item: QueueItem, pop_receipt: str) -> None:
        self._report("queue.poison", item, level=logging.ERROR, poison_queue=poison.name)
        await send_creating_queue(poison, item.text)
        await self.queue.delete(item.id, pop_receipt)

    def _report(self, event: str, item: QueueItem, level: int = logging.INFO, **fields: object) -> None:
        count = item.dequeue_count
        self.log(event, level=level, function=self.function, message=item.id, dequeue_count=count, **fields)
