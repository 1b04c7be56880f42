"""What Batch's error answers mean for the worker: by status and code, never by exception class."""

from __future__ import annotations

from shared.errors import Conflict, JobOver, NeedsOperator, QuotaReached, Refused, Transient, WorkerError
from shared.retry import Fault

JOB_ROLE = "Azure Batch Job Submitter"
POOL_ROLE = "Azure Batch Data Contributor"
#: Of a Batch job that takes no task any more.
OVER_CODES = frozenset({"JobCompleted", "JobBeingTerminated", "JobBeingDeleted", "JobNotActive", "JobNotFound"})


class BatchRefused(NeedsOperator):
    """Batch refuses for good, or denies access. Names status and code; never a URL or a body."""


def translated(fault: Fault, status: int | None, code: str | None) -> WorkerError:
    """The worker's own error for an answer."""
    what = f"Azure Batch answered {status or 'nothing'} {code or ''}".strip()
    if code in OVER_CODES:
        return JobOver(what)
    match fault:
        case Fault.TRANSIENT | Fault.STATE:
            return Transient(what)
        case Fault.QUOTA:
            return QuotaReached(code or "", what)
        case Fault.CHANGED:
            return Conflict(what)
        case Fault.PERMANENT:
            return Refused(what)
        case _:
            return BatchRefused(f"{what}: {_explained(status, code)}" if fault is Fault.DENIED else what)


def _explained(status: int | None, code: str | None) -> str:
    """What an operator has to look at when Batch denies access."""
    if status == 401 or code == "AuthenticationFailed":
        return (
            "the key or token is not for this account (AZURE_BATCH_URL, its tenant), or this machine's clock is wrong"
        )
    return (
        f"the app's identity lacks the role {JOB_ROLE} ({POOL_ROLE} where the worker manages pools) on the Batch "
        "account, or the account's network rules do not let this app in"
    )
