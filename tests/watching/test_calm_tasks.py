"""A running task about which nothing is new costs its share of a few lists, whatever happens around it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from local.batch import control
from shared.memory import FileNames, Pace
from shared.requests.node_files import NodeFiles
from tests.support.passing_waits import PassingWaits
from tests.support.trainings import Trainings, pool


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> PassingWaits:
    return PassingWaits.installed(monkeypatch)


def running(models: int, **options: object) -> Trainings:
    """So many trainings that run and have been looked into."""
    story = Trainings(pools=[pool("h100", models + 2), pool("t4", 0)], candidates=("h100", "t4"), **options)
    story = story.remembering(progress=Pace(timedelta(hours=1)))
    story.train(*map(str, range(models)))
    story.tick()
    return story


def asked(story: Trainings) -> list[str]:
    before = len(story.events("request"))
    story.tick()
    return [event["operation"] for event in story.events("request")[before:]]


def test_one_task_list_per_batch_job_and_the_node_counts() -> None:
    assert asked(running(4)) == ["list_tasks", "list_pool_node_counts"]


def test_nodes_that_others_have_lost_are_looked_at_and_that_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    story = running(4)
    nodes = story.world.batch_world.pool("h100").nodes
    idle = next(name for name, node in nodes.items() if not node.runs)
    control.preempt_node(story.world.batch_world, "h100", idle, return_after_seconds=None)
    with monkeypatch.context() as patch:
        patch.setattr(story.world.ledger, "read", lambda key: pytest.fail(f"{key} is read"))
        assert sorted(asked(story)) == ["list_nodes", "list_pool_node_counts", "list_tasks"]


def test_the_one_whose_node_is_lost_is_seen_among_them() -> None:
    story = running(4)
    job, task = story.world.runner.running()[2]
    control.preempt_task(story.world.batch_world, job, task, return_after_seconds=None)
    story.tick()
    assert [len(story.live_of(str(model)).losses) for model in range(4)] == [0, 0, 1, 0]


def test_whether_jobs_with_queued_tasks_are_over_is_told_by_one_list() -> None:
    story = running(3)
    story.train(*map(str, range(3, 9)))
    story.tick()
    operations = asked(story)
    assert operations.count("list_jobs") == 1
    assert operations.count("get_job") == 0


def test_a_queued_task_in_a_job_that_is_over_moves_on_all_the_same() -> None:
    story = running(3)
    story.train(*map(str, range(3, 9)))
    placed = story.live_of("8").placement
    assert placed is not None
    story.worker.batch.terminate_job(placed.job_id)
    story.until(lambda: (record := story.of("8")) is not None and record.attempt == 2, ticks=6)
    again = story.live_of("8").placement
    assert again is None or again.job_id != placed.job_id


def test_file_names_are_remembered_for_a_while_and_forgotten_when_one_is_not_to_be_had() -> None:
    story = running(1)
    memory, now = FileNames(), story.now()
    memory.remember("trn-1", "wd/logs", ("wd/logs/a",), now)
    assert memory.names("trn-1", "wd/logs", now) == ("wd/logs/a",)
    assert memory.names("trn-1", "wd", now) == ()
    assert memory.names("trn-2", "wd/logs", now) == ()
    assert memory.names("trn-1", "wd/logs", now + timedelta(minutes=10)) == ()
    memory.forget("trn-1")
    assert memory.names("trn-1", "wd/logs", now) == ()


def test_a_task_that_runs_anew_has_its_files_listed_anew() -> None:
    story = running(1)
    placed = story.live_of("0").placement
    assert placed is not None
    files = NodeFiles(story.worker, placed.job_id, placed.task_id)
    put = story.world.runner.put_file
    put(placed.job_id, placed.task_id, "wd/logs/first", b"1")
    assert files.names("wd/logs") == ["wd/logs/first"]
    put(placed.job_id, placed.task_id, "wd/logs/second", b"2")
    assert files.names("wd/logs") == ["wd/logs/first"], "files come seldom"
    story.world.runner.delete_file(next(iter(story.world.runner.stored)), "wd/logs/first")
    assert files.read("wd/logs/first") is None
    assert files.names("wd/logs") == ["wd/logs/second"]
