"""The job protocol's decisions: (what the ledger says, what was observed) -> the next step, and why.

Pure functions on frozen values. `shared/requests/driver.py` observes and acts; nothing else decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, auto

from shared.protocol.outcome import Outcome, Result
from shared.protocol.record import Done, EndReason, Record, Request, State

# --- a message meets the ledger -------------------------------------------------------------------------------------


class Accept(StrEnum):
    """What a start message leads to."""

    CREATE = auto()
    CONTINUE = auto()
    ACKNOWLEDGE = auto()
    LIST_DONE = auto()
    SUPERSEDED = auto()
    ADD_NEXT = auto()


def accept(record: Record | None, request: Request) -> Accept:
    """A start message meets the entity's live record."""
    if record is None:
        return Accept.CREATE
    if record.request.request_id == request.request_id:
        return Accept.CONTINUE if record.state in (State.WAITING, State.PLACED) else Accept.ACKNOWLEDGE
    if any(waiting.request_id == request.request_id for waiting in record.next):
        return Accept.ACKNOWLEDGE
    return Accept.LIST_DONE


def accept_beside(record: Record, request: Request, done: Iterable[Done]) -> Accept:
    """A start message meets another request's record; `done` was listed after the record was read."""
    ends = [entry for entry in done if not entry.is_cancel]
    if any(entry.entry_id == request.request_id for entry in ends):
        return Accept.ACKNOWLEDGE
    known = {one.request_id: one.order for one in (record.request, *record.next)}
    known |= {entry.entry_id: entry.order for entry in ends}
    is_older = any(request.order < order and not request.follows(other) for other, order in known.items())
    return Accept.SUPERSEDED if is_older else Accept.ADD_NEXT


class Cancel(StrEnum):
    """What a cancel message leads to, its entry being written already."""

    FLAG = auto()
    LATER = auto()
    ACKNOWLEDGE = auto()
    REASSERT = auto()


def cancel(record: Record | None, asked: datetime) -> Cancel:
    """A cancel message meets the entity's live record. Within one clock tick the cancel applies.

    A second cancel counts again: HASTE's API saves its record late after each of them.
    """
    if record is None:
        return Cancel.REASSERT
    is_known = record.cancel_asked is not None and asked <= record.cancel_asked
    if asked < record.request.asked or is_known:
        return Cancel.ACKNOWLEDGE
    return Cancel.LATER if record.state is State.FINISHING else Cancel.FLAG


# --- a record meets the world ---------------------------------------------------------------------------------------


class Seen(StrEnum):
    """What Batch says about the attempt's task."""

    ABSENT = auto()
    LIVE = auto()
    ENDED_BY_ITSELF = auto()
    ENDED_WITH_SUCCESS = auto()
    ENDED_OTHERWISE = auto()
    JOB_OVER = auto()
    READ_FAILED = auto()
    NOT_JUDGED_YET = auto()
    """it has failed, and whether by itself or because of its node is not known yet"""


class Do(StrEnum):
    """The next step for a record."""

    STAY = auto()
    PLACE = auto()
    FINISH = auto()
    FINISH_REAL = auto()
    CREATE_TASK = auto()
    SHOW_PROGRESS = auto()
    END = auto()
    TERMINATE = auto()
    SPEND_ID = auto()
    NEXT_ATTEMPT = auto()


@dataclass(frozen=True)
class Step:
    """A decision. FINISH has a `result`, or the `outcome` of an end that was found in the ledger; END an `end_reason`.

    Nothing else has one of them (ValueError).
    """

    do: Do
    why: str
    result: Result | None = None
    outcome: Outcome | None = None
    end_reason: EndReason | None = None

    def __post_init__(self) -> None:
        """Refuse a step that says too little or too much."""
        ends = (self.result is not None) + (self.outcome is not None)
        if ends != (self.do is Do.FINISH) or (self.end_reason is not None) is not (self.do is Do.END):
            raise ValueError(f"no step is {self}")

    @property
    def ends_as(self) -> Result:
        """The result of a FINISH for which no outcome was found. Raises ValueError for any other step."""
        if self.result is None:
            raise ValueError(f"{self.do} has no result")
        return self.result

    @property
    def ends_because(self) -> EndReason:
        """The reason of an END. Raises ValueError for any other step."""
        if self.end_reason is None:
            raise ValueError(f"{self.do} has no reason to end")
        return self.end_reason


