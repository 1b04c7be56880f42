"""One holder at a time runs the work; a dead holder's lock ends by itself, a lost lock ends the work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from azure.storage.blob.aio import BlobServiceClient

from local.certificates import Certificates
from local.functions_host.queue_port import StorageFailure
from local.functions_host.singleton import LOCK_SECONDS, RETRY_SECONDS, BlobLock, run_while_locked
from local.stack.azurite import StorageAccount
from tests.functions_host.virtual_time import run_in_virtual_time


@dataclass
class Lease:
    """What storage knows of a lock."""

    holder: object = None
    ends_at: float = 0.0
    renewable: bool = True


class MemoryLock:
    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self.failing = False

    async def acquire(self) -> bool:
        if self._lease.holder is not None and self._lease.ends_at > _time():
            return False
        self._lease.holder, self._lease.ends_at = self, _time() + LOCK_SECONDS
        return True

    async def renew(self) -> bool:
        if self.failing:
            raise StorageFailure("503 ServerBusy")
        if self._lease.holder is not self or not self._lease.renewable:
            return False
        self._lease.ends_at = _time() + LOCK_SECONDS
        return True

    async def release(self) -> None:
        if self._lease.holder is self:
            self._lease.holder = None


def _time() -> float:
    return asyncio.get_running_loop().time()


def _ignore(event: str, /, level: int = logging.INFO, **fields: object) -> None:
    """Takes events nobody looks at."""


class Worker:
    """Counts starts and ends of its work."""

    def __init__(self, lock: MemoryLock) -> None:
        self.stop = asyncio.Event()
        self.started: list[float] = []
        self.ended: list[float] = []
        self.task = asyncio.create_task(run_while_locked(lock, self._work, self.stop, _ignore, "tick"))

    async def _work(self, end: asyncio.Event) -> None:
        self.started.append(_time())
        await end.wait()
        self.ended.append(_time())

    async def stop_and_wait(self) -> None:
        self.stop.set()
        await self.task


def virtual(check: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await check()

    run_in_virtual_time(main())


def test_only_one_works_and_the_next_follows_a_stop_at_once() -> None:
    async def check() -> None:
        lease = Lease()
        first, second = Worker(MemoryLock(lease)), Worker(MemoryLock(lease))
        await asyncio.sleep(10 * LOCK_SECONDS)
        assert (len(first.started), len(second.started)) == (1, 0)
        await first.stop_and_wait()
        await asyncio.sleep(RETRY_SECONDS + 0.1)
        assert len(second.started) == 1
        await second.stop_and_wait()
        assert lease.holder is None

    virtual(check)


def test_a_killed_holder_is_followed_after_its_lock_ends() -> None:
    async def check() -> None:
        lease = Lease(holder="a killed host", ends_at=_time() + LOCK_SECONDS)
        worker = Worker(MemoryLock(lease))
        await asyncio.sleep(LOCK_SECONDS + RETRY_SECONDS + 0.1)
        assert len(worker.started) == 1
        assert worker.started[0] >= LOCK_SECONDS
        await worker.stop_and_wait()

    virtual(check)


def test_a_lost_lock_ends_the_work_and_is_sought_again() -> None:
    async def check() -> None:
        lease = Lease()
        worker = Worker(MemoryLock(lease))
        await asyncio.sleep(1)
        lease.renewable = False
        await asyncio.sleep(LOCK_SECONDS)
        assert worker.ended
        lease.renewable = True
        await asyncio.sleep(2 * LOCK_SECONDS)
        assert len(worker.started) >= 2
        await worker.stop_and_wait()

    virtual(check)


def test_renewals_that_fail_for_a_whole_lock_end_the_work() -> None:
    async def check() -> None:
        lock = MemoryLock(Lease())
        worker = Worker(lock)
        await asyncio.sleep(1)
        lock.failing = True
        await asyncio.sleep(LOCK_SECONDS / 2)
        assert not worker.ended
        await asyncio.sleep(2 * LOCK_SECONDS)
        assert worker.ended
        await worker.stop_and_wait()

    virtual(check)


@pytest.mark.parametrize("container_exists", [False, True])
def test_blob_locks_exclude_each_other(
    storage_account: StorageAccount, certificates: Certificates, container_exists: bool
) -> None:
    async def check() -> None:
        async with BlobServiceClient.from_connection_string(
            storage_account.connection_string, connection_verify=str(certificates.authority), retry_total=0
        ) as service:
            container = service.get_container_client("azure-webjobs-hosts")
            if container_exists:
                await container.create_container()
            first, second = (BlobLock(container, "host", "tick.Listener") for _ in range(2))
            assert await first.acquire() is True
            assert await second.acquire() is False
            assert await first.renew() is True
            await first.release()
            assert await second.acquire() is True
            assert await first.renew() is False
            await second.release()

    asyncio.run(check())
