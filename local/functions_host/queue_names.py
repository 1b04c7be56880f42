"""Which queue names a queue trigger accepts, and the poison queue that belongs to a queue."""

_POISON_SUFFIX = "-poison"


class QueueNameError(ValueError):
    """A queue name the trigger refuses."""


def normalize_queue_name(name: str) -> str:
    """The name storage is asked for: lower case, checked. Raises QueueNameError.

    Letters beyond ASCII pass here as they do in the real host; storage refuses them later.
    """
    if not name:
        raise QueueNameError("the queue name is empty")
    name = name.lower()
    if not 3 <= len(name) <= 63:
        raise QueueNameError(f"queue name {name!r}: it must have 3 to 63 characters")
    if name.startswith("-") or name.endswith("-"):
        raise QueueNameError(f"queue name {name!r}: a dash must not be first or last")
    if not all(character.isalnum() or character == "-" for character in name):
        raise QueueNameError(f"queue name {name!r}: only letters, digits and dashes are allowed")
    if "--" in name:
        raise QueueNameError(f"queue name {name!r}: two dashes must not follow each other")
    return name


def poison_queue_name(queue: str) -> str | None:
    """`<queue>-poison`, or None where there is none: the queue is a poison queue itself, or the name gets too long."""
    if queue.endswith(_POISON_SUFFIX):
        return None
    try:
        return normalize_queue_name(queue + _POISON_SUFFIX)
    except QueueNameError:
        return None