def leave_waiting(record: Record, done: Iterable[Done]) -> Step:
    """May this request be placed? `done` was listed after this version of the record was read."""
    entries = list(done)
    mine = record.request
    for entry in entries:
        if entry.outcome is not None and entry.entry_id == mine.request_id:
            return Step(Do.FINISH, "this request has ended before", outcome=entry.outcome)
    if record.is_taken_over:
        # its task is in Batch already: placed first, and ended from there if it is no longer wanted
        return Step(Do.PLACE, "taken over from HASTE's own app")
    if any(not entry.is_cancel and entry.order > mine.order and not mine.follows(entry.entry_id) for entry in entries):
        return Step(Do.FINISH, "a newer request has ended", Result.SUPERSEDED)
    if record.cancel_asked is not None or any(entry.is_cancel and entry.asked >= mine.asked for entry in entries):
        return Step(Do.FINISH, "cancelled before it was placed", Result.CANCELLED)
    if record.next:
        return Step(Do.FINISH, "a newer request waits", Result.SUPERSEDED)
    return Step(Do.PLACE, "nothing speaks against it")


@dataclass(frozen=True)
class Verdict:
    """Whether a live attempt should be ended: None = let it run. Made by `shared/pools/recovery.py`."""

    end_reason: EndReason | None = None
    why: str = ""


def leave_placed(record: Record, seen: Seen, verdict: Verdict) -> Step:
    """An attempt that has a placement."""
    unwanted = EndReason.CANCEL if record.cancel_asked is not None else EndReason.NEXT if record.next else None
    match seen:
        case Seen.READ_FAILED:
            return Step(Do.STAY, "Batch did not answer")
        case Seen.NOT_JUDGED_YET:
            return Step(Do.STAY, "whether its program or its node failed is not known yet")
        case Seen.ENDED_BY_ITSELF | Seen.ENDED_WITH_SUCCESS:
            return Step(Do.FINISH_REAL, "the task has ended by itself")
        case Seen.ENDED_OTHERWISE:
            return Step(Do.END, "the task was ended by somebody or by its node", end_reason=EndReason.MOVE)
        case Seen.JOB_OVER:
            return Step(Do.END, "the Batch job is over", end_reason=unwanted or EndReason.MOVE)
        case _ if unwanted:
            return Step(Do.END, f"no longer wanted ({unwanted})", end_reason=unwanted)
        case Seen.ABSENT:
            return Step(Do.CREATE_TASK, "not in Batch: the same id is created again")
        case _ if verdict.end_reason:
            return Step(Do.END, verdict.why, end_reason=verdict.end_reason)
        case _:
            return Step(Do.SHOW_PROGRESS, "live")


def leave_ending(record: Record, seen: Seen, budget_left: bool) -> Step:
    """An attempt that is being ended: left only when its task id is seen completed, so that the id is spent."""
    match seen:
        case Seen.READ_FAILED | Seen.NOT_JUDGED_YET:
            return Step(Do.STAY, "Batch did not answer")
        case Seen.LIVE:
            return Step(Do.TERMINATE, "still live")
        case Seen.ABSENT:
            return Step(Do.SPEND_ID, "not in Batch: its id must be spent")
        case Seen.ENDED_WITH_SUCCESS:
            return Step(Do.FINISH_REAL, "it had succeeded by itself")
        case _ if record.cancel_asked is not None:
            return Step(Do.FINISH, "cancelled", Result.CANCELLED)
        case _ if record.next:
            return Step(Do.FINISH, "a newer request waits", Result.SUPERSEDED)
        case _ if record.end_reason is EndReason.MOVE and budget_left:
            return Step(Do.NEXT_ATTEMPT, record.reason or "moved")
        case _:
            return Step(Do.FINISH, record.reason or "given up", Result.FAILED)
