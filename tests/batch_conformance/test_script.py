"""What happens to an account by itself can be written down in its world file, and what happened is in its log."""

from __future__ import annotations

import json
from pathlib import Path

from tests.batch_conformance.wire import POOL, account


def test_events_happen_at_their_times() -> None:
    events = ["at 10m preempt node 0 of pool for 5m", "from 20m to 30m low-priority capacity 0"]
    with account(events=events) as wire:
        wire.job()
        wire.task()

        wire.advance(599)
        assert wire.state() == "running"
        wire.advance(1)
        assert (wire.state(), wire.list(f"/pools/{POOL}/nodes")[0]["state"]) == ("active", "preempted")
        wire.advance(300)
        assert wire.state() == "running"
        wire.advance(300)
        wire.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 60})
        wire.advance(599)
        assert wire.state() == "active"
        wire.advance(1)
        assert wire.state() == "running"


def test_faults_come_and_go_at_their_times() -> None:
    events = [{"from": "1m", "to": "2m", "fault": {"operation": "get_pool", "code": "ServerBusy"}}]
    with account(events=events) as wire:
        seen = []
        for _ in range(3):
            seen.append(wire.send("GET", f"/pools/{POOL}").status)
            wire.advance(60)

    assert seen == [200, 503, 200]


def test_the_log_tells_what_was_alive_at_every_instant(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with account(event_log=str(log)) as wire:
        wire.job()
        wire.task()
        wire.admin("POST", "/jobs/job/tasks/task/preempt", {"return_after_seconds": 60})
        wire.advance(60)
        wire.end()
        told = wire.admin("GET", "/events")

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines == told
    runs = [(line["event"], line["run"]) for line in lines if "run" in line]
    first, second = sorted({run for _, run in runs})
    assert runs == [("task_started", first), ("run_lost", first), ("task_started", second), ("run_ended", second)]
    lives = [line["event"] for line in lines if line["event"].startswith("task_") and line["event"] != "task_started"]
    assert lives == ["task_created", "task_requeued", "task_completed"]
