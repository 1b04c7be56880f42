"""A script that knows nothing of the emulator runs on it as it is."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

from local.certificates import Certificates
from tests.batch_emulator.emulator_process import PROJECT, running

_SCRIPT = PROJECT / "docs/examples/batch_quickstart.py"


def test_the_quickstart_runs_unchanged_but_for_the_account(tmp_path: Path, certificates: Certificates) -> None:
    key = base64.b64encode(b"the key of a stranger").decode()
    timings = {"resize_seconds": 0, "node_start_seconds": 0}
    with running(
        tmp_path, certificates, {"timings": timings}, "--account", "stranger", variables={"BATCH_EMULATOR_KEY": key}
    ) as emulator:
        account = {
            "BATCH_ACCOUNT_ENDPOINT": emulator.endpoint,
            "BATCH_ACCOUNT_NAME": "stranger",
            "BATCH_ACCOUNT_KEY": key,
        }
        done = subprocess.run(
            [sys.executable, str(_SCRIPT)],
            cwd=tmp_path,
            env=os.environ | account,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        events = emulator.admin("GET", "/events")

    assert (done.returncode, done.stderr) == (0, "")
    written = re.findall(r"^(task-\d\d) on (\S+): (.*)$", done.stdout, re.MULTILINE)
    assert sorted((task, text) for task, _, text in written) == [
        (f"task-{number:02}", f"{number} squared is {number**2}, says task-{number:02}") for number in range(20)
    ]
    ran_on = {event["task"]: event["node"] for event in events if event["event"] == "task_started"}
    assert {task: node for task, node, _ in written} == ran_on
    assert len(set(ran_on.values())) == 2
    operations = {event["operation"] for event in events if event["event"] == "request" and event["status"] < 300}
    assert {"create_pool", "create_job", "create_task_collection", "delete_job", "delete_pool"} <= operations


def test_the_quickstart_needs_nothing_of_this_project() -> None:
    imported = re.findall(r"^(?:import|from) (\w+)", _SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)

    assert set(imported) == {"os", "sys", "time", "uuid", "azure"}
