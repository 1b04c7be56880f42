"""Answers as plain text: lines of facts, and tables whose columns are as wide as their widest cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from operate.explanation import Explanation
from operate.overview import Overview


def explanation(found: Explanation) -> str:
    """One job."""
    facts = [
        ("job", f"{found.kind} {found.project} {found.entity}"),
        ("state", found.state),
        ("why", found.why),
        ("waits for", found.waits_for),
        ("next look", _when(found.next_look)),
        ("HASTE shows", f"{found.haste.status}, task {found.haste.task_id or 'none'}" if found.haste else "no record"),
        ("request", f"{found.request.request_id}, asked {_when(found.request.asked)}" if found.request else ""),
        ("cancel asked", _when(found.cancel_asked)),
        ("losses", ", ".join(f"{pool}: {count}" for pool, count in (found.losses_by_pool or {}).items())),
    ]
    parts = ["\n".join(f"{name + ':':14}{value}" for name, value in facts if value)]
    parts += _table(
        "Attempts",
        ("attempt", "pool", "placed", "outcome", "in Batch", "chosen because it", "task", "Batch job"),
        (
            (one.number, one.pool, _when(one.placed_at), one.outcome, one.in_batch, one.why, one.task, one.batch_job)
            for one in found.attempts
        ),
    )
    parts += _table(
        "Pools that were not taken",
        ("attempt", "pool", "why"),
        ((one.number, *line.split(": ", 1)) for one in found.attempts for line in one.rejected),
    )
    parts += _table(
        "Lost runs",
        ("attempt", "pool", "started", "noticed"),
        ((one.attempt, one.pool_id, _when(one.started_at), _when(one.noticed_at)) for one in found.losses),
    )
    parts += _table(
        "Newer requests that take its place",
        ("request", "asked"),
        ((one.request_id, _when(one.asked)) for one in found.next_requests),
    )
    parts += _table(
        "Ends and cancels, newest first",
        ("message", "asked", "result", "ended", "attempts", "sentence"),
        (
            (one.message, _when(one.asked), one.result, _when(one.ended_at), one.attempts or "", one.sentence)
            for one in found.done
        ),
    )
    return "\n\n".join(parts)


def overview(found: Overview) -> str:
    """All live jobs."""
    parts = [f"{found.tenant}: {found.live} live jobs at {_when(found.at)}"]
    parts += _table(
        "Jobs by state", ("state", "pool", "jobs"), ((one.state, one.pool or "-", one.jobs) for one in found.counts)
    )
    parts += _table(
        "Jobs, oldest first",
        ("kind", "project", "entity", "state", "pool", "attempt", "asked", "next look", "why"),
        (
            (
                one.kind,
                one.project,
                one.entity,
                f"{one.state}, not wanted any more" if one.is_unwanted else one.state,
                one.pool or "-",
                one.attempt,
                _when(one.asked),
                _when(one.next_look) or "every run",
                one.why,
            )
            for one in found.jobs
        ),
    )
    if found.live > len(found.jobs):
        parts.append(f"... and {found.live - len(found.jobs)} more (--most {found.live})")
    parts += _table(
        "Pools that come last",
        ("pool", "until", "why"),
        ((one.pool, _when(one.until) or "-", one.why) for one in found.pools),
    )
    parts += _table(
        "Rejected messages",
        ("queue", "messages", "newest"),
        ((one.queue, one.messages, _when(one.newest)) for one in found.rejected),
    )
    return "\n\n".join([*parts, *found.faults])


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The table, or nothing if it has no rows."""
    cells = [list(head), *([" ".join(str(cell).split()) for cell in row] for row in rows)]
    if len(cells) == 1:
        return []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return ["\n".join([title, *(f"  {line}" for line in lines)])]


def _when(at: datetime | str | None) -> str:
    if isinstance(at, datetime):
        return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    return at or ""
