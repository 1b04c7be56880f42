"""The log text that HASTE's UI shows: `statusMessage` and `inferenceStatusMessage`.

Each entry is a newline, a timestamp of 32 characters, a colon, a space and a text; continuation lines without a
timestamp may follow. The UI recognises an entry by that timestamp only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

#: The log text is stored, shown, and copied into queue messages of at most 64 KiB by HASTE's API.
MAX_BYTES = 16 * 1024

_TIMESTAMP_CHARACTERS = 32
_ENTRY_START = re.compile(r"\n(?=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+\d\d:\d\d)")
#: Only a progress block of a training that still runs has this line.
_PROGRESS_LABEL = "\napproxMinutesToComplete:"


def timestamp(at: datetime) -> str:
    """UTC as HASTE writes it, always with six fractional digits."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def entry(text: str, at: datetime, *continuations: str) -> str:
    """One entry without the newline before it. The text must be one safe line, see `redaction.safe_text`."""
    return "\n".join((f"{timestamp(at)}: {text}", *continuations))


def append(log: str, added: str) -> str:
    """The log with one more entry, unless it holds this very entry already; never longer than `MAX_BYTES`."""
    return append_new(log, [added])[0]


def append_new(log: str, added: Iterable[str]) -> tuple[str, int]:
    """The log with those entries that it does not hold yet, and how many these were."""
    new = 0
    for text in added:
        if f"\n{text}\n" not in f"{log}\n":
            log = bounded(f"{log}\n{text}")
            new += 1
    return log, new


def last_text(log: str) -> str:
    """Text of the last entry: what the UI shows beside the progress bar. Empty if there is no entry."""
    entries = _split(log)[1]
    return entries[-1].partition("\n")[0][_TIMESTAMP_CHARACTERS + 2 :] if entries else ""


def bounded(log: str) -> str:
    """At most `MAX_BYTES`: the oldest progress blocks go first, then the oldest entries; the last entry stays."""
    excess = _size(log) - MAX_BYTES
    if excess <= 0:
        return log
    head, entries = _split(log)
    parts = [head, *(f"\n{one}" for one in entries)]
    last = len(parts) - 1
    for index in sorted(range(last), key=lambda index: (_PROGRESS_LABEL not in parts[index], index)):
        if excess <= 0:
            break
        excess -= _size(parts[index])
        parts[index] = ""
    kept = "".join(parts)
    return kept.encode("utf-8", "surrogatepass")[:MAX_BYTES].decode("utf-8", "ignore") if excess > 0 else kept


def _split(log: str) -> tuple[str, list[str]]:
    """What stands before the first entry, and the entries."""
    head, *entries = _ENTRY_START.split(log)
    return head, entries


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
