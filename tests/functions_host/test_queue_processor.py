"""What becomes of a message when storage or the function misbehaves; the usual lives are in the recordings."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from local.functions_host.host_json import QueueOptions, parse_host_json
from local.functions_host.queue_encoding import UndecodableText, decode_text, encode_text
from local.functions_host.queue_port import MessageGone, QueueItem, QueuePort, StorageFailure
from local.functions_host.queue_processor import QueueProcessor
from local.functions_host.settings import Settings
from tests.functions_host.memory_queue import MemoryQueue, MemoryStorage
from tests.functions_host.virtual_time import run_in_virtual_time

LEASE_SECONDS = 600
Function = Callable[[QueueItem, str], Awaitable[bool]]


def options() -> QueueOptions:
    document = {"version": "2.0", "extensions": {"queues": {"messageEncoding": "none"}}}
    return parse_host_json(document, Settings({}), processors=1, development=True).queues


class FailingQueue(MemoryQueue):
    """Fails the next requests of a kind with the errors given."""

    def __init__(self, storage: MemoryStorage, name: str) -> None:
        super().__init__(storage, name)
        self.update_errors: list[Exception] = []
        self.delete_errors: list[Exception] = []
        self.update_moments: list[float] = []

    async def update(self, message_id: str, pop_receipt: str, visibility_seconds: int) -> str:
        self.update_moments.append(asyncio.get_running_loop().time())
        if self.update_errors:
            raise self.update_errors.pop(0)
        return await super().update(message_id, pop_receipt, visibility_seconds)

    async def delete(self, message_id: str, pop_receipt: str) -> None:
        if self.delete_errors:
            raise self.delete_errors.pop(0)
        await super().delete(message_id, pop_receipt)


class Bench:
    """One message in a queue and a processor for it; `events` holds the names of logged events."""

    def __init__(self, function: Function) -> None:
        self.events: list[str] = []
        self.storage = MemoryStorage()
        self.storage.queues = {"jobs": []}
        self.queue = FailingQueue(self.storage, "jobs")
        poison: QueuePort = MemoryQueue(self.storage, "jobs-poison")
        self.processor = QueueProcessor("fn", self.queue, poison, options(), LEASE_SECONDS, function, self._log)

    async def process(self, text: str = "text") -> None:
        self.storage.put("jobs", text)
        (item,) = await self.queue.receive(1, LEASE_SECONDS)
        await self.processor.process(item, text.encode())

    def _log(self, event: str, /, level: int = logging.INFO, **fields: object) -> None:
        assert "text" not in fields.values(), "a message body must not be logged"
        self.events.append(event)


def running_for(seconds: float, *, succeeds: bool = True) -> Function:
    async def function(_item: QueueItem, _text: str) -> bool:
        await asyncio.sleep(seconds)
        return succeeds

    return function


def test_failed_renewals_come_sooner_and_sooner_until_one_works() -> None:
    async def check() -> None:
        bench = Bench(running_for(700))
        bench.queue.update_errors = [StorageFailure("503 ServerBusy")] * 4
        await bench.process()
        # 300 s, then half the interval each time but never below a tenth of the lease, then the usual interval.
        assert bench.queue.update_moments == pytest.approx([300, 450, 525, 585, 645], abs=1)
        assert bench.storage.queues["jobs"] == []

    run_in_virtual_time(check())


def test_a_lost_lease_is_not_renewed_again_and_the_message_is_left_to_its_new_holder() -> None:
    async def check() -> None:
        bench = Bench(running_for(1300))
        bench.queue.update_errors = [MessageGone("PopReceiptMismatch")]
        bench.queue.delete_errors = [MessageGone("PopReceiptMismatch")]
        await bench.process()
        assert len(bench.queue.update_moments) == 1
        assert bench.events == ["queue.lease_lost", "queue.message_gone"]
        assert len(bench.storage.queues["jobs"]) == 1

    run_in_virtual_time(check())


def test_a_message_that_cannot_be_deleted_comes_back_after_its_lease() -> None:
    async def check() -> None:
        bench = Bench(running_for(1))
        bench.queue.delete_errors = [StorageFailure("500 InternalError")]
        await bench.process()
        assert bench.events == ["queue.storage_failure"]
        assert await bench.queue.receive(1, 30) == []
        await asyncio.sleep(LEASE_SECONDS)
        assert [item.dequeue_count for item in await bench.queue.receive(1, 30)] == [2]

    run_in_virtual_time(check())


def test_a_message_is_not_deleted_before_its_poison_copy_is_safe() -> None:
    async def check() -> None:
        bench = Bench(running_for(1, succeeds=False))
        bench.storage.queues["jobs-poison"] = []
        bench.queue.delete_errors = [StorageFailure("500 InternalError")]
        bench.storage.put("jobs", "text", dequeue_count=4)
        (item,) = await bench.queue.receive(1, LEASE_SECONDS)
        await bench.processor.process(item, b"text")
        assert [message.text for message in bench.storage.queues["jobs-poison"]] == ["text"]
        assert len(bench.storage.queues["jobs"]) == 1

    run_in_virtual_time(check())


@pytest.mark.parametrize(
    ("text", "body"),
    [("b2s=", b"ok"), (" b2s= ", b"ok"), ("YWJj\nZGVm", b"abcdef"), ("", b""), ("//79", b"\xff\xfe\xfd")],
)
def test_base64_is_read_with_blanks(text: str, body: bytes) -> None:
    assert decode_text(text, base64_encoded=True) == body


@pytest.mark.parametrize("text", ["plain {} text", "b2s", "b2s=b2s=", "b=2s", "b2s-", "YWJj\u00a0"])
def test_other_texts_are_not_base64(text: str) -> None:
    with pytest.raises(UndecodableText):
        decode_text(text, base64_encoded=True)


@pytest.mark.parametrize("base64_encoded", [True, False])
def test_encoding_and_decoding_are_inverse(base64_encoded: bool) -> None:
    text = encode_text("tür".encode(), base64_encoded=base64_encoded)
    assert decode_text(text, base64_encoded=base64_encoded) == "tür".encode()
