import json
from pathlib import Path
from typing import Any

import pytest
from azure.storage.queue import QueueServiceClient

from local.producer import HasteApi, QueueNames
from local.producer.records import Record
from local.stack.azurite import StorageAccount

SAMPLES = Path(__file__).parents[1] / "haste_samples"
QUEUES = QueueNames("local-image-queue", "local-train-queue", "local-inference-queue", "local-stats-queue")


def sample(name: str) -> Record:
    return dict(json.loads((SAMPLES / f"{name}.json").read_text()))


class Account:
    """Looks at the storage account as a reader of HASTE's queues and records does."""

    def __init__(self, account: StorageAccount) -> None:
        self.connection_string = account.connection_string
        self.queues = QueueServiceClient.from_connection_string(account.connection_string)

    def texts(self, queue: str) -> list[str]:
        """Bodies of the visible messages, as they are on the wire; the messages stay."""
        if queue not in {found.name for found in self.queues.list_queues()}:
            return []
        return [str(message.content) for message in self.queues.get_queue_client(queue).peek_messages(32)]

    def message(self, queue: str) -> Record:
        """The only visible message."""
        (text,) = self.texts(queue)
        return dict(json.loads(text))

    def count(self, queue: str) -> int:
        """How many messages there are, hidden ones included."""
        return int(self.queues.get_queue_client(queue).get_queue_properties().approximate_message_count or 0)


@pytest.fixture
def account(storage_account: StorageAccount) -> Account:
    return Account(storage_account)


@pytest.fixture
def api(account: Account) -> HasteApi:
    return HasteApi.from_connection_string(account.connection_string, queue_names=QUEUES)


class Journal:
    """Notes the order of what a route sends and stores, and lets it happen."""

    def __init__(self, api: HasteApi, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.delays: dict[str, int] = {}
        put, save = api.storage.put_message, api.storage.save

        def put_message(queue_name: str, record: Record, *, delay_seconds: int) -> None:
            self.steps.append(f"put {queue_name}")
            self.delays[queue_name] = delay_seconds
            put(queue_name, record, delay_seconds=0)

        def save_record(blob_name: str, record: Record) -> Any:
            self.steps.append(f"save {blob_name.split('/')[1].split('_')[0]}")
            return save(blob_name, record)

        monkeypatch.setattr(api.storage, "put_message", put_message)
        monkeypatch.setattr(api.storage, "save", save_record)


@pytest.fixture
def journal(api: HasteApi, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """The journal of ``api``; messages are visible at once, the delay they would have had is noted."""
    return Journal(api, monkeypatch)
