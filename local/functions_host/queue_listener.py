"""Polls one queue for one function and keeps its messages in work."""

import asyncio
import logging

from local.functions_host.log import EventLog
from local.functions_host.polling import PollingBackOff
from local.functions_host.queue_encoding import UndecodableText, decode_text
from local.functions_host.queue_port import QueueItem, QueueMissing, QueuePort, StorageFailure
from local.functions_host.queue_processor import QueueProcessor


class QueueListener:
    """Receives batches while at most `newBatchThreshold` messages are in work, else waits for some to end.

    The queue is never created here; while it is missing the listener looks for it with the polling back-off.
    """

    def __init__(self, queue: QueuePort, processor: QueueProcessor, back_off: PollingBackOff, log: EventLog) -> None:
        self._queue = queue
        self._processor = processor
        self._back_off = back_off
        self._log = log
        self._running: set[asyncio.Task[None]] = set()
        self._queue_seen = False
        self._found_message = False

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until `stop` is set; returns when all messages in work are completed."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                if await self._receive():
                    self._found_message = True
                    await self._until_room(stopped)
                else:
                    await self._wait(stopped)
        finally:
            stopped.cancel()
            if self._running:
                await asyncio.wait(self._running)

    async def _receive(self) -> bool:
        """Start what one poll finds; False when there was nothing to start."""
        try:
            if not self._queue_seen:
                self._queue_seen = await self._queue.exists()
                if not self._queue_seen:
                    self._debug("queue.missing")
                    return False
            options = self._processor.options
            items = await self._queue.receive(options.batch_size, self._processor.lease_seconds)
        except QueueMissing:
            self._queue_seen = False
            return False
        except StorageFailure as error:
            self._log("queue.storage_failure", level=logging.ERROR, function=self._function, error=str(error))
            return False
        return await self._start(items)

    async def _start(self, items: list[QueueItem]) -> bool:
        decoded: list[tuple[QueueItem, bytes]] = []
        for item in items:
            try:
                decoded.append((item, decode_text(item.text, base64_encoded=self._processor.options.base64)))
            except UndecodableText:
                await self._processor.reject(item)
        self._debug("queue.received", count=len(decoded))
        for item, body in decoded:
            task = asyncio.create_task(self._processor.process(item, body))
            self._running.add(task)
            task.add_done_callback(self._ended)
        return bool(decoded)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A defect of the host itself; the message comes back when its lease ends.
            self._log("host.defect", level=logging.ERROR, function=self._function, error=repr(error))

    async def _until_room(self, stopped: asyncio.Task[bool]) -> None:
        while len(self._running) > self._processor.options.new_batch_threshold and not stopped.done():
            await asyncio.wait({*self._running, stopped}, return_when=asyncio.FIRST_COMPLETED)

    async def _wait(self, stopped: asyncio.Task[bool]) -> None:
        delay = self._back_off.next_delay_seconds(found_message=self._found_message)
        self._found_message = False
        self._debug("queue.wait", seconds=delay)
        await asyncio.wait({stopped}, timeout=delay)

    @property
    def _function(self) -> str:
        return self._processor.function

    def _debug(self, event: str, **fields: object) -> None:
        self._log(event, level=logging.DEBUG, function=self._function, queue=self._queue.name, **fields)
