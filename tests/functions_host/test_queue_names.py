"""Queue names pass and fail as in Microsoft's trigger."""

from typing import Any

import pytest

from local.functions_host.queue_names import QueueNameError, normalize_queue_name, poison_queue_name
from tests.functions_host.recordings import read_lines

_SAME_REASON = {
    "null or empty": "is empty",
    "3 to 63": "3 to 63",
    "first or last": "first or last",
    "only letters": "only letters",
    "consecutive": "follow each other",
}


@pytest.mark.parametrize("row", read_lines("queue-names.jsonl"), ids=lambda row: row["queueName"] or "empty")
def test_recorded_names(row: dict[str, Any]) -> None:
    name = row["queueName"]
    if row["ok"]:
        assert normalize_queue_name(name) == name.lower()
        return
    with pytest.raises(QueueNameError) as refusal:
        normalize_queue_name(name)
    ours = next(our_word for their_word, our_word in _SAME_REASON.items() if their_word in row["message"])
    assert ours in str(refusal.value)


@pytest.mark.parametrize(
    ("queue", "poison"),
    [("jobs", "jobs-poison"), ("jobs-poison", None), ("a" * 56, "a" * 56 + "-poison"), ("a" * 57, None)],
)
def test_poison_queue_names(queue: str, poison: str | None) -> None:
    assert poison_queue_name(queue) == poison
