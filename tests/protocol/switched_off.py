"""The worker with one rule of the protocol taken out: what the interleaving tests must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from shared.batch.client import AzureBatch
from shared.haste.workload import Shown
from shared.protocol import table
from shared.protocol.outcome import Result
from shared.protocol.record import Done, EndReason, Record, Request
from shared.protocol.table import Accept, Do, Seen, Step, Verdict
from shared.requests import accept

Switch = Callable[[pytest.MonkeyPatch], None]


def look_at_done_before_placing(patch: pytest.MonkeyPatch) -> None:
    """Rule 2: whoever takes a record out of waiting lists the ends first."""
    patch.setattr(table, "leave_waiting", lambda _record, _done: Step(Do.PLACE, "did not look"))


def spend_the_id(patch: pytest.MonkeyPatch) -> None:
    """Rule 6: an absent id is spent before its attempt is left."""
    real = table.leave_ending

    def leave_ending(record: Record, seen: Seen, budget_left: bool) -> Step:
        return real(record, Seen.ENDED_OTHERWISE if seen is Seen.ABSENT else seen, budget_left)

    patch.setattr(table, "leave_ending", leave_ending)


def same_id_when_absent(patch: pytest.MonkeyPatch) -> None:
    """Rule 4: absence is never attempt + 1."""
    real = table.leave_placed

    def leave_placed(record: Record, seen: Seen, verdict: Verdict) -> Step:
        if seen is Seen.ABSENT:
            return Step(Do.END, "absent: counted as gone", end_reason=EndReason.MOVE)
        return real(record, seen, verdict)

    patch.setattr(table, "leave_placed", leave_placed)
    spend_the_id(patch)


def terminate_never_delete(patch: pytest.MonkeyPatch) -> None:
    """Rule 6: tasks are terminated, never deleted, so that Batch refuses their id."""
    patch.setattr(AzureBatch, "terminate_task", lambda self, job, task: self._client.delete_task(job, task))
    spend_the_id(patch)


def order_of_requests(patch: pytest.MonkeyPatch) -> None:
    """Rule 1: a request older than the newest known one ends as superseded."""
    real = table.accept_beside

    def accept_beside(record: Record, request: Request, done: Iterable[Done]) -> Accept:
        decision = real(record, request, done)
        return Accept.ADD_NEXT if decision is Accept.SUPERSEDED else decision

    patch.setattr(table, "accept_beside", accept_beside)
    real_leave = table.leave_waiting

    def leave_waiting(record: Record, done: Iterable[Done]) -> Step:
        step = real_leave(record, done)
        return Step(Do.PLACE, "") if step.result is Result.SUPERSEDED and not record.next else step

    patch.setattr(table, "leave_waiting", leave_waiting)


def cancel_entry_first(patch: pytest.MonkeyPatch) -> None:
    """Rule 10: a cancel leaves its entry in the ledger before it looks for a record."""

    def cancel(worker: Any, entity: Any, cancel_id: str, asked: Any) -> None:
        version = worker.ledger.read(entity.key)
        if version is not None and table.cancel(version.record, asked) is table.Cancel.FLAG:
            from dataclasses import replace

            worker.ledger.replace(version, replace(version.record, cancel_asked=asked))

    patch.setattr(accept, "cancel", cancel)


def guard_haste(patch: pytest.MonkeyPatch) -> None:
    """Rule 8: progress never overwrites Cancelled, an end, or a newer run."""

    def always(_record: Record, _done: Iterable[Done], _shown: Shown) -> bool:
        return True

    patch.setattr("shared.requests.haste_records.may_show_progress", always)


def reassert_the_end(patch: pytest.MonkeyPatch) -> None:
    """Rules 7 and 8: after HASTE's late save the end is written once more."""
    calls: dict[str, int] = {}
    from shared.haste.visibility import Written
    from shared.requests.haste_records import HasteRecords

    real = HasteRecords.show_end

    def once(self: HasteRecords, entity: Any, record: Record | None) -> Written:
        key = f"{id(self)} {record.request.request_id if record else 'cancel'}"
        calls[key] = calls.get(key, 0) + 1
        return real(self, entity, record) if calls[key] == 1 else Written.NOT

    patch.setattr(HasteRecords, "show_end", once)


#: Each rule, and the seed from which schedules are tried: those that need a rare one start near it.
RULES: dict[str, tuple[Switch, int]] = {
    "look": (look_at_done_before_placing, 0),
    "spend": (spend_the_id, 0),
    "same id": (same_id_when_absent, 100),
    "never delete": (terminate_never_delete, 0),
    "order": (order_of_requests, 0),
    "cancel entry": (cancel_entry_first, 0),
    "guard": (guard_haste, 1250),
    "reassert": (reassert_the_end, 0),
}
