"""One run of the timer has three parts; whatever goes wrong in one, the others have their turn, and the run fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared import retry
from shared.app import App, queue_names
from shared.errors import Transient
from shared.housekeeping.expiring import OldEntries
from shared.housekeeping.past_jobs import PastJobs
from shared.kinds import Kind
from shared.settings.load import load_settings
from shared.storage.blob_container import BlobContainer, Version
from shared.storage.lease import BlobLease
from shared.storage.queues import QueueReader
from shared.triggers.timer import Timer
from tests.settings.test_settings import SHARED
from tests.support.passing_waits import PassingWaits
from tests.support.story import Story
from tests.support.trainings import Trainings, pool


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class Queues:
    """Poison queues that are empty, or cannot be read."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.looks = 0

    def take(self, _queue: str, _most: int) -> list[Any]:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return []


class Lease:
    """One timer alone."""

    def __init__(self, is_ours: bool = True) -> None:
        self._is_ours = is_ours

    @contextmanager
    def held(self) -> Iterator[bool]:
        yield self._is_ours

    def renew(self) -> bool:
        return self._is_ours


class NoBlobs:
    """Nothing to expire."""

    def page(self, _prefix: str, _token: str | None) -> tuple[list[tuple[str, Version]], str | None]:
        return [], None

    def list_with_metadata(self, _prefix: str) -> Iterator[Any]:
        return iter(())

    def delete(self, name: str, etag: str) -> None:
        raise AssertionError(name)


def app_of(story: Story, queues: Queues, lease: Lease | None = None) -> App:
    settings, no_blobs = load_settings(SHARED), cast(BlobContainer, NoBlobs())
    timer = Timer(
        story.kept.rejected(),
        cast(QueueReader, queues),
        queue_names(settings),
        cast(BlobLease, lease or Lease()),
        OldEntries(NoBlobs()),
        PastJobs(no_blobs),
        shares_pools=settings.shared_mode,
    )
    return App(settings, story.worker, no_blobs, no_blobs, timer.rejected, timer)


def ended_task() -> Story:
    """A training whose task has ended; no run of the timer has seen that."""
    story = Story()
    story.ask()
    story.complete()
    return story


def house_was_kept(story: Story) -> bool:
    return "list_jobs" in [event["operation"] for event in story.events("request")]


def test_a_poison_queue_that_cannot_be_read_keeps_no_job_from_its_end() -> None:
    story = ended_task()
    with pytest.raises(ExceptionGroup) as raised:
        app_of(story, Queues(Transient("the queue did not answer"))).tick()
    assert [str(error) for error in raised.value.exceptions] == ["the queue did not answer"]
    assert story.shown["status"] == "Processed"
    assert house_was_kept(story)


def test_a_broken_record_keeps_nothing_else_from_its_turn() -> None:
    story, queues = ended_task(), Queues()

    def breaks(_run: Any, _end: Any) -> Any:
        raise KeyError("a field that nobody expected to be missing")

    story.worker.workloads[Kind.TRAINING].outcome = breaks  # type: ignore
    with pytest.raises(ExceptionGroup):
        app_of(story, queues).tick()
    assert queues.looks
    assert house_was_kept(story)


def test_who_has_no_lease_does_nothing() -> None:
    story, queues = ended_task(), Queues()
    app_of(story, queues, Lease(is_ours=False)).tick()
    assert story.shown["status"] == "InProgress"
    assert not queues.looks and not house_was_kept(story)


def test_housekeeping_goes_by_the_lists_of_tasks_that_the_run_has_made_already() -> None:
    story = Story()
    story.ask()
    story.world.batch_world.advance(30)
    before = len(story.events("request"))
    app_of(story, Queues()).tick()
    operations = [event["operation"] for event in story.events("request")[before:]]
    assert house_was_kept(story)
    assert operations.count("list_tasks") == 1


def test_housekeeping_does_not_go_on_for_ever_where_batch_does_not_answer(
    waits: PassingWaits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call is repeated for a while; all of them together for a while, too."""
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=waits.monotonic))
    story = Trainings(pools=[pool("h100", 9)])
    for number in range(20):
        story.worker.batch.create_job(f"tenant-training-p{number}-2026w02", "h100", None, "tenant")
    story.fault(operation="list_tasks", status=503)
    app_of(story, Queues()).tick()
    assert house_was_kept(story)
    assert sum(waits.seconds) < 200
