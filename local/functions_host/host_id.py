"""The id that host processes of one app share: their timers' locks and statuses are kept under it."""

import hashlib
import re
from pathlib import Path

from local.functions_host.faults import HostFaults
from local.functions_host.settings import Settings

CONTAINER = "azure-webjobs-hosts"
_VALID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def host_id(settings: Settings, app: Path) -> str:
    """`AzureFunctionsWebHost__hostid`, or else a hash of the app's path. Raises HostFaults for an invalid id."""
    given = settings.get("AzureFunctionsWebHost__hostid")
    if not given:
        return hashlib.sha256(str(app).encode()).hexdigest()[:32]
    if len(given) > 32 or not _VALID.fullmatch(given):
        raise HostFaults(
            ["AzureFunctionsWebHost__hostid must be 1-32 lower case letters, digits and single dashes between them"]
        )
    return given
