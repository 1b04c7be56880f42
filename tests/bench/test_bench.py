"""The benchmarks run on the real app and say what they found; how fast this machine is does not matter here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

import bench.__main__ as command
from bench import calls, figures, many, recovery
from bench.figures import Figure


@pytest.fixture(autouse=True)
def log_configuration() -> Iterator[None]:
    """The command silences the log of its process; other tests read it."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_every_figure_is_written_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Figure("a", 3.0, "calls", 15, "x"), Figure("b", 16.0, "calls", 15, "y"), Figure("c", 1.0, "s", None, "z")]
    monkeypatch.setattr(command, "FILE", tmp_path / "new" / "bench.json")
    monkeypatch.setattr(command, "_PARTS", {"calls": lambda: found[:1], "many": lambda: found[1:]})
    command.main([])
    written = json.loads((tmp_path / "new" / "bench.json").read_text(encoding="utf-8"))
    assert written["figures"][0] == {"name": "a", "value": 3.0, "unit": "calls", "goal": 15, "detail": "x"}
    assert [one["name"] for one in written["figures"]] == ["a", "b", "c"]
    table = capsys.readouterr().out
    assert "goal 15: met" in table and "goal 15: MISSED" in table
    command.main(["calls"])
    assert [one["name"] for one in json.loads(command.FILE.read_text(encoding="utf-8"))["figures"]] == ["a"]


def test_recovery_is_measured_from_the_preemption_to_the_run_in_another_pool() -> None:
    p50, p95 = recovery.measure(losses=3)
    assert (p50.name, p95.name) == ("recovery_p50", "recovery_p95")
    assert 0 < p50.value <= p95.value <= 60


def test_a_submission_is_counted_by_type() -> None:
    figure = calls.per_submit()
    assert figure.is_met, figures.table([figure])
    assert "1 Batch create_task" in figure.detail
    by_type = figure.detail.partition("of these: ")[2].partition(" (")[0].split(", ")
    assert sum(float(part.split()[0]) for part in by_type) == figure.value


def test_calls_of_a_running_job_stay_within_the_goal() -> None:
    """Counts are exact, so unlike seconds they are asserted."""
    figure = calls.per_job_hour(20, 200)
    assert figure.is_met, figures.table([figure])


def test_a_tick_over_many_jobs_is_counted_and_timed() -> None:
    seconds, asked, memory = many.measure(live=400)
    assert (seconds.name, asked.name, memory.name) == ("tick_10000_seconds", "tick_10000_calls", "tick_10000_peak_mb")
    assert asked.is_met and "40 Batch list_tasks" in asked.detail
    assert seconds.value > 0 and memory.value > 20
