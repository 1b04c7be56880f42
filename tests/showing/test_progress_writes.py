"""Progress in HASTE's record costs one conditional write, and never hides what somebody else has written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from shared.haste.visibility import Written
from shared.haste.workload import Change
from shared.protocol.record import Record
from tests.support.small_world import TRAINING
from tests.support.story import TRAINING_NAME, Story


class Counted:
    """A story with a training that runs; counts what its HASTE record and its ends are asked for."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.story = Story()
        self.story.ask()
        self.asked: Counter[str] = Counter()
        for port, name in (
            (self.story.world.haste, "read_with_etag"),
            (self.story.world.haste, "replace"),
            (self.story.world.ledger, "done"),
        ):
            patch.setattr(port, name, self._counting(name, getattr(port, name)))

    def _counting(self, name: str, real: Any) -> Any:
        def call(*args: Any) -> Any:
            self.asked[name] += 1
            return real(*args)

        return call

    def show(self, step: int, record: Record | None = None) -> bool:
        return self.story.worker.haste.show_progress(record or self.story.record, stepping(step)) is Written.DONE

    @property
    def shown(self) -> dict[str, Any]:
        return self.story.shown


def stepping(step: int) -> Change:
    return lambda record: record | {"step": step}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    made = Counted(monkeypatch)
    made.show(0)
    made.asked.clear()
    return made


def test_the_next_progress_is_one_write(counted: Counted) -> None:
    assert all(counted.show(step) for step in (1, 2, 3))
    assert counted.asked == {"replace": 3}
    assert counted.shown["step"] == 3


def test_without_anything_new_the_record_is_read_and_not_written(counted: Counted) -> None:
    assert not counted.show(0)
    assert counted.asked == {"read_with_etag": 1}


def test_a_late_save_of_hastes_api_is_written_over_once_it_is_seen(counted: Counted) -> None:
    counted.story.world.save_record(TRAINING, step=None, comment="theirs")
    assert counted.show(0), "the same progress as before, but it is not there any more"
    assert (counted.shown["step"], counted.shown["comment"]) == (0, "theirs")
    counted.story.world.save_record(TRAINING, step=None, comment="again")
    assert counted.show(1)
    assert (counted.shown["step"], counted.shown["comment"]) == (1, "again")
    assert counted.asked["replace"] == 3, "one was lost"


def test_a_cancel_is_never_written_over(counted: Counted) -> None:
    counted.story.world.save_record(TRAINING, status="Cancelled")
    assert not counted.show(1)
    assert counted.shown["status"] == "Cancelled" and counted.shown["step"] == 0


def test_a_newer_run_is_never_written_over(counted: Counted) -> None:
    counted.story.world.save_record(TRAINING, status="InProgress", taskId="trn-newer")
    assert not counted.show(1)
    assert counted.shown["taskId"] == "trn-newer" and counted.shown["step"] == 0


def test_a_task_that_is_not_known_asks_for_the_ends_before_the_record_is_read_again(counted: Counted) -> None:
    counted.story.world.save_record(TRAINING, taskId="trn-unknown")
    counted.asked.clear()
    assert not counted.show(1)
    assert counted.asked == {"read_with_etag": 2, "done": 1, "replace": 1}


def test_a_task_held_when_the_request_came_needs_no_ends(counted: Counted) -> None:
    counted.story.world.save_record(TRAINING, taskId="trn-held")
    record = counted.story.record
    request = replace(record.request, held_task_ids=("trn-held",))
    assert counted.show(1, replace(record, request=request))
    assert counted.asked["done"] == 0


def test_a_record_that_is_gone_is_not_made_again(counted: Counted) -> None:
    del counted.story.world.haste.blobs[TRAINING_NAME]
    written = counted.story.worker.haste.show_progress(counted.story.record, stepping(1))
    assert written is Written.GONE
    assert TRAINING_NAME not in counted.story.world.haste.blobs
