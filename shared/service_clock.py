"""A service's own clock: what it dates is judged by it, and not by the clock of this machine, which may be wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

#: The header has whole seconds, and its answer has been on its way: so much of a difference is none.
_EXACT_TO = timedelta(seconds=2)


class ServiceClock:
    """The time as the service's latest answer told it in its `Date` header, to within two seconds.

    `now` is the clock that stands in for it until the first answer, and that tells how much time has passed since the
    latest. Give `heard` to the service's client as its `raw_response_hook`.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._ahead = timedelta()

    def now(self) -> datetime:
        """The time by the service's clock, in UTC."""
        return self._now() + self._ahead

    def heard(self, response: Any) -> None:
        """Note the time of an answer; what a proxy answers in the service's place has no request id."""
        headers = response.http_response.headers
        if "x-ms-request-id" not in headers and "request-id" not in headers:
            return
        try:
            ahead = parsedate_to_datetime(headers.get("Date", "")) - self._now()
        except (ValueError, TypeError):  # no time, or one of no zone
            return
        if abs(ahead - self._ahead) > _EXACT_TO:
            self._ahead = ahead
