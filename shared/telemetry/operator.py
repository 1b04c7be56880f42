"""The line that operators are alerted by when a job cannot go on before they have mended something."""

from __future__ import annotations

import structlog

from shared.errors import NeedsOperator

log = structlog.get_logger(__name__)

#: How the reason of a job begins that goes on only when somebody has mended something.
FOR_OPERATOR = "waiting for an operator"


def tell_operator(fault: NeedsOperator) -> str:
    """Alerts count this line. Returns the reason for the record."""
    log.error("waits for an operator", error=str(fault))
    return f"{FOR_OPERATOR}: {fault}"
