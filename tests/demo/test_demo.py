"""`python -m local.demo` from the command line: the whole stack, the real application."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.demo.deployed_pools import deployed_pools
from tests.support.waiting import DEADLINE_SECONDS, heed_interrupts, processes_naming, until

PROJECT_FOLDER = Path(__file__).resolve().parents[2]


def demo(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, summary and output of a demo that leaves nothing running."""
    played = subprocess.run(
        [sys.executable, "-m", "local.demo", "--folder", str(folder), *arguments],
        cwd=PROJECT_FOLDER,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert processes_naming(folder) == []
    return played.returncode, json.loads((folder / "summary.json").read_text()), played.stdout


@pytest.mark.timeout(400)
def test_the_demo_goes_well(tmp_path: Path) -> None:
    code, summary, output = demo(tmp_path, "--task-seconds", "6")
    assert (code, summary["ok"]) == (0, True), output
    kinds = ["imageryprep", "imageryprep", "training", "inference", "inference"]
    assert [job["kind"] for job in summary["jobs"]] == kinds
    assert {job["state"] for job in summary["jobs"]} == {"Processed"}
    pools = deployed_pools()
    assert [attempt["pool"] for attempt in summary["jobs"][2]["attempts"]] == [pools.t4, pools.h100]
    assert all(check["ok"] for check in summary["checks"])
    assert list((tmp_path / "outputs").rglob("last.ckpt"))
    assert str(tmp_path / "outputs") in output
    spilled, waited = "queued     t4 ", "waiting    -  "
    at_quota = "h100: is at its quota (AccountLowPriorityCoreQuotaReached)"
    for row in (spilled, waited):
        assert [line for line in output.splitlines() if row in line and at_quota in line], row
    assert output.count("Azure takes the training's node") == 2


def test_a_demo_that_takes_too_long_fails(tmp_path: Path) -> None:
    code, summary, output = demo(tmp_path, "--step-seconds", "0")
    assert (code, summary["ok"]) == (1, False)
    assert "waited 0 s in vain for h100 to be at its quota" in summary["checks"][0]["detail"]
    assert "broken off" in output


def test_a_stack_that_does_not_start_is_told(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    code, summary, _ = demo(tmp_path / "demo", "--app", str(nowhere))
    assert (code, summary["ok"], summary["jobs"]) == (1, False, [])
    assert "nowhere" in summary["checks"][0]["detail"]


def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "local.demo", "--folder", str(tmp_path)],
        cwd=PROJECT_FOLDER,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    ) as played:
        assert until((tmp_path / "run" / "ready" / "host-tenanta-0").exists)
        played.send_signal(signal.SIGINT)
        _, told = played.communicate(timeout=DEADLINE_SECONDS)
    assert (played.returncode, told) == (130, b"interrupted; everything is stopped\n")
    assert processes_naming(tmp_path) == []
