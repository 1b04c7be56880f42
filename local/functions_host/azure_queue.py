"""The queue port on Azure Storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError
from azure.storage.queue import QueueMessage
from azure.storage.queue.aio import QueueServiceClient

from local.functions_host.queue_port import MessageGone, QueueItem, QueueMissing, StorageFailure

_QUEUE_MISSING = ("QueueNotFound", "QueueBeingDeleted", "QueueDisabled")
_MESSAGE_GONE = ("PopReceiptMismatch", "MessageNotFound")


class AzureQueue:
    """One queue of a storage account; texts pass as they are, the encoding is the host's business."""

    def __init__(self, service: QueueServiceClient, name: str) -> None:
        self._client = service.get_queue_client(name)

    @property
    def name(self) -> str:
        return str(self._client.queue_name)

    async def exists(self) -> bool:
        try:
            with _storage_errors():
                await self._client.get_queue_properties()
        except QueueMissing:
            return False
        return True

    async def receive(self, max_messages: int, visibility_seconds: int) -> list[QueueItem]:
        pages = self._client.receive_messages(
            messages_per_page=max_messages, visibility_timeout=visibility_seconds
        ).by_page()
        with _storage_errors():
            # Only the first page: going on would ask again until the queue is empty.
            async for page in pages:
                return [_item(message) async for message in page]
        return []

    async def update(self, message_id: str, pop_receipt: str, visibility_seconds: int) -> str:
        with _storage_errors():
            updated = await self._client.update_message(
                message_id, pop_receipt=pop_receipt, visibility_timeout=visibility_seconds
            )
        return str(updated.pop_receipt)

    async def delete(self, message_id: str, pop_receipt: str) -> None:
        with _storage_errors():
            await self._client.delete_message(message_id, pop_receipt=pop_receipt)

    async def send(self, text: str) -> None:
        with _storage_errors():
            await self._client.send_message(text)

    async def create(self) -> None:
        with _storage_errors():
            try:
                await self._client.create_queue()
            except ResourceExistsError as error:
                if error.error_code != "QueueAlreadyExists":  # type: ignore[attr-defined]
                    raise


def describe_storage_error(error: AzureError) -> str:
    """Status and error code, or the kind of failure; the full text may hold parts of a signature."""
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        code = getattr(error, "error_code", None) or error.reason
        return f"{error.status_code} {getattr(code, 'value', code)}"
    return type(error).__name__


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except AzureError as error:
        code = getattr(error, "error_code", None)
        if code in _QUEUE_MISSING:
            raise QueueMissing(str(code)) from None
        if code in _MESSAGE_GONE:
            raise MessageGone(str(code)) from None
        raise StorageFailure(describe_storage_error(error)) from None


def _item(message: QueueMessage) -> QueueItem:
    return QueueItem(
        id=str(message.id),
        pop_receipt=str(message.pop_receipt),
        text=message.content or "",
        dequeue_count=int(message.dequeue_count or 0),
        insertion_time=_utc(message.inserted_on),
        expiration_time=_utc(message.expires_on),
        next_visible_time=_utc(message.next_visible_on),
    )


def _utc(value: datetime | None) -> datetime:
    if value is None:
        return datetime.max.replace(tzinfo=UTC)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
