"""Lets one host process among all that share a host id run a timer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob.aio import BlobLeaseClient, ContainerClient

from local.functions_host.azure_queue import describe_storage_error
from local.functions_host.log import EventLog
from local.functions_host.queue_port import StorageFailure

# The shortest lease storage grants: after a kill the timers of a dead host go on elsewhere within about 18 seconds.
# The real host's listener lock lasts a minute and is looked at once a minute.
LOCK_SECONDS = 15
RETRY_SECONDS = 3.0


class Lock(Protocol):
    """A lock that ends by itself unless renewed. Every method may raise StorageFailure."""

    async def acquire(self) -> bool: ...

    async def renew(self) -> bool:
        """False when another holder has it now."""
        ...

    async def release(self) -> None: ...


class BlobLock:
    """A lease on the blob `locks/<host id>/<name>` in the hosts' container, which is created when missing."""

    def __init__(self, container: ContainerClient, host_id: str, name: str) -> None:
        self._container = container
        self._blob = container.get_blob_client(f"locks/{host_id}/{name}")
        self._lease: BlobLeaseClient | None = None

    async def acquire(self) -> bool:
        try:
            try:
                self._lease = await self._blob.acquire_lease(LOCK_SECONDS)
            except ResourceNotFoundError:
                await self._create_blob()
                self._lease = await self._blob.acquire_lease(LOCK_SECONDS)
        except HttpResponseError as error:
            if error.status_code == 409:
                return False
            raise StorageFailure(describe_storage_error(error)) from None
        except AzureError as error:
            raise StorageFailure(describe_storage_error(error)) from None
        return True

    async def renew(self) -> bool:
        if self._lease is None:
            return False
        try:
            await self._lease.renew()
        except HttpResponseError as error:
            if error.status_code in (404, 409):
                return False
            raise StorageFailure(describe_storage_error(error)) from None
        except AzureError as error:
            raise StorageFailure(describe_storage_error(error)) from None
        return True

    async def release(self) -> None:
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            await lease.release()
        except AzureError as error:
            raise StorageFailure(describe_storage_error(error)) from None

    async def _create_blob(self) -> None:
        try:
            await self._container.create_container()
        except ResourceExistsError as error:
            if getattr(error, "error_code", None) != "ContainerAlreadyExists":
                raise
        try:
            await self._blob.upload_blob(b"", overwrite=False)
        except ResourceExistsError as error:
            if getattr(error, "error_code", None) not in ("BlobAlreadyExists", "LeaseIdMissing"):
                raise


async def run_while_locked(
    lock: Lock,
    work: Callable[[asyncio.Event], Awaitable[None]],
    stop: asyncio.Event,
    log: EventLog,
    name: str,
) -> None:
    """Run `work` whenever the lock is held, until `stop` is set.

    `work` gets an event that is set when it has to end, because of `stop` or because the lock was lost.
    """
    while not stop.is_set():
        try:
            acquired = await lock.acquire()
        except StorageFailure as error:
            log("singleton.failed", level=logging.ERROR, function=name, error=str(error))
            acquired = False
        if not acquired:
            log("singleton.waiting", level=logging.DEBUG, function=name)
            await _set_within(stop, RETRY_SECONDS)
            continue
        log("singleton.acquired", function=name)
        await _work_under_lock(lock, work, stop, log, name)


async def _work_under_lock(
    lock: Lock,
    work: Callable[[asyncio.Event], Awaitable[None]],
    stop: asyncio.Event,
    log: EventLog,
    name: str,
) -> None:
    end = asyncio.Event()
    working = asyncio.ensure_future(work(end))
    renewing = asyncio.create_task(_renew_until_lost(lock, log, name))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({working, renewing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    end.set()
    try:
        await working
    finally:
        lost = renewing.done()
        renewing.cancel()
        stopping.cancel()
        if lost:
            log("singleton.lost", level=logging.WARNING, function=name)
        else:
            await _release(lock, log, name)


async def _renew_until_lost(lock: Lock, log: EventLog, name: str) -> None:
    last_held = asyncio.get_running_loop().time()
    while True:
        await asyncio.sleep(LOCK_SECONDS / 3)
        try:
            if not await lock.renew():
                return
            last_held = asyncio.get_running_loop().time()
        except StorageFailure as error:
            log("singleton.failed", level=logging.ERROR, function=name, error=str(error))
            if asyncio.get_running_loop().time() - last_held > LOCK_SECONDS:
                return


async def _release(lock: Lock, log: EventLog, name: str) -> None:
    try:
        await lock.release()
    except StorageFailure as error:
        log("singleton.failed", level=logging.WARNING, function=name, error=str(error))


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting}, timeout=seconds)
    waiting.cancel()
