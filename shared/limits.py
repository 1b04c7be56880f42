"""How long things may take, and how often: values that the settings make."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Limits:
    """How long things may take."""

    late_save: timedelta
    """how late HASTE's API may save after its message"""
    record_patience: timedelta
    """how long a HASTE record may be missing before its request is given up"""
    stuck: timedelta
    """how long Batch may call a task running that has lost its node before it is ended; and, if that does not end it,
    before it is deleted (two function timeouts)"""
    most_live_tasks: int = 0
    """how many tasks of this tenant may be in Batch at once; 0 = any number"""


@dataclass(frozen=True)
class Policy:
    """The limits recovery works with. `max_wait`: how long a task may be queued; None = its credentials do not end."""

    most_losses_per_pool: int
    pool_cool_down: timedelta
    rerun_grace: timedelta
    queued_too_long: timedelta
    max_run: timedelta | None
    max_wait: timedelta | None
