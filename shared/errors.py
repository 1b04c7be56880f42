"""Everything haste-worker raises on purpose.

WorkerError
|-- ConfigurationError   an app setting is missing or wrong; names every one of them
|-- InvalidMessage       a queue message that can never be accepted; names field, value and rule
|-- Refused              this request can never run; carries a sentence that is safe to show to users
|-- NotThere             a HASTE record is not there (yet)
|-- JobOver              a Batch job is completed, being deleted, or gone: nobody can add a task to it
|-- Conflict             somebody else wrote first: stop, leave the message, look again later
|-- NeedsOperator        access denied or a service set up wrongly: the job waits until somebody mends it
|   |-- JobDisabled      somebody has disabled our Batch job on one pool: another pool may do
|   |-- NotOurs          a Batch job of another tenant: nothing in it is read, ended or added to
|   |-- Unreadable       a record of ours in the ledger holds something else than a record: its job stands still
|   |-- BatchRefused     Azure Batch denies access or refuses for good (shared/batch/answers.py)
|   `-- StorageFailed    Azure Storage refuses for good (shared/storage/failures.py)
|       `-- StorageAccessDenied  it denies access
`-- Transient            a service did not answer properly; the same call may succeed later
    |-- QuotaReached     Azure Batch said a quota is used up: wait, this is not the user's fault
    `-- NotYet           what the job needs is being made by another job: wait for that
"""

from __future__ import annotations


class WorkerError(Exception):
    """Base of all errors of haste-worker."""


class ConfigurationError(WorkerError):
    """One or more app settings are wrong. `faults` holds one sentence per setting, each starting with its name."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(faults))


class InvalidMessage(WorkerError):
    """A queue message that can never be accepted. `reason` names the field, its value and the rule."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Refused(WorkerError):
    """This request can never run as it stands. `sentence` is shown to users and holds no secret."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)


class NotThere(WorkerError):
    """A HASTE record that the job needs does not exist (HASTE's API saves it after it has put its message)."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} does not exist")


class JobOver(WorkerError):
    """A Batch job is completed, terminating, being deleted, or gone: no task can be added to it any more."""


class Conflict(WorkerError):
    """A conditional write was lost to somebody else."""


class NeedsOperator(WorkerError):
    """A service refuses for a reason that neither waiting nor the user can mend: a role, a network rule, a setting.

    The text says what to look at and holds no secret. The job waits.
    """


class JobDisabled(NeedsOperator):
    """A Batch job of our own that an operator has disabled: nothing in it starts."""


class NotOurs(NeedsOperator):
    """A Batch job that was not created for this storage account: nothing in it is read, ended or added to."""


class Unreadable(NeedsOperator):
    """A record or an end in the ledger that is none: written by hand, or by another version. The text names it."""


class Transient(WorkerError):
    """A service failed in a way that may pass: throttled, unavailable, timed out, or no answer."""


class QuotaReached(Transient):
    """Azure Batch refused because a quota is used up. `code` is Batch's error code."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class NotYet(Transient):
    """What the job needs is being made by another job. The text says what, and is safe to show to users."""
