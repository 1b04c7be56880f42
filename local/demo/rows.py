"""What the table shows: one row per request, from HASTE's records, Batch's events and, for the reasons, the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from local.demo.evidence import STATUS_FIELDS, Record, Request
from local.demo.haste_log import LOG_FIELDS, log_lines

_PROGRESS_FIELDS = {
    "imageryprep": "progressPct",
    "training": "progressPct",
    "inference": "inferenceProgressPct",
}


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
    work = request.title or (f"{request.kind}, by itself" if request.follows else request.kind)
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
        reason=_reason(mine, placed) or shown.reason,
    )


def with_short_names(shown: Row, names: Mapping[str, str]) -> Row:
    """The row with pools called by `names`, from their ids, for lines that a person can read."""
    return replace(shown, pool=shortened(shown.pool, names), reason=shortened(shown.reason, names))


def shortened(text: str, names: Mapping[str, str]) -> str:
    """The text with pools called by `names`, from their ids."""
    for pool_id, name in names.items():
        text = text.replace(pool_id, name)
    return text


def _reason(entry: Mapping[str, Any], placed: Mapping[str, Any]) -> str:
    """The ledger's reason; while that is why the pool was chosen, why the others were not, too."""
    reason = str(entry.get("reason") or "")
    is_choice = bool(reason) and reason == placed.get("why")
    return "; ".join((reason, *placed.get("rejected", ()))) if is_choice else reason


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
    """The newest line that HASTE's page shows."""
    lines = log_lines(record, LOG_FIELDS[request.kind])
    return lines[-1].text if lines else ""
