"""What the errors of a pool's last resize mean for its growth. They stay listed until the next resize."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.batch.types import PoolView

_QUOTA = frozenset(
    {
        "accountcorequotareached",
        "accountvmseriescorequotareached",
        "accountlowprioritycorequotareached",
        "accountspotcorequotareached",
    }
)
_CAPACITY = frozenset({"allocationfailed", "allocationtimedout", "overconstrainedallocationrequesterror"})
_HARMLESS = frozenset({"resizestopped", "removenodesfailed"})
_PERMANENT = frozenset(
    {
        "unsupportedvmsize",
        "incompatiblevmsize",
        "dependentresourcenotfound",
        "failedidentityoperation",
        "diskencryptionfailure",
        "communicationenabledpoolreachedmaxvmcount",
    }
)


@dataclass(frozen=True)
class Trouble:
    """Why a pool does not grow now. `is_unknown`: a code we do not know is taken for passing lack of capacity."""

    why: str
    is_quota: bool = False
    is_permanent: bool = False
    is_unknown: bool = False


def trouble(view: PoolView, now: datetime, fresh_for: timedelta) -> Trouble | None:
    """The gravest error of the last resize that still counts; None if there is none.

    Errors say something only while the allocation is steady. A wrong configuration counts whatever its age; lack of
    quota or capacity only for `fresh_for` after the resize has ended.
    """
    if view.allocation_state != "steady" or not view.resize_error_codes:
        return None
    codes = {code.lower(): code for code in view.resize_error_codes}
    permanent = sorted(code for code in codes if code in _PERMANENT or "bypolicy" in code)
    if permanent:
        return Trouble(f"cannot allocate nodes ({codes[permanent[0]]})", is_permanent=True)
    if view.allocation_changed_at is not None and now - view.allocation_changed_at >= fresh_for:
        return None
    quota = sorted(codes.keys() & _QUOTA)
    if quota:
        return Trouble(f"is at its quota ({codes[quota[0]]})", is_quota=True)
    other = sorted(codes.keys() - _HARMLESS)
    if not other:
        return None
    return Trouble(f"found no capacity ({codes[other[0]]})", is_unknown=not set(other) & _CAPACITY)
