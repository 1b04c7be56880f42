"""Replays a recorded queue scenario on the listener and the in-memory queues, giving events of the same form."""

import asyncio
import random
from typing import Any

from local.functions_host.host_json import QueueOptions, parse_host_json
from local.functions_host.polling import PollingBackOff
from local.functions_host.queue_listener import QueueListener
from local.functions_host.queue_port import QueueItem
from local.functions_host.queue_processor import QueueProcessor
from local.functions_host.settings import Settings
from tests.functions_host.memory_queue import MemoryQueue, MemoryStorage

PROCESSORS = 2
_LEASE_SECONDS = 600
_NOT_HOST_JSON = {"seconds", "create", "environment", "dequeuedBefore"}

Event = list[Any]


def options_of(settings: dict[str, Any]) -> QueueOptions:
    """The queue options of a scenario's settings, through host.json."""
    queues = {name: value for name, value in settings.items() if name not in _NOT_HOST_JSON}
    development = settings.get("environment") == "Development"
    document = {"version": "2.0", "extensions": {"queues": queues}}
    return parse_host_json(document, Settings({}), processors=PROCESSORS, development=development).queues


class QueueReplay:
    """One run of one scenario; `events` and `end` look like the recording's `events_ms` and `end`."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self._settings = scenario["settings"]
        self._messages = scenario["messages"]
        # The recording calls every queue Q; only this scenario listened to a poison queue.
        self._queue_name = "q-poison" if scenario["scenario"] == "poisonq" else "q"
        self._poison_name = "q-poison-poison" if scenario["scenario"] == "poisonq" else "q-poison"
        self._storage = MemoryStorage(self._trace_request)
        self._running = 0
        self.events: list[Event] = []
        self.end: list[list[Any]] = []

    async def run(self) -> None:
        self._fill()
        options = options_of(self._settings)
        queue = MemoryQueue(self._storage, self._queue_name)
        poison = MemoryQueue(self._storage, self._poison_name) if self._queue_name == "q" else None
        processor = QueueProcessor("traced", queue, poison, options, _LEASE_SECONDS, self._function, self._trace_log)
        back_off = PollingBackOff(options.max_polling_seconds, random.Random(7))
        stop = asyncio.Event()
        listening = asyncio.create_task(QueueListener(queue, processor, back_off, self._trace_log).run(stop))
        await asyncio.sleep(self._settings["seconds"])
        self._trace("stopping")
        stop.set()
        await listening
        self._trace("stopped")
        self.end = [self._state("Q", self._queue_name), self._state("Q-poison", self._poison_name)]

    def _fill(self) -> None:
        if self._settings.get("create", True):
            self._storage.queues[self._queue_name] = []
        for message in self._messages:
            for _ in range(message.get("times", 1)):
                self._storage.put(
                    self._queue_name,
                    message["text"],
                    ttl_seconds=message.get("ttl", 7 * 24 * 3600),
                    dequeue_count=self._settings.get("dequeuedBefore", 0),
                )

    async def _function(self, item: QueueItem, text: str) -> bool:
        self._running += 1
        self._trace("start", item.id, text, {"dequeueCount": item.dequeue_count, "running": self._running})
        await asyncio.sleep(float(text.removeprefix("sleep:")) if text.startswith("sleep:") else 0.001)
        self._running -= 1
        failed = text == "fail"
        self._trace("ended", "failed" if failed else "ok")
        return not failed

    def _trace_request(self, request: str, *details: object) -> None:
        if request in ("exists?", "send", "create-queue"):
            details = ("Q" if details[0] == self._queue_name else "Q-poison",)
        self._trace(request, *details)

    def _trace_log(self, event: str, /, level: int = 0, **fields: object) -> None:
        if event == "queue.received":
            self._trace("received", fields["count"])
        elif event == "queue.wait":
            self._trace("wait", float(str(fields["seconds"])) * 1000)
        elif event == "queue.undecodable":
            self._trace("undecodable", fields["message"])
        elif event == "queue.poison":
            self._trace("max-dequeue-count")
        elif event == "function.failed":
            self._trace("ended", "failed")
        elif event not in ("queue.missing", "queue.no_poison_queue"):
            raise AssertionError(f"the recording has nothing like {event} {fields}")

    def _trace(self, *event: object) -> None:
        self.events.append([asyncio.get_running_loop().time() * 1000, *event])

    def _state(self, label: str, queue: str) -> list[Any]:
        if queue not in self._storage.queues:
            return ["queue", label, "missing"]
        now = asyncio.get_running_loop().time()
        messages = self._storage.live(queue)
        visible = [message for message in messages if message.visible_at <= now]
        lives = [[message.text, f"{(message.expires_at - now) / 86_400:.2f}"] for message in visible]
        return ["queue", label, len(messages), lives]
