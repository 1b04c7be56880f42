"""The lines that HASTE's page shows its users, as HASTE's records keep them: a timestamp, a colon, a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from local.batch.iso8601 import parse_time
from local.demo.evidence import Record, Request

#: Where HASTE's records keep the lines of each kind of work.
LOG_FIELDS = {"imageryprep": "statusMessage", "training": "statusMessage", "inference": "inferenceStatusMessage"}
#: What HASTE's page says of a job that no pool can take now, and of one that has lost its node.
WAITING = re.compile("Waiting for capacity")
WAITING_AGAIN = re.compile("Interrupted.*, waiting to run again")
_TIMESTAMP_CHARACTERS = 32


@dataclass(frozen=True)
class Line:
    """One line; what a task printed below it is not part of it."""

    at: datetime
    text: str


def log_lines(record: Record, field: str) -> list[Line]:
    """All lines of a field, oldest first."""
    lines = [line for line in str(record.get(field) or "").splitlines() if line[:4].isdigit()]
    return [Line(parse_time(line[:_TIMESTAMP_CHARACTERS]), line[_TIMESTAMP_CHARACTERS:].lstrip(": ")) for line in lines]


def said(record: Record, request: Request, sentence: re.Pattern[str]) -> list[datetime]:
    """When HASTE's page has said so of a request."""
    return [line.at for line in log_lines(record, LOG_FIELDS[request.kind]) if sentence.fullmatch(line.text)]
