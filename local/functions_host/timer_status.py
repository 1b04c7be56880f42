"""When a timer last fired and fires next, kept over restarts in a blob."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob.aio import ContainerClient

from local.functions_host.azure_queue import describe_storage_error
from local.functions_host.queue_port import StorageFailure
from local.functions_host.schedule import Schedule

_NEVER_TEXT = "0001-01-01T00:00:00"


@dataclass(frozen=True)
class ScheduleStatus:
    """Aware times; `last` and `last_updated` are None before the first run."""

    last: datetime | None
    next: datetime
    last_updated: datetime | None

    def to_json(self) -> dict[str, str]:
        """The form of the blob and of what the function is told; a time that never was is in year 1."""
        return {
            "Last": self.last.isoformat() if self.last else _NEVER_TEXT,
            "Next": self.next.isoformat(),
            "LastUpdated": self.last_updated.isoformat() if self.last_updated else _NEVER_TEXT,
        }

    @classmethod
    def from_json(cls, document: dict[str, str]) -> "ScheduleStatus":
        """Read the blob's form. Raises KeyError or ValueError when it is none."""
        last, following, updated = (_read_time(document[name]) for name in ("Last", "Next", "LastUpdated"))
        if following is None:
            raise ValueError("Next is missing")
        return cls(last, following, updated)


class StatusStore(Protocol):
    """Keeps one timer's status; both methods may raise StorageFailure."""

    async def read(self) -> ScheduleStatus | None: ...

    async def write(self, status: ScheduleStatus) -> None: ...


class BlobStatusStore:
    """The blob `timers/<host id>/<function>/status` in the hosts' container."""

    def __init__(self, container: ContainerClient, host_id: str, function: str) -> None:
        self._blob = container.get_blob_client(f"timers/{host_id}/{function}/status")

    async def read(self) -> ScheduleStatus | None:
        """The stored status; None when there is none or it is not readable."""
        try:
            content = await (await self._blob.download_blob()).readall()
            return ScheduleStatus.from_json(json.loads(content))
        except ResourceNotFoundError:
            return None
        except AzureError as error:
            raise StorageFailure(describe_storage_error(error)) from None
        except (KeyError, ValueError, TypeError):
            return None

    async def write(self, status: ScheduleStatus) -> None:
        try:
            await self._blob.upload_blob(json.dumps(status.to_json()).encode(), overwrite=True)
        except AzureError as error:
            raise StorageFailure(describe_storage_error(error)) from None


def next_occurrence(schedule: Schedule, after: datetime) -> datetime:
    """The schedule's next occurrence in local time; both times are aware."""
    found = schedule.next_occurrence(after.astimezone().replace(tzinfo=None))
    aware = found.astimezone()
    # The hour that comes twice in autumn: its first pass lies before `after`, so the second one is meant.
    return found.replace(fold=1).astimezone() if aware <= after else aware


def check_past_due(schedule: Schedule, status: ScheduleStatus, now: datetime) -> tuple[ScheduleStatus, bool]:
    """Whether an occurrence was missed while no host ran, and the status to go on with.

    A stored `next` that the schedule would not give was made by another schedule: it is computed anew and never counts
    as missed.
    """
    since = status.last or status.last_updated
    expected = next_occurrence(schedule, since) if since else status.next
    if abs(status.next - expected) >= timedelta(milliseconds=1):
        updated = since
        if now > expected:
            expected, updated = next_occurrence(schedule, now), now
        status = ScheduleStatus(None, expected, updated)
    return status, now > status.next


def _read_time(text: str) -> datetime | None:
    value = datetime.fromisoformat(text)
    if value.year == 1:
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
