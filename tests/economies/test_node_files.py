"""The files of a running training are listed seldom, and anew once one of them is not there any more."""

from __future__ import annotations

import pytest

from bench.deployment import Deployment
from local.images.training.app.event_file import record, scalar_event, version_event
from shared.kinds import Entity
from tests.support.passing_waits import PassingWaits

LIST, READ = "list_task_files", "get_task_file"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


class Run:
    """One training that runs, and what Batch is asked for its files."""

    def __init__(self) -> None:
        self.deployment = Deployment([{"id": "h100", "targetLowPriorityNodes": 1, "start_seconds": 0}])
        self.entity: Entity = self.deployment.train()
        self.deployment.tick()
        ((self.job, self.task),) = self.deployment.runner.running()
        self.epochs = 0
        self.contents: dict[str, bytes] = {}

    def log(self, file: str) -> None:
        """The program logs one more epoch to this event file, which is new or the one of before."""
        now = self.deployment.clock.now().timestamp()
        self.epochs += 1
        content = self.contents.setdefault(file, record(version_event(now)))
        content += record(scalar_event(now, self.epochs, "epoch", float(self.epochs)))
        self.contents[file] = content
        self.deployment.runner.put_file(self.job, self.task, self.path(file), content)

    def path(self, file: str) -> str:
        return f"wd/logs/version_0/events.out.tfevents.{file}"

    def minute(self) -> list[str]:
        """Progress is looked at once a minute."""
        self.deployment.count_anew()
        self.deployment.tick(60)
        asked = self.deployment.calls()
        return [LIST] * asked[f"Batch {LIST}"] + [READ] * asked[f"Batch {READ}"]


def test_files_are_listed_once_in_ten_minutes_and_read_every_minute() -> None:
    run = Run()
    run.log("1.0")
    minutes = []
    for _ in range(21):
        minutes.append(run.minute())
        run.log("1.0")
    assert [minute.count(LIST) for minute in minutes] == [1, *[0] * 9, 1, *[0] * 9, 1]
    assert [minute.count(READ) for minute in minutes] == [1] * 21


def test_while_there_are_no_files_they_are_looked_for_every_time() -> None:
    run = Run()
    assert [run.minute() for _ in range(3)] == [[LIST]] * 3
    run.log("1.0")
    assert [run.minute() for _ in range(2)] == [[LIST, READ], [READ]], "the first file is seen at once"


def test_after_a_file_was_not_there_they_are_listed_anew() -> None:
    """Batch runs the task anew, in an empty folder and under the same id."""
    run = Run()
    run.log("1.0")
    assert [run.minute() for _ in range(2)] == [[LIST, READ], [READ]]
    run.deployment.runner.delete_file(next(iter(run.deployment.runner.stored)), run.path("1.0"))
    run.log("2.0")
    assert [run.minute() for _ in range(3)] == [[READ], [LIST, READ], [READ]]
