"""How long the credentials of a task must and can last: arithmetic only, every time given and UTC.

Azure Storage gives a user delegation key for at most seven days, and a SAS signed with it ends with the key at the
latest, whatever its own expiry says. So the life of a SAS must fit into the life of a key, and a key is fetched anew as
soon as the one at hand would end too early.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.errors import Refused

#: Azure Storage documents seven days as the longest life of a user delegation key.
KEY_MAX_LIFE = timedelta(days=7)

#: Kept free at both ends: for uploads after the run, and for clocks that differ.
MARGIN = timedelta(hours=1)

#: Keys and SAS start this much in the past, because a service whose clock is behind refuses one from its future.
BACKDATE = timedelta(minutes=10)

#: Shown to users when no key lasts long enough.
TOO_LONG = (
    "This work may wait and run for longer than access to storage can be granted in advance (7 days). "
    "An operator has to lower WORKER_MAX_WAIT or the WORKER_MAX_RUN_ setting of this kind of work."
)


@dataclass(frozen=True)
class Window:
    """A time from `start` to `expiry`, both UTC and in whole seconds as Azure Storage writes them."""

    start: datetime
    expiry: datetime


def fits(max_wait: timedelta, max_run: timedelta, margin: timedelta = MARGIN) -> bool:
    """Whether a SAS for this wait and run can exist at all."""
    return max_wait + max_run + margin <= KEY_MAX_LIFE - margin


def sas_expiry(now: datetime, max_wait: timedelta, max_run: timedelta, margin: timedelta = MARGIN) -> datetime:
    """When the SAS of a task submitted now may end: after its longest wait, its longest run and the margin.

    Raises Refused when no delegation key lasts that long.
    """
    if not fits(max_wait, max_run, margin):
        raise Refused(TOO_LONG)
    return _whole_seconds_up(now + max_wait + max_run + margin)


def sas_start(now: datetime, key: Window) -> datetime:
    """When a SAS minted now starts: a little in the past, and not before its key."""
    return max(_whole_seconds_down(now - BACKDATE), key.start)


def key_window(now: datetime, margin: timedelta = MARGIN) -> Window:
    """The life to ask for a new key: the longest, so that it serves as many tasks as it can.

    `margin` is at least `BACKDATE`, so that start and expiry are seven days apart at most.
    """
    return Window(_whole_seconds_down(now - BACKDATE), _whole_seconds_up(now + KEY_MAX_LIFE - margin))


def covers(key: Window, now: datetime, expiry: datetime) -> bool:
    """Whether a SAS minted now with this key lasts until `expiry`, and is valid from now on."""
    return key.start <= now and expiry <= key.expiry


def _whole_seconds_down(time: datetime) -> datetime:
    return time.replace(microsecond=0)


def _whole_seconds_up(time: datetime) -> datetime:
    down = _whole_seconds_down(time)
    return down if down == time else down + timedelta(seconds=1)
