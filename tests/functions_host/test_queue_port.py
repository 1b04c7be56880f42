"""The Azure queue and the in-memory queue of these tests behave alike."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from azure.storage.queue.aio import QueueServiceClient

from local.certificates import Certificates
from local.functions_host.azure_queue import AzureQueue
from local.functions_host.queue_port import MessageGone, QueueItem, QueueMissing, QueuePort, StorageFailure
from local.stack.azurite import StorageAccount
from tests.functions_host.memory_queue import MemoryQueue, MemoryStorage

OpenQueue = Callable[[], AbstractAsyncContextManager[QueuePort]]


@pytest.fixture(params=["memory", "azure"])
def open_queue(request: pytest.FixtureRequest) -> OpenQueue:
    """Opens a queue port for a queue that does not exist yet."""
    if request.param == "memory":

        @asynccontextmanager
        async def in_memory() -> AsyncIterator[QueuePort]:
            yield MemoryQueue(MemoryStorage(), "jobs")

        return in_memory
    account: StorageAccount = request.getfixturevalue("storage_account")
    certificates: Certificates = request.getfixturevalue("certificates")

    @asynccontextmanager
    async def in_azurite() -> AsyncIterator[QueuePort]:
        trust = str(certificates.authority)
        async with QueueServiceClient.from_connection_string(
            account.connection_string, connection_verify=trust, retry_total=0
        ) as service:
            yield AzureQueue(service, "jobs")

    return in_azurite


async def receive_one(queue: QueuePort, visibility_seconds: int = 30) -> QueueItem:
    (item,) = await queue.receive(1, visibility_seconds)
    return item


def test_a_missing_queue_is_told_by_every_request(open_queue: OpenQueue) -> None:
    async def check() -> None:
        async with open_queue() as queue:
            assert await queue.exists() is False
            for request in (queue.receive(1, 30), queue.send("text")):
                with pytest.raises(QueueMissing):
                    await request

    asyncio.run(check())


def test_creating_a_queue_again_is_fine(open_queue: OpenQueue) -> None:
    async def check() -> None:
        async with open_queue() as queue:
            await queue.create()
            await queue.create()
            assert await queue.exists() is True

    asyncio.run(check())


@pytest.mark.parametrize("text", ["plain", "", " ", "<a b='c'>&amp;</a>", "tür 東京", '{"a": [1]}', "YWJj\nZGVm"])
def test_texts_pass_unchanged(open_queue: OpenQueue, text: str) -> None:
    async def check() -> None:
        async with open_queue() as queue:
            await queue.create()
            await queue.send(text)
            assert (await receive_one(queue)).text == text

    asyncio.run(check())


def test_one_receive_takes_no_more_than_asked(open_queue: OpenQueue) -> None:
    async def check() -> None:
        async with open_queue() as queue:
            await queue.create()
            for number in range(5):
                await queue.send(str(number))
            sizes = [len(await queue.receive(2, 30)) for _ in range(4)]
            assert sizes == [2, 2, 1, 0]

    asyncio.run(check())


def test_received_messages_carry_times_and_count(open_queue: OpenQueue) -> None:
    async def check() -> None:
        async with open_queue() as queue:
            await queue.create()
            await queue.send("text")
            item = await receive_one(queue)
            assert item.dequeue_count == 1
            assert (item.expiration_time - item.insertion_time).days == 7
            assert 25 <= (item.next_visible_time - item.insertion_time).total_seconds() <= 60
            assert "text" not in repr(item)

    asyncio.run(check())


def test_a_released_message_comes_back_with_its_text_and_a_higher_count(open_queue: OpenQueue) -> None:
    async def check() -> None:
        async with open_queue() as queue:
            await queue.create()
            await queue.send("text")
            first = await receive_one(queue)
            assert await queue.receive(1, 30) == []
            await queue.update(first.id, first.pop_receipt, 0)
            again = await receive_one(queue)
            assert (again.id, again.text, again.dequeue_count) == (first.id, "text", 2)

    asyncio.run(check())


def test_an_update_gives_the_only_receipt_that_counts(open_queue: OpenQueue) -> None:
    async def check() -> None:
        async with open_queue() as queue:
            await queue.create()
            await queue.send("text")
            item = await receive_one(queue)
            newest = await queue.update(item.id, item.pop_receipt, 30)
            for stale in (queue.delete(item.id, item.pop_receipt), queue.update(item.id, item.pop_receipt, 30)):
                with pytest.raises(MessageGone):
                    await stale
            await queue.delete(item.id, newest)
            with pytest.raises(MessageGone):
                await queue.delete(item.id, newest)

    asyncio.run(check())


def test_other_refusals_are_failures_without_the_services_text(
    storage_account: StorageAccount, certificates: Certificates
) -> None:
    async def check() -> None:
        trust = str(certificates.authority)
        async with QueueServiceClient(
            storage_account.queue_endpoint,
            credential={"account_name": storage_account.name, "account_key": "d3Jvbmc="},
            connection_verify=trust,
            retry_total=0,
        ) as service:
            with pytest.raises(StorageFailure, match=r"^4\d\d \w+$"):
                await AzureQueue(service, "jobs").exists()

    asyncio.run(check())
