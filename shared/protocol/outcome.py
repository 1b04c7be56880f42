"""What a request comes to: the run that HASTE's records name, how its task ended, and the end that is fixed once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.kinds import Entity


class Result(StrEnum):
    """How a request ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Outcome:
    """The end of a request, fixed once.

    `sentence` is shown to users: ours, short, no secret. `at` is when the work ended (UTC).
    """

    result: Result
    sentence: str
    at: datetime


@dataclass(frozen=True)
class Run:
    """One request as HASTE's records name it. `task_id` and `job_id` are None if no task was ever placed."""

    entity: Entity
    request_id: str
    attempt: int = 1
    job_id: str | None = None
    task_id: str | None = None
    placed_at: datetime | None = None

    @property
    def own_task_id(self) -> str:
        """Id of its task. Raises ValueError if none was ever placed."""
        if self.task_id is None:
            raise ValueError(f"the run {self.request_id} has no task")
        return self.task_id


@dataclass(frozen=True)
class TaskEnd:
    """How a completed task ended by itself. `failure_code` is Batch's failureInfo code, None on success."""

    succeeded: bool
    exit_code: int | None
    failure_code: str | None
    ended_at: datetime
