"""What the table shows: one row per request, from HASTE's records, Batch's events and, for the reasons, the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from local.demo.evidence import STATUS_FIELDS, Record, Request

_PROGRESS_FIELDS = {
    "imageryprep": "progressPct",
    "training": "progressPct",
    "inference": "inferenceProgressPct",
}
_LOG_FIELDS = {"imageryprep": "statusMessage", "training": "statusMessage", "inference": "inferenceStatusMessage"}
_TIMESTAMP_CHARACTERS = 32


@dataclass(frozen=True)
class Row:
    """One request. `progress_percent` is HASTE's."""

    work: str
    entity_id: str
    state: str
    pool: str = "-"
    attempt: int = 1
    progress_percent: float = 0.0
    reason: str = ""


def row(
    request: Request,
    before: Row | None,
    record: Record,
    live: Iterable[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
) -> Row:
    """The row as it is now. `before` is what it showed last: a request's end stays as it was."""
    work = f"{request.kind}, by itself" if request.follows else request.kind
    last = before or Row(work, request.entity_id, "asked for")
    if request.shown_at is not None and last.state == "Processed":
        return last
    shown = replace(
        last,
        progress_percent=float(record.get(_PROGRESS_FIELDS[request.kind]) or 0.0),
        reason=_last_line(request, record),
    )
    mine = next((entry for entry in live if _is_about(entry, request)), None)
    if mine is None:
        return replace(shown, state=str(record.get(STATUS_FIELDS[request.kind]) or last.state))
    placed = mine.get("placement") or {}
    return replace(
        shown,
        state=_state(str(mine["state"]), placed.get("task_id"), events),
        pool=placed.get("pool_id") or "-",
        attempt=int(mine["attempt"]),
        reason=str(mine.get("reason") or shown.reason),
    )


def _is_about(entry: Mapping[str, Any], request: Request) -> bool:
    entity = entry["entity"]
    return (entity["kind"], entity["entity_id"]) == (request.kind, request.entity_id)


def _state(state: str, task_id: str | None, events: Sequence[Mapping[str, Any]]) -> str:
    """The ledger's word; while the attempt is placed, whether Batch runs it."""
    if state != "placed":
        return state
    mine = [
        event["event"] for event in events if event.get("task") == task_id and str(event["event"]).startswith("task_")
    ]
    return {"task_started": "running", "task_completed": "ended"}.get(mine[-1] if mine else "", "queued")


def _last_line(request: Request, record: Record) -> str:
    """The text of the newest line with a timestamp, as HASTE's page shows it."""
    lines = [line for line in str(record.get(_LOG_FIELDS[request.kind]) or "").splitlines() if line[:4].isdigit()]
    return lines[-1][_TIMESTAMP_CHARACTERS:].lstrip(": ") if lines else ""
