"""Event files of trainings that run or have just ended: each look reads on where the one before has stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shared.haste import tfevents
from shared.haste.training_metrics import History, Logged, history

#: Takes an offset and how many bytes to read; none at or behind the file's end. None = the file cannot be had now.
Read = Callable[[int, int], bytes | None]

#: The checksum of the last record: read once more, it says whether this is still the same file.
_CHECKSUM_BYTES = 4
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Look:
    """How much one look may do; the next one goes on."""

    most_reads: int
    bytes_each: int
    most_bytes_looked_at: int
    """records other than pictures; a MiB takes a quarter of a second"""


#: HASTE's training writes 1.2 MB of pictures per epoch in one go, so one read is enough at almost every look.
AT_NODE = Look(4, 2 * _MIB, 2 * _MIB)
#: At the end, where no look follows: 800 epochs, mostly from where the last look at the node has stopped.
AT_UPLOADED = Look(256, 4 * _MIB, 16 * _MIB)


@dataclass(frozen=True)
class Seen:
    """How far a file has been read, and what it said."""

    position: int = 0
    """here the next record begins"""
    checksum: bytes = b""
    """the bytes before it"""
    logged: Logged = field(default_factory=Logged)
    has_been_current: bool = False
    """it has been read to its end once"""


class EventFiles:
    """Remembers, in this process only, how far each task's event file has been read: an economy like `Pace`."""

    _MOST_REMEMBERED = 1000

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, Seen]] = {}

    def history(self, task_id: str, file_name: str, read: Read, look: Look) -> History | None:
        """What the file says by now; None if that is nothing, or it has not been read to its end yet.

        A part is not shown: a new process would show less of a long file than is shown already.
        """
        name, before = self._seen.get(task_id, (file_name, Seen()))
        seen = read_on(before if name == file_name else Seen(), read, look)
        if len(self._seen) >= self._MOST_REMEMBERED and task_id not in self._seen:
            self._seen.clear()
        self._seen[task_id] = (file_name, seen)
        return history(seen.logged) if seen.has_been_current else None


def read_on(seen: Seen, read: Read, look: Look) -> Seen:
    """Read what is new. A file that has become shorter, or is another one, is read from its beginning.

    Pictures are passed over by their length: their data is not looked at, nor read if it goes on behind a read.
    """
    picture_length = looked_at = 0
    for _ in range(look.most_reads):
        start = seen.position + picture_length
        offset = max(0, start - _CHECKSUM_BYTES)
        content = read(offset, look.bytes_each)
        if content is None:
            return seen
        before = content[: start - offset]
        if picture_length:
            if len(before) < start - offset:  # it is still being written
                return replace(seen, has_been_current=True)
        elif before != seen.checksum:
            seen = Seen()
            continue
        found = tfevents.stretch(content, start - offset)
        end = start - offset + found.length
        logged = seen.logged.and_then(found.scalars)
        seen = Seen(offset + end, content[max(0, end - _CHECKSUM_BYTES) : end], logged, seen.has_been_current)
        picture_length = found.picture_length
        looked_at += found.bytes_looked_at
        if len(content) < look.bytes_each or not (found.length or picture_length):
            return replace(seen, has_been_current=True)
        if looked_at > look.most_bytes_looked_at:
            break
    return seen
