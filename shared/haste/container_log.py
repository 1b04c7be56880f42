"""Progress logs of HASTE's containers: one `<ISO timestamp>|<text>` per line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from shared.haste.log_text import entry
from shared.haste.redaction import safe_text

#: Lines that are looked at; a run writes about five. A log that runs wild must not fill HASTE's record.
MAX_LINES = 25


@dataclass(frozen=True)
class LogLine:
    """One line of a container. `text` is safe to show."""

    at: datetime
    text: str

    def entry(self) -> str:
        """As an entry of HASTE's log text, with the container's own time."""
        return entry(self.text, self.at)


def parse(content: bytes, *, complete: bool, continuations: bool = False) -> list[LogLine]:
    """The newest lines of a log.

    `complete` is False while the container may be in the middle of a line. Lines without a timestamp before the first
    `|` belong to the line before them if `continuations` is set (errors span several lines); else they are left out.
    """
    text = content.decode("utf-8", "replace")
    if not complete:
        text = text[: text.rfind("\n") + 1]
    found: list[tuple[datetime, str]] = []
    for raw in text.split("\n"):
        stamp, bar, message = raw.partition("|")
        at = _instant(stamp) if bar else None
        if at is not None:
            found.append((at, message))
        elif continuations and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {raw}")
    return [LogLine(at, safe_text(message)) for at, message in found[-MAX_LINES:] if message.strip()]


def entries(content: bytes | None, *, complete: bool, continuations: bool = False) -> list[str]:
    """The newest lines of a log as entries of HASTE's log text, see `parse`; none without a log."""
    return [line.entry() for line in parse(content or b"", complete=complete, continuations=continuations)]


def _instant(stamp: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(stamp.strip())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
